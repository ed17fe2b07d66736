// SPDX-License-Identifier: BSD-3-Clause
// Threads that wait for each other: all of them run, or none.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <string_view>
#include <thread>
#include <vector>

#include "machine/error.hpp"
#include "machine/format.hpp"

namespace muster {

/// Of a limit on threads or processes: what there was of it, and what to do.
inline Error too_few(std::size_t made, std::size_t wanted, std::string_view of, const char* why) {
  return {Status::system, format("{} of {} could be made ({}): ask for fewer, or see `ulimit -u`, "
                                 "`ulimit -v` and the control group's pids.max",
                                 made, counted(wanted, of), why)};
}

/// Each of `count` threads calls body(its number); returns when all have. None begins before all
/// are there: it might wait for one that never comes. Throws Error(system) if they cannot be made.
template <class Body>
void run_threads(unsigned count, const Body& body) {
  enum { open = 1, shut = 2 };
  std::atomic<int> gate{0};
  const auto set = [&](int state) {
    gate.store(state);
    gate.notify_all();
  };
  std::vector<std::jthread> threads;
  threads.reserve(count);
  try {
    for (unsigned number = 0; number < count; ++number) {
      threads.emplace_back([&, number] {
        gate.wait(0);
        if (gate.load() == open) body(number);
      });
    }
  } catch (const std::exception& error) {
    set(shut);
    throw too_few(threads.size(), count, "threads", error.what());
  }
  set(open);
}

}  // namespace muster
