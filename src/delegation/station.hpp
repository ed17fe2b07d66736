// SPDX-License-Identifier: BSD-3-Clause
// A station: request rings that many locks share, and the server that walks them, if there is one.
//
// A server has one servicing thread at work. When that one blocks inside a section (it says so, or
// the watchdog sees that it has been in one section for a whole period) a spare takes over, made at
// need: other locks go on. Who comes back while another is at work becomes a spare. A lock whose
// sections have blocked has its next ones executed with a spare at work from the start, until
// enough of them have not.
//
// Its server is started by the program, or, in a station with a steward, by itself: a client of an
// `auto` lock starts it when the steward says so, and the watchdog ends it. Both are safe at any
// moment, since whoever executes a request has its lock: without a server, clients execute what is
// pending themselves, and a server leaves when it has executed what had been posted before.
//
// Source: Lozi et al., ACM TOCS 33(4), 2016, section 3.2, whose manager, servicing and backup
// threads need SCHED_FIFO; here the kernel's usual scheduling does.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "delegation/places.hpp"
#include "delegation/port.hpp"
#include "delegation/ring_memory.hpp"
#include "lock/ahead.hpp"
#include "lock/auto.hpp"
#include "lock/bell.hpp"
#include "lock/departure.hpp"
#include "lock/numbers.hpp"
#include "lock/shape.hpp"
#include "lock/steward.hpp"
#include "lock/term.hpp"
#include "machine/mutual.hpp"

namespace muster::delegation {

/// What a server has done; for people and tests.
struct ServerCounters {
  std::uint64_t executed = 0;     ///< sections
  std::uint64_t threads = 0;      ///< servicing threads made so far
  std::uint64_t handovers = 0;    ///< a spare took over: of these
  std::uint64_t by_watchdog = 0;  ///< so many because the watchdog saw a section that blocked
  std::uint64_t ahead = 0;        ///< and so many ahead of sections of locks that have blocked
  std::uint64_t sleeps = 0;       ///< idle, until woken or for a while
};

struct ServerOptions {
  PuSet cpus{};  ///< RCLLockInitDefault; empty: RCLLockInitNUMA chooses a core
  ServerPolicy policy = ServerPolicy::pack;
};

class Station final : public LeavesRequests {
 public:
  using Rings = locks::Rings<RingPort>;
  static constexpr unsigned depth = ring_depth;

  /// A client's side.
  struct Seat {
    RingPort port;
    Rings::Ticket ring;
    std::atomic<bool> is_to_wait{false};  ///< its sections post more than can be sent
    Hardware::Cell* last = nullptr;       ///< the entry of its last request without an answer
    locks::Count sections{};              ///< of all locks of the station, perhaps some fewer
    locks::Count meets{};                 ///< of these: the lock was taken, or a server's
    locks::Pace pace{};                   ///< when it executed others' sections
    std::atomic<unsigned> cpu{0};         ///< where it did that last
    std::atomic<int> thread_id{0};        ///< its client's, to the operating system; 0: a servant
    std::uint64_t sections_seen = 0;      ///< by the steward
    std::uint64_t meets_seen = 0;         ///< likewise
    locks::Steward::Seen pace_seen{};     ///< likewise

    bool is_pending() const noexcept {
      return last != nullptr && last->value.load(std::memory_order_acquire) != 0;
    }
  };

  Station();
  /// Not in a fork's child, which leaves its parent's as it is.
  ~Station();

  // In a fork's child whatever changes or describes the server throws Error(busy).

  /// Starts its server; not where a steward does. Throws Error: busy if it has one, or if it is
  /// ending and the caller is in a section of one of its locks; invalid if it cannot go there;
  /// system.
  void start(const ServerOptions& options);
  /// Executes what was posted before, then ends the server's threads; its locks remain usable.
  /// Throws Error(invalid) in a section of one of its locks: what was posted may need that lock.
  void stop();
  /// Moves the server. Throws Error(invalid) if that is not possible.
  void place(const ServerOptions& options);
  /// The core of Places::tree() that it has; nothing without a server, or if that is not known.
  std::optional<unsigned> core() const;
  /// Its NUMA node, by the system's number.
  std::optional<unsigned> numa() const { return numa_of(core()); }

  /// Lets a server come and go. `impose` changes what is seen, for tests. Before the first lock.
  void employ(const locks::Steward& steward,
              std::function<void(locks::Steward::Look&)> impose = {});
  bool has_steward() const noexcept { return steward_.has_value(); }
  /// Where it has one, now and then, by clients that meet others at a lock, outside of all
  /// sections: starts a server if the steward says so.
  void consider() noexcept;
  bool has_server() const noexcept {
    return server_cell().value.load(std::memory_order_relaxed) != 0;
  }

  Seat& seat(unsigned number);
  /// Null before its first use here.
  Seat* find_seat(unsigned number) const noexcept { return seats_.find(number); }
  bool has_pending(unsigned number) const noexcept override;
  /// `always`: as Auto's.
  locks::Auto<RingPort> lock(Word number, std::int64_t visit_ns = locks::Visit::usual_ns,
                             bool always = false) const {
    Row& its = row(number);
    return {{&its.held, &cells().global(0), rings_, number, visit_ns},
            {its.wanted, its.dozing, &back_cell()},
            &server_cell(),
            always};
  }
  RingBoard board() const noexcept { return {cells().slots() + sizeof(Hardware::Cell)}; }
  /// 0 without a server, else 1 + the PU where it is; ~0 until that is known.
  Hardware::Cell& server_cell() const noexcept { return cells().global(1); }
  Hardware::Cell& back_cell() const noexcept { return cells().global(2); }  ///< StandBack's

  /// A number for a lock of this station. Throws Error(no_memory).
  Word add();
  /// The lock may be used from here on.
  void open(Word number, AnyLock* lock);
  /// Until nothing is pending for this lock. `is_client(seat)`: whether anything may have been
  /// posted to it from there.
  void await_executed(Word number, auto is_client) const {
    NumbersPort machine = numbers_port();
    locks::Numbers<NumbersPort>::await_executed(
        machine, number, [&](auto look) { for_each_entry(look, is_client); });
  }
  /// Then, and when nobody has it.
  void remove(Word number, auto is_client) {
    NumbersPort machine = numbers_port();
    numbers_.remove(machine, number, row(number),
                    [&](auto look) { for_each_entry(look, is_client); });
  }

  /// Wakes the server if it sleeps; after each request.
  void ring_bell() noexcept { locks::Bell<FutexLot>::ring(FutexLot(), bell_); }

  /// By who is to wait, outside of all sections: until fewer threads send posts, for a while.
  void await_senders(Seat& seat) noexcept;

  /// By a servicing thread, around what may take long. False if it does not count as at work
  /// anyway, before its section ends: then there is nothing to leave.
  bool enter_blocking();
  void leave_blocking();

  ServerCounters counters() const;
  /// Where its server is and what it has done.
  std::string describe() const;
  /// Why there is a server, or none, if there is a steward; else empty.
  std::string reason() const;
  /// The deciding fact of that, a constant.
  const char* cause(bool has_server) const;

 private:
  struct Servant;
  /// The machine of the server's crew (lock/crew.hpp).
  struct House : Mutual {
    explicit House(Station& of) : station(of) {}
    void ring() const noexcept { station.ring_bell(); }
    auto& members() const noexcept { return station.servants_; }
    bool hire() const;
    bool is_stuck(Servant& servant) const;
    void has_handed_over();
    static long waits();
    void has_stepped_ahead() const { station.ahead_.fetch_add(1, std::memory_order_relaxed); }
    void nap(Signal& signal, Mutex& mutex, bool for_long) const;

    Station& station;
    // The watchdog's:
    std::int64_t nap_ns = 0;      ///< 0: this is no watchdog's
    bool sees_handovers = false;  ///< there were some since it last looked
  };
  using Crew = locks::Crew<House>;
  using Term = locks::Term<House>;

  struct alignas(line_bytes) Servant : Crew::Member {
    Servant() : Member{1} {}
    bool is_counted() const { return counted.load(std::memory_order_relaxed) != 0; }
    /// Grows by `section` with each; between, what it is busy with.
    std::atomic<std::uint64_t> progress{0};
    enum Progress : std::uint64_t { executes = 1, sends = 2, section = 4 };
    std::uint64_t seen = 0;        ///< progress, by the watchdog
    std::int64_t cpu_seen_ns = 0;  ///< likewise, while it is busy
    std::thread thread;
    std::optional<clockid_t> clock;  ///< its CPU time, for as long as it runs
    std::int64_t cpu_ns() const;     ///< by that; 0: unknown
    std::uint64_t executed() const { return progress.load(std::memory_order_relaxed) / section; }
  };

  /// What the server needs of a lock. It outlives the lock: who executed its last request still
  /// gives it up, and who read an old request still tries to take it.
  struct alignas(line_bytes) Row : locks::Numbers<NumbersPort>::Row {
    std::atomic<AnyLock*> lock;
    Hardware::Atom with_spare;  ///< so many of its next sections (lock/ahead.hpp)
  };
  static_assert(sizeof(Row) == line_bytes);
  class Server;

  Crew& crew() const noexcept { return term_.crew; }
  static std::optional<unsigned> numa_of(std::optional<unsigned> core);
  /// Calls fn(entry) for each of the clients' rings.
  void for_each_entry(auto fn, auto is_client) const {
    const Word count = cells().global(0).value.load(std::memory_order_acquire);
    for (unsigned client = 0; client < count; ++client) {
      if (!is_client(client)) continue;
      for (unsigned at = 0; at < depth; ++at) fn(cells().of(client, at));
    }
  }
  const RingPort::Cells& cells() const noexcept { return memory_.cells(); }
  NumbersPort numbers_port() const { return {memory_.domain(), 0}; }
  void require_own_process() const;
  bool is_around_caller() const noexcept;
  Row& row(Word number) const noexcept { return reinterpret_cast<Row*>(lock_table_.get())[number]; }
  void serve(Servant& self);
  bool has_senders(unsigned many) const noexcept {
    return senders_.load(std::memory_order_relaxed) >= many;
  }
  Servant& add_servant();
  void watch();
  static std::string bind(Servant& servant, const PuSet& cpus, const PuSet& named = {});
  void start_at(const Places::Server& place, const ServerOptions& options);
  void depart(auto wait);
  void end(auto last);
  void join_watchdog() {
    if (watchdog_.joinable()) watchdog_.join();
  }
  bool is_to_leave();
  locks::Steward::Advice look(std::int64_t at_ns, std::vector<int>& thread_ids);
  locks::Steward::Look see(std::int64_t at_ns, std::vector<int>& thread_ids);
  std::int64_t server_cpu_ns() const;

  const Birth birth_;
  SlotMemory<RingPort::Cells> memory_;
  PerSeat<Seat> seats_;

  locks::Numbers<NumbersPort> numbers_{};
  Reserved lock_table_;

  alignas(line_bytes) Announcements<Hardware::Atom> bell_{};

  // The server's threads.
  alignas(line_bytes) mutable Term term_{};
  mutable House house_{*this};
  std::atomic<std::uint64_t> sleeps_{0};
  std::atomic<std::uint64_t> ahead_{0};  ///< ServerCounters::ahead
  std::atomic<unsigned> senders_{0};     ///< threads that send what sections have posted
  std::vector<std::unique_ptr<Servant>> servants_;
  std::thread watchdog_;
  std::string misplaced_;  ///< why one of its threads is not where the server is; empty: none is
  ServerCounters counters_;
  Places::Server place_;
  locks::Pending<RingPort> last_;  ///< what it owes when it leaves; its room is made at its start
  Rings rings_;

  // The steward's; `stewarding_` is locked before the crew's mutex.
  mutable std::mutex stewarding_;
  std::optional<locks::Steward> steward_;
  std::function<void(locks::Steward::Look&)> impose_;
  std::atomic<std::int64_t> next_look_ns_{0};
  std::int64_t last_look_ns_ = 0;
  std::int64_t process_cpu_ns_ = 0;  ///< at the last look
  std::int64_t server_cpu_ns_ = 0;
  std::uint64_t sleeps_seen_ = 0;
  // What seats have counted that were used at a look, or at the one before. A thread that comes and
  // goes between two is counted when its seat is used again.
  std::uint64_t sections_ = 0;
  std::uint64_t meets_ = 0;
  SeatMachine::Bits looked_at_[SeatMachine::words]{};  ///< used at the last look
};

/// A servicing thread that waits lets a spare serve in the meantime.
class Blocking {
 public:
  Blocking() : serving_(this_thread.serving) {
    if (serving_ != nullptr && !serving_->enter_blocking()) serving_ = nullptr;
  }
  ~Blocking() {
    if (serving_ != nullptr) serving_->leave_blocking();
  }
  Blocking(const Blocking&) = delete;
  Blocking& operator=(const Blocking&) = delete;

 private:
  Station* serving_;
};

/// The station of this process's locks of that style that name none. `rcl` locks share one, whose
/// server the first of them starts; the server of that of `auto` locks comes and goes by its
/// steward's rule, since one that stays costs them more than it brings where no core is free. Never
/// destroyed.
std::shared_ptr<Station> default_station(locks::Style style);

}  // namespace muster::delegation
