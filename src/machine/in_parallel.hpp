// SPDX-License-Identifier: BSD-3-Clause
// Pieces of work that do not depend on each other, on all CPUs, and their results in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "machine/usable_cpus.hpp"

namespace muster {

/// Calls `work(i)` for each i below `count`, on a thread for each CPU that this process may use, or
/// as many as can be made; and here, in order, `take(result)`. Meanwhile, some times a second,
/// `show(i)`: the one whose result comes next. What `work` throws is thrown here in its turn, and
/// no more is begun.
template <class Work, class Take, class Show>
void in_parallel(std::size_t count, Work work, Take take, Show show) {
  using Result = std::invoke_result_t<Work&, std::size_t>;
  std::vector<std::packaged_task<Result()>> tasks;
  std::vector<std::future<Result>> results;
  for (std::size_t i = 0; i < count; ++i) {
    tasks.emplace_back([&work, i] { return work(i); });
    results.push_back(tasks.back().get_future());
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  const struct End {
    std::atomic<std::size_t>& next;
    std::size_t count;
    ~End() { next = count; }
  } end{next, count};
  const std::size_t wanted = std::min<std::size_t>(usable_cpus(), count);
  try {
    while (threads.size() < wanted) {
      threads.emplace_back([&] {
        for (std::size_t i = next++; i < count; i = next++) tasks[i]();
      });
    }
  } catch (const std::system_error&) {  // no more can be made: fewer do it
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto ready = std::future_status::ready;
    if (threads.empty()) tasks[i]();
    while (results[i].wait_for(std::chrono::milliseconds(100)) != ready) show(i);
    take(results[i].get());
  }
}

}  // namespace muster
