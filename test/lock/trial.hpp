// SPDX-License-Identifier: BSD-3-Clause
// The one test for every lock: clients have numbered sections executed that change plain data. A
// lock that lets two in shows a torn pair of words (under ThreadSanitizer a race), one that
// executes a request twice or never, or one client's for another, shows in the numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "delegation/delegated.hpp"
#include "delegation/make_lock.hpp"
#include "harness.hpp"

namespace muster::test {

/// What a lock protects, and how often it was changed by whom. Plain data.
struct Protected {
  explicit Protected(unsigned clients) : executed(clients) {}
  std::uint64_t count = 0;
  std::uint64_t mirror = 0;             ///< as `count`, outside of sections
  std::vector<std::uint64_t> executed;  ///< the number of each client's last section
  const char* wrong = "";  ///< of what was; constants: two write it at once if a lock lets them
};

/// One client's numbered section and its result.
struct Numbered {
  Protected* data;
  unsigned client;
  std::uint64_t number;
  std::uint64_t result;
  unsigned others;  ///< CPU time spent inside, in turns of a loop

  /// A section for a lock; `argument` is a Numbered.
  static void execute(void* argument);
};

struct LockTrial {
  std::uint64_t seed = 0;
  unsigned clients = 4;
  std::uint64_t sections = 2000;  ///< of each client
  bool yields = false;            ///< between sections, at random
  unsigned posts = 0;             ///< so many are posted before each that is executed
};

using Execute = std::function<void(delegation::Section)>;

/// Runs the trial with a way to execute sections, and to post them. Empty, or what went wrong.
std::string run_lock_trial(const Execute& execute, const LockTrial& trial,
                           const Execute& post = {});
std::string run_lock_trial(delegation::AnyLock& lock, const LockTrial& trial);

using delegation::section_of;

inline constexpr delegation::Section nothing{[](void*) {}, nullptr};

/// As programs have it executed: by the short way where there is one.
inline void execute_section(delegation::AnyLock& lock, delegation::Section section) {
  delegation::execute_section(lock, section,
                              [](delegation::AnyLock& any, delegation::Section what) {
                                any.execute(what);
                                return 0;
                              });
}
template <class Fn>
void execute(delegation::AnyLock& lock, Fn&& fn) {
  execute_section(lock, section_of(fn));
}

/// The text of the Error that the call throws; empty if it throws none.
template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace muster::test
