// SPDX-License-Identifier: BSD-3-Clause
#include "lock/registry.hpp"

#include "machine/hardware.hpp"
#include "machine/lock_machine.hpp"
#include "machine/made_once.hpp"

namespace muster::locks {
namespace {

/// A machine on which no lock ever runs: traits are the same on all.
struct AnyMachine : Hardware, NobodySleeps<AnyMachine> {
  static void linger(unsigned) {}
  static std::int64_t time_ns() { return 0; }
};

template <class... L>
std::vector<const Traits*> all_traits(std::tuple<L...>*) {
  return {&L::traits...};
}

const std::vector<const Traits*>& table() {
  static constinit MadeOnce<std::vector<const Traits*>> traits;
  return traits.get([] {
    std::vector<const Traits*> all = all_traits(static_cast<Locks<AnyMachine>*>(nullptr));
    all.insert(all.end() - 1, &PthreadMutex::traits);
    return all;
  });
}

}  // namespace

const std::vector<std::string_view>& lock_names() {
  static constinit MadeOnce<std::vector<std::string_view>> names;
  return names.get([] {
    std::vector<std::string_view> all;
    for (const Traits* traits : table()) all.push_back(traits->name);
    return all;
  });
}

const Traits& traits_of(std::string_view name) {
  for (const Traits* traits : table()) {
    if (traits->name == name) return *traits;
  }
  std::string message = "no lock \"" + std::string(name) + "\"; there are:";
  for (const std::string_view known : lock_names()) {
    message.append(message.back() == ':' ? " " : ", ").append(known);
  }
  throw Error(Status::unknown_name, message);
}

}  // namespace muster::locks
