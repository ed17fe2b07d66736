// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/robust_lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <optional>
#include <string>

#include "delegation/port.hpp"
#include "machine/error.hpp"
#include "wait/futex_lot.hpp"
#include "wait/policy.hpp"

namespace muster::delegation {
namespace {

/// Other versions have other magic numbers or sizes.
std::uint64_t sum_of(std::uint64_t namespaces) {
  constexpr std::uint64_t magic = 0x4d55'5354'4552'4c33;  // "MUSTERL3"
  return (namespaces ^ sizeof(RobustMemory) ^ magic) * 0x9e37'79b9'7f4a'7c15;
}

void require_alignment(const void* memory) {
  if (reinterpret_cast<std::uintptr_t>(memory) % line_bytes == 0) return;
  throw Error(Status::invalid, "a shared lock's memory is aligned to " +
                                   std::to_string(line_bytes) + " bytes: mmap() gives such memory");
}

/// Both return the creator's namespaces.
std::uint64_t create_at(void* memory) {
  require_alignment(memory);
  new (memory) std::atomic<std::uint64_t>(0);  // nobody attaches to what was there before
  const std::uint64_t namespaces = own_thread().namespaces;
  auto& made = *new (memory) RobustMemory{.sum = 0, .namespaces = namespaces, .cells = {}};
  made.sum.store(sum_of(namespaces), std::memory_order_release);  // pairs with attach_to()'s
  return namespaces;
}

std::uint64_t attach_to(void* memory) {
  require_alignment(memory);
  const auto& there = *std::launder(static_cast<const RobustMemory*>(memory));
  const std::uint64_t sum = there.sum.load(std::memory_order_acquire);
  const std::uint64_t namespaces = there.namespaces.load(std::memory_order_relaxed);
  if (sum != sum_of(namespaces)) {
    throw Error(Status::invalid,
                "there is no lock of this version of the library: let one process make it there, "
                "without `attach`, before the others attach");
  }
  return namespaces;
}

[[noreturn, gnu::cold]] void refuse_damaged() {
  throw Error(Status::peer,
              "a process died inside a section of this lock, or something else has written to its "
              "memory: what it protects may be half changed. Set it right in "
              "muster_lock_recover()");
}

}  // namespace

bool RobustPort::is_gone(Word holder) noexcept {
  if (!is_long_) return false;
  is_long_ = false;
  // Who waits is not inside.
  if (!is_seen_ || holder == unseen_identity) return false;
  if (holder == identity_) return true;
  const KeepErrno of_caller;
  return is_thread_gone(holder);
}

bool RobustPort::park(const Cell& cell, Word seen) noexcept {
  const std::int64_t now = now_ns();
  if (looked_ns_ == 0) looked_ns_ = now;
  if (now >= end_ns_) return false;
  const timespec slice{0, std::min(FutexLot::between_looks_ns, end_ns_ - now)};
  const KeepErrno of_caller;
  syscall(SYS_futex, &cell, FUTEX_WAIT, seen, &slice, nullptr, 0);
  const std::int64_t later = now_ns();
  is_long_ = later - looked_ns_ >= FutexLot::between_looks_ns;
  if (is_long_) looked_ns_ = later;
  return true;
}

void RobustPort::unpark(const Cell& cell) noexcept {
  const KeepErrno of_caller;
  syscall(SYS_futex, &cell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

RobustLock::RobustLock(void* shared_memory, bool creates)
    : AnyLock(locks::Robust<RobustPort>::traits, nullptr, shared_memory != nullptr),
      own_(is_shared() ? nullptr : std::make_unique<RobustMemory>()),
      lock_({}, RobustCells{nullptr}) {
  cpus_of_process();  // counts them
  void* const memory = is_shared() ? shared_memory : own_.get();
  namespaces_ = creates ? create_at(memory) : attach_to(memory);
  lock_ = {{}, RobustCells{static_cast<RobustMemory*>(memory)->cells}};
}

void RobustLock::execute(Section section, unsigned) {
  RobustPort port(namespaces_, WaitPolicy::forever);
  execute_taken(
      section,
      [&] {
        if (!lock_.acquire(port)) [[unlikely]]
          refuse_damaged();
        held_in_ = generation();
      },
      [&] { lock_.release(port); });
}

void RobustLock::give_up() {
  RobustPort port(namespaces_, WaitPolicy::forever);
  lock_.release(port);
}

bool RobustLock::take_again() {
  RobustPort port(namespaces_, WaitPolicy::forever);
  lock_.acquire_anyway(port);
  return !lock_.is_damaged(port);
}

void RobustLock::recover(Section section) {
  admit_process();
  if (is_entered()) {
    throw Error(Status::invalid, "a section of this lock recovers it: leave the section first");
  }
  std::optional<Share::Counted> counted;
  if (share() != nullptr) counted.emplace(Share::Counted{section, *share(), share()->mine()});
  RobustPort port(namespaces_, WaitPolicy::forever);
  lock_.acquire_anyway(port);
  lock_.make_whole(port);
  held_in_ = generation();
  run_taken(counted ? Section{Share::Counted::run, &*counted} : section, [&] { give_up(); });
}

/// Until nobody has it, as with a mutex. The memory of a shared one is not the lock's.
bool RobustLock::await_callers(std::int64_t end_ns) {
  RobustPort port(namespaces_, end_ns);
  if (is_shared() || lock_.is_damaged(port)) return true;
  if (!lock_.acquire(port)) return lock_.is_damaged(port);
  lock_.release(port);
  return true;
}

bool RobustLock::try_take(bool) {
  RobustPort port(namespaces_, 0);
  const std::int64_t looked = looked_ns_.load(std::memory_order_relaxed);
  if (lock_.try_acquire(port)) return true;
  // Who only tries is told, too.
  if (const std::int64_t now = now_ns(); now - looked >= FutexLot::between_looks_ns) {
    looked_ns_.store(now, std::memory_order_relaxed);
    port.look();
    if (lock_.try_acquire(port)) return true;
  }
  if (lock_.is_damaged(port)) refuse_damaged();
  return false;
}

bool RobustLock::wait_to_take(std::int64_t end_ns) {
  RobustPort port(namespaces_, end_ns);
  if (end_ns <= now_ns()) return false;
  if (lock_.acquire(port)) return true;
  if (end_ns == WaitPolicy::forever || lock_.is_damaged(port)) refuse_damaged();
  return false;
}

}  // namespace muster::delegation
