// SPDX-License-Identifier: BSD-3-Clause
#include "machine/wait_policy.hpp"

#include "machine/error.hpp"

namespace muster {

WaitPolicy WaitPolicy::by_name(std::string_view name, unsigned participants, unsigned usable_cpus) {
  if (name == "auto") return participants > usable_cpus ? oversubscribed() : dedicated();
  for (const WaitPolicy& policy :
       {spin(), yield(), sleep(), attentive(), dedicated(), oversubscribed()}) {
    if (name == policy.name) return policy;
  }
  throw Error(
      Status::unknown_name,
      "no wait policy \"" + std::string(name) +
          "\"; there are: auto, spin, yield, sleep, spin-yield, spin-yield-sleep, yield-sleep");
}

}  // namespace muster
