// SPDX-License-Identifier: BSD-3-Clause
// A share of a lock by time: each section's is put on the account of who asked for it, and who is
// ahead of others waits before it asks again. Around any lock, whoever executes its sections.
//
// Source: Patel et al., Avoiding scheduler subversion using scheduler-cooperative locks, EuroSys
// 2020. There a client is banned for a time; here also no longer than until others have caught up.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "delegation/port.hpp"

namespace muster::delegation {

class Share {
 public:
  /// A client's: what its sections took, or as much as others' had when it came back; and when it
  /// last asked for the lock or gave it back.
  struct Account {
    std::atomic<std::int64_t> used_ns{0};
    std::atomic<std::int64_t> seen_ns{std::numeric_limits<std::int64_t>::min() / 2};
    std::int64_t compared_ns = 0;          ///< `used_ns` when it last looked at the others
    std::atomic<std::int64_t> took_ns{0};  ///< what its sections took, whatever others had
  };
  /// What sections took since the lock was made, in nanoseconds; of clients that had any. A thread
  /// that ends leaves its time to the next one in its seat.
  struct Occupancy {
    std::int64_t all_ns = 0;
    std::int64_t of_ns = 0;  ///< the time since then
    std::int64_t most_ns = 0;
    std::int64_t least_ns = std::numeric_limits<std::int64_t>::max();
    unsigned clients = 0;
  };
  /// From when on whose section is executed.
  struct Turn {
    Account* whose = nullptr;
    std::int64_t since_ns = 0;
  };
  /// A section whose time is put on an account.
  struct Counted {
    Section section;
    Share& share;
    Account& whose;

    static void run(void* counted);
    static void run_once(void* counted);  ///< and deletes it
    void tell_posted();  ///< before; for ThreadSanitizer, as the C++ face (section.hpp) does
  };
  /// Who has not been seen for so long counts no more, and comes back with no claim to what it has
  /// not used meanwhile. A choice, not measured.
  static constexpr std::int64_t lately_ns = 100'000'000;

  /// Who is so far ahead of another one waits.
  explicit Share(std::int64_t slice_ns) : slice_ns_(slice_ns) {}

  /// Before the calling thread asks for the lock. False: it would have to wait for longer than to
  /// that time. In other sections nobody waits: others want what these have.
  bool await_turn(std::int64_t end_ns);
  Account& mine() { return of(first_seat()); }
  Account& of(unsigned seat) { return accounts_.of(seat); }
  Occupancy occupancy() const;

  // By who has the lock.
  void begin(Account& whose) { turn_ = {&whose, now_ns()}; }
  Turn turn() const noexcept { return turn_; }
  static void end(const Turn& turn) noexcept;

 private:
  struct Others {
    unsigned count = 0;
    std::int64_t least_ns = std::numeric_limits<std::int64_t>::max();  ///< of what they used
  };
  Others others(const Account& mine, std::int64_t now_ns) const;

  const std::int64_t slice_ns_;
  const std::int64_t since_ns_ = now_ns();
  PerSeat<Account> accounts_;
  Turn turn_;
};

}  // namespace muster::delegation
