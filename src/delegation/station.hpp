// SPDX-License-Identifier: BSD-3-Clause
// A station: request rings that many locks share, and the server that walks them, if there is one.
//
// A server has one servicing thread at work. When that one blocks inside a section (it says so, or
// the watchdog sees that it has been in one section for a whole period) a spare takes over, made at
// need: other locks go on. Who comes back while another is at work becomes a spare.
//
// Source: Lozi et al., ACM TOCS 33(4), 2016, section 3.2, whose manager, servicing and backup
// threads need SCHED_FIFO; here the kernel's usual scheduling does.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "delegation/port.hpp"
#include "lock/rings.hpp"

namespace muster::delegation {

/// What a server has done; for people and tests.
struct ServerCounters {
  std::uint64_t executed = 0;     ///< sections
  std::uint64_t threads = 0;      ///< servicing threads made so far
  std::uint64_t handovers = 0;    ///< a spare took over: of these
  std::uint64_t by_watchdog = 0;  ///< so many because the watchdog saw a section that blocked
  std::uint64_t sleeps = 0;       ///< idle, until woken
};

struct ServerOptions {
  std::vector<unsigned> cpus;  ///< empty: wherever the process may run
  bool realtime = false;       ///< SCHED_FIFO, if the system allows it
};

class Station {
 public:
  using Rings = locks::Rings<Port>;
  static constexpr unsigned depth = 16;  ///< requests that a client may have outstanding

  /// A client's side.
  struct Seat {
    Port port;
    Rings::Ticket ring;
    Hardware::Cell* last = nullptr;  ///< the entry of its last request without an answer
  };

  Station();
  ~Station();
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  /// Starts its server. Throws Error: busy if it has one, system.
  void start(const ServerOptions& options);
  /// Executes what was posted before, then ends the server's threads; its locks remain usable. From
  /// no section of this server.
  void stop();
  /// Moves the server's threads. Throws Error(invalid) if that is not possible.
  void place(const std::vector<unsigned>& cpus);
  bool has_server() const noexcept {
    return server_cell().value.load(std::memory_order_relaxed) != 0;
  }

  Seat& seat(unsigned number);
  locks::Desk<Port> desk(Word lock) const {
    return {&entry(lock).held, &cells_.global(0), rings_, lock};
  }
  const Rings& rings() const noexcept { return rings_; }
  const Board& board() const noexcept { return board_; }
  Hardware::Cell& server_cell() const noexcept { return cells_.global(1); }

  /// A number for a lock of this station. Throws Error(no_memory).
  Word add();
  /// The lock may be used from here on.
  void open(Word number, AnyLock* lock);
  /// When nothing is pending for this lock, and nobody has it.
  void remove(Word number);

  /// Wakes the server if it sleeps; after each request.
  void ring_bell() noexcept {
    FutexLot::light_fence();  // pairs with the server's heavy one
    if (bell_.any_sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake();
  }

  /// By a servicing thread, around what may take long.
  void enter_blocking();
  void leave_blocking();

  ServerCounters counters() const;
  std::string describe() const;

 private:
  struct Servant {
    std::thread thread;
    /// Odd while it executes a section; grows by two with each.
    alignas(line_bytes) std::atomic<std::uint64_t> progress{0};
    std::atomic<bool> counted{true};  ///< in at_work_: not blocked, not spare, as far as is known
    std::uint64_t seen = 0;           ///< progress, by the watchdog
  };

  /// What the server needs of a lock. It outlives the lock: who executed its last request still
  /// gives it up, and who read an old request still tries to take it.
  struct Entry {
    Hardware::Cell held;
    std::atomic<AnyLock*> lock;
    char rest[line_bytes - sizeof(Hardware::Cell) - sizeof(std::atomic<AnyLock*>)];
  };
  class ServerWork;

  Entry& entry(Word number) const noexcept {
    return reinterpret_cast<Entry*>(lock_table_.data())[number];
  }
  void serve(Servant& self);
  bool pass(Servant& self, Port& port);
  bool execute_for(Servant& self, Port& port, unsigned client, Word request);
  void rest(Port& port, unsigned& idle, std::int64_t& idle_since_ns);
  bool any_pending(Port& port);
  bool any_unfinished(Port& port);
  bool remains(Servant& self);
  void replace();
  void add_servant();
  void watch();
  [[gnu::noinline]] void wake() noexcept;
  void apply_options(std::thread& thread);
  void end_threads();

  Reserved memory_;
  Hardware::Cells cells_;
  Board board_;
  PerSeat<Seat> seats_;

  std::mutex locks_mutex_;
  std::vector<Word> free_numbers_;
  Word next_number_ = 0;
  Reserved lock_table_;

  alignas(line_bytes) Announcements<Hardware::Atom> bell_{};

  // The server's threads.
  alignas(line_bytes) std::atomic<unsigned> at_work_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> asleep_{false};
  mutable std::mutex roles_;
  std::condition_variable spares_;
  std::condition_variable watchdog_wake_;
  unsigned wanted_ = 0;  ///< spares that are to take over
  unsigned idle_spares_ = 0;
  std::vector<std::unique_ptr<Servant>> servants_;
  bool watching_ = false;
  std::unique_ptr<std::thread> watchdog_;
  ServerOptions options_;
  bool realtime_granted_ = false;
  ServerCounters counters_;
  std::vector<unsigned> cpus_;  ///< where its threads are bound
  Rings rings_;
  unsigned made_in_ = generation();
};

/// The station of locks that name none; it has no server until one is started for it, which the
/// first `rcl` lock does. Never destroyed.
std::shared_ptr<Station> default_station();

}  // namespace muster::delegation
