// SPDX-License-Identifier: BSD-3-Clause
// The lock that may be in memory that processes share, and is usable after its holder's death:
// lock/robust.hpp on hardware.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "delegation/any_lock.hpp"
#include "delegation/cpus.hpp"
#include "lock/robust.hpp"
#include "machine/identity.hpp"
#include "machine/parking_port.hpp"

namespace muster::delegation {

struct RobustCells {
  std::atomic<Word>* first;

  std::atomic<Word>& global(unsigned index) const { return first[index]; }
  static bool is_alone() { return cpus_last_counted() == 1; }
};

/// Of one call of one thread.
class RobustPort : public ParkingPort<RobustCells> {
 public:
  /// `namespaces`: of the lock's creator. Who is in others has no number there: nobody looks after
  /// it, and it looks after nobody.
  RobustPort(std::uint64_t namespaces, std::int64_t end_ns) noexcept
      : is_seen_(own_thread().namespaces == namespaces),
        identity_(is_seen_ ? own_thread().identity : unseen_identity),
        end_ns_(end_ns) {}

  Word identity() const noexcept { return identity_; }
  bool is_gone(Word holder) noexcept;
  bool park(const Cell& cell, Word seen) noexcept;
  static void unpark(const Cell& cell) noexcept;
  /// is_gone() looks at once.
  void look() noexcept { is_long_ = true; }

 private:
  bool is_seen_;
  bool is_long_ = false;  ///< its wait, or since it last looked
  Word identity_;
  std::int64_t end_ns_;
  std::int64_t looked_ns_ = 0;
};
static_assert(MortalMachine<RobustPort>);

/// What processes share. Whoever attaches reads the head once: what is written there later does not
/// matter. Of the rest each value is one that it may have.
struct alignas(128) RobustMemory {
  std::atomic<std::uint64_t> sum;  ///< of what it is; 0: there is none yet
  std::atomic<std::uint64_t> namespaces;
  alignas(64) std::atomic<Word> cells[2];
};

class RobustLock final : public AnyLock {
 public:
  /// In memory that processes share, or in its own. `creates`: else it attaches. Throws
  /// Error(invalid): memory that is not aligned, or to attach to and without a lock.
  RobustLock(void* shared_memory, bool creates);

  void execute(Section section, unsigned) override;
  void give_up() override;
  bool take_again() override;
  void recover(Section section) override;
  bool await_callers(std::int64_t end_ns) override;

 protected:
  bool try_take(bool again) override;
  bool wait_to_take(std::int64_t end_ns) override;

 private:
  std::unique_ptr<RobustMemory> own_;  ///< of one that is not shared
  std::uint64_t namespaces_ = 0;
  locks::Robust<RobustPort> lock_;
  std::atomic<std::int64_t> looked_ns_{0};  ///< the last try that looked after the holder
};

}  // namespace muster::delegation
