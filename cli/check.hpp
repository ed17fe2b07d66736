// SPDX-License-Identifier: BSD-3-Clause
// `muster check` is a program of its own, muster-check: the checker takes as long to compile as a
// good part of all the rest, and few need it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace muster {

class Command;

inline constexpr const char* sleep_name = "sleep";
inline constexpr const char* lock_prefix = "lock:";
inline constexpr const char* mutex_prefix = "mutex:";

struct CheckOptions {
  std::vector<std::string> algorithms{"all"};
  std::vector<unsigned> participants;
  std::vector<unsigned> episodes{2, 3};
  std::string groups;
  std::string variant;
  std::string weaken;
  std::string mutant;
  bool mutate = false;
  bool json = false;
};

void add_check(Command& app, const std::function<void(const CheckOptions&)>& run);
/// In muster-check. Throws Error.
void run_check(const CheckOptions& options);

}  // namespace muster
