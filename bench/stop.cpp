// SPDX-License-Identifier: BSD-3-Clause
#include "bench/stop.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "machine/keep_errno.hpp"

namespace muster::bench {
namespace {

std::atomic<bool> asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void ask(int) {
  constexpr std::string_view said =
      "\nmuster: what is whole after this round or run is kept; Ctrl-C again ends at once\n";
  const KeepErrno of_who_is_interrupted;
  asked.store(true, std::memory_order_relaxed);
  static_cast<void>(!write(STDERR_FILENO, said.data(), said.size()));
}

}  // namespace

void stop_on_ctrl_c() {
  struct sigaction action = {};
  action.sa_handler = ask;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

bool stop_asked() noexcept { return asked.load(std::memory_order_relaxed); }

void end_if_stopped() {
  if (stop_asked()) std::exit(128 + SIGINT);
}

}  // namespace muster::bench
