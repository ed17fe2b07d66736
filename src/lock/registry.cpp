// SPDX-License-Identifier: BSD-3-Clause
#include "lock/registry.hpp"

#include <array>
#include <utility>

#include "machine/hardware.hpp"
#include "machine/lock_machine.hpp"

namespace muster::locks {
namespace {

/// A machine on which no lock ever runs: traits are the same on all.
struct AnyMachine : Hardware, NobodySleeps<AnyMachine> {
  static void linger(unsigned) {}
  static std::int64_t time_ns() { return 0; }
};

/// As listed.
constexpr auto table = []<class... L>(std::tuple<L...>*) {
  std::array all{&L::traits..., &PthreadMutex::traits};
  std::swap(all[all.size() - 2], all.back());
  return all;
}(static_cast<Locks<AnyMachine>*>(nullptr));

constexpr auto names = [] {
  std::array<std::string_view, table.size()> all;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = table[i]->name;
  return all;
}();

}  // namespace

std::span<const std::string_view> lock_names() { return names; }

const Traits& traits_of(std::string_view name) {
  for (const Traits* traits : table) {
    if (traits->name == name) return *traits;
  }
  std::string message = "no lock \"" + std::string(name) + "\"; there are:";
  for (const std::string_view known : names) {
    message.append(message.back() == ':' ? " " : ", ").append(known);
  }
  throw Error(Status::unknown_name, message);
}

}  // namespace muster::locks
