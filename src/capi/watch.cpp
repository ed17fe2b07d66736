// SPDX-License-Identifier: BSD-3-Clause

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "capi/engine.hpp"
#include "fitting/follower.hpp"
#include "machine/identity.hpp"
#include "machine/made_once.hpp"

namespace muster {
namespace {

std::int64_t watchdog_ns() {
  static constinit MadeOnce<std::int64_t> interval;
  return interval.get([] {
    const char* const text = secure_getenv("MUSTER_WATCHDOG");
    if (text == nullptr || *text == '\0') return WaitPolicy::forever;
    const char* const end = text + std::strlen(text);
    constexpr double least = 0.001;  // a shorter one would say something at each look
    constexpr double most = 1e9;
    double seconds = 0;  // not by strtod, for which the program's locale has the decimal point
    const auto read = std::from_chars(text, end, seconds);
    if (read.ptr == end && read.ec == std::errc()) {
      if (seconds == 0) return WaitPolicy::forever;
      if (seconds >= least && seconds <= most) return static_cast<std::int64_t>(seconds * 1e9);
    }
    static constinit std::atomic_flag told;
    if (!told.test_and_set(std::memory_order_relaxed)) {
      std::fprintf(
          stderr,
          "muster: MUSTER_WATCHDOG=\"%s\" is ignored: it takes seconds, 0.001 to 1e9, or 0 "
          "for none\n",
          printable(text).c_str());
    }
    return WaitPolicy::forever;
  });
}

}  // namespace

bool has_died(Word pid) noexcept {
  return pid != 0 && pid != departed && pid != unseen_pid && is_process_gone(pid);
}

Watch::Watch(const Engine& engine, unsigned rank, const UserHooks& hooks)
    : engine_(engine), hooks_(hooks), rank_(rank), limit_ns_(watchdog_ns()) {
  if (engine.plan().shared) known_.resize(engine.plan().participants);
}

Hooks Watch::hooks() noexcept {
  Hooks hooks;
  hooks.context = this;
  if (hooks_.progress != nullptr) {
    hooks.progress = [](void* self) {
      const UserHooks& user = static_cast<Watch*>(self)->hooks_;
      return user.progress(user.context) != 0;
    };
  }
  if (hooks_.completion != nullptr) {
    hooks.completion = [](void* self) {
      const UserHooks& user = static_cast<Watch*>(self)->hooks_;
      return user.completion(user.context) == 0;
    };
  }
  hooks.inspect = [](void* self, std::int64_t began_ns, std::int64_t now) {
    return static_cast<Watch*>(self)->inspect(began_ns, now);
  };
  hooks.all_came = [](void* self) {
    const auto& watch = *static_cast<Watch*>(self);
    return !watch.engine_.is_anyone_missing(watch.engine_.seat(watch.rank_)->phase());
  };
  if (follower_ != nullptr) {
    hooks.compose = [](void* self, std::span<const Word> pus) {
      return static_cast<Watch*>(self)->follower_->look(pus);
    };
  }
  return hooks;
}

Word Watch::inspect(std::int64_t began_ns, std::int64_t now) noexcept {
  if (now - std::max(began_ns, reported_ns_) >= limit_ns_) {
    report_missing(now - began_ns);
    reported_ns_ = now;
  }
  // To look up another process takes 5 to 7.5 us: nobody looks up all, but where few wait.
  const std::int64_t since_ns = now - std::max(began_ns, swept_ns_);
  if (!engine_.plan().shared || since_ns < FutexLot::between_looks_ns) return 0;
  const bool first = std::exchange(swept_ns_, now) < began_ns;
  ++looks_;
  const Word dead = engine_.is_seen() ? find_dead(first) : 0;
  return dead != 0 ? dead : find_nonsense(began_ns);
}

/// What others write may be anything: it is told from a peer that is late where it can be.
Word Watch::find_nonsense(std::int64_t began_ns) noexcept {
  const Block& block = engine_.block();
  const Word mine = engine_.seat(rank_)->phase();
  const Word nonsense = Breakage{Status::foreign, rank_}.encode();
  bool all_here = true;
  standstill_.begin(began_ns);
  unsigned waiting = 0;  // of those seen, but for the own rank
  for (unsigned n = 0; n < engine_.plan().participants; ++n) {
    const unsigned rank = (rank_ + n) % engine_.plan().participants;
    const Mark& mark = block.mark(rank);
    const auto ahead = static_cast<std::int32_t>(mark.phase.load(std::memory_order_acquire) - mine);
    const Word pid = mark.pid.load(std::memory_order_relaxed);
    // Nobody is an episode or more away from another, and all have come once one has gone through.
    if (ahead < -2 || ahead > 2 || (mine > 1 && pid == 0)) return nonsense;
    if (rank == rank_ && (ahead != 0 || pid != engine_.own_pid())) return nonsense;
    if (is_strange(rank, pid, is_near(waiting))) return nonsense;
    if (n > 0 && ahead == 0 && pid != unseen_pid) ++waiting;
    all_here = all_here && ahead >= 0;
    // Pairs with the store below: what it stored before its wait is seen.
    if (rank != rank_ && ahead == 0) standstill_.see(mark.looks.load(std::memory_order_acquire));
  }
  if (!all_here) {
    standstill_.forget();
    return 0;
  }
  const bool stands = standstill_.end();
  block.mark(rank_).looks.store(standstill_.word(), std::memory_order_release);
  return stands ? nonsense : 0;
}

/// A number is looked up once, since that takes longer than to see whether it lives. From then on
/// nobody changes it but its own process, which departs.
bool Watch::is_strange(unsigned rank, Word pid, bool near) noexcept {
  Word& known = known_[rank];
  if (pid == known || pid == 0 || pid == departed || pid == unseen_pid) return false;
  if (known != 0 || (near && engine_.is_seen() && is_another(pid))) return true;
  if (near) known = pid;
  return false;
}

/// `first`: for the first time in this wait. Since the last wait a peer may have died, and another
/// process got its number.
Word Watch::find_dead(bool first) const noexcept {
  const Block& block = engine_.block();
  const Word mine = engine_.seat(rank_)->phase();
  const Word self = block.mark(rank_).pid.load(std::memory_order_relaxed);
  // By turns 8 of all, since who is stopped in a wait looks nobody up.
  const unsigned turns = (engine_.plan().participants + 7) / 8;
  unsigned waiting = 0;  // of those seen
  for (unsigned n = 1; n < engine_.plan().participants; ++n) {
    const unsigned rank = (rank_ + n) % engine_.plan().participants;
    const Mark& mark = block.mark(rank);
    const Word pid = mark.pid.load(std::memory_order_acquire);
    const auto ahead = [&] {
      return static_cast<std::int32_t>(mark.phase.load(std::memory_order_acquire) - mine);
    };
    const std::int32_t at = ahead();
    const bool near = is_near(waiting);
    if (at == 0 && pid != unseen_pid) ++waiting;
    if (pid == 0 || pid == self || at > 0) continue;
    const bool in_turn = near || n % turns == looks_ % turns;
    const bool is_gone = pid == departed || (in_turn && has_died(pid)) ||
                         (first && near && pid == known_[rank] && is_another(pid));
    // Read after its end: who has left this episode has done all its part, and may go.
    if (is_gone && ahead() <= 0) return Breakage{Status::peer, rank}.encode();
  }
  return 0;
}

void Watch::report_missing(std::int64_t waited_ns) const noexcept {
  const Word mine = engine_.seat(rank_)->phase();
  char text[512];
  int length = std::snprintf(
      text, sizeof text, "muster: rank %u has waited %.1f s at a barrier of %u; missing:", rank_,
      static_cast<double>(waited_ns) / 1e9, engine_.plan().participants);
  unsigned missing = 0;
  engine_.each_missing(mine, [&](unsigned rank, const Mark& mark) {
    ++missing;
    if (length > static_cast<int>(sizeof text) - 32) return;
    length +=
        std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), " %u (pid %u)",
                      rank, number_of(mark.pid.load(std::memory_order_relaxed)));
  });
  length += std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), "%s\n",
                          missing == 0 ? " nobody" : "");
  // Not fprintf: it is a cancellation point, and takes a lock that a stopped thread may hold.
  syscall(SYS_write, STDERR_FILENO, text, static_cast<std::size_t>(length));
}

}  // namespace muster
