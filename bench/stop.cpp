// SPDX-License-Identifier: BSD-3-Clause
#include "bench/stop.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace muster::bench {
namespace {

std::atomic<int> asked{0};
static_assert(std::atomic<int>::is_always_lock_free);

void ask(int signal) { asked.store(signal, std::memory_order_relaxed); }

}  // namespace

void stop_on_signals() {
  struct sigaction action = {};
  action.sa_handler = ask;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

int stop_signal() noexcept { return asked.load(std::memory_order_relaxed); }

void end_if_stopped() {
  if (const int signal = stop_signal(); signal != 0) std::exit(128 + signal);
}

}  // namespace muster::bench
