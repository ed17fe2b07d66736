// SPDX-License-Identifier: BSD-3-Clause
#include "wait/policy.hpp"

#include <algorithm>

#include "machine/error.hpp"

namespace muster {

WaitPolicy WaitPolicy::learning(unsigned participants, unsigned usable_cpus, bool attends) {
  const unsigned cpus = std::max(1U, usable_cpus);
  const unsigned sharers = (participants + cpus - 1) / cpus;
  if (sharers > 1) return {0, oversubscribed().yield_ns, "auto", true, sharers};
  // The yields: two participants may have come to one PU, where the scheduler leaves them if they
  // sleep.
  return {dedicated().spin_ns, attends ? forever : dedicated().spin_ns, "auto", true, 1};
}

WaitPolicy WaitPolicy::by_name(std::string_view name, unsigned participants, unsigned usable_cpus,
                               bool attends) {
  if (name == "auto") return learning(participants, usable_cpus, attends);
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
