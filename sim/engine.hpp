// SPDX-License-Identifier: BSD-3-Clause
// The event engine of the modelled machine: participants on fibres, each on a core of its own, and
// the coherence protocol between their caches. One thread's; nothing here is shared.
//
// A request (read, or ownership) passes its die's agent, travels half the latency if it has to
// leave the die, is served in the line's order, and is done the rest of the latency later. A core
// that waits reads the line once and looks again only when somebody committed a store to it.
#pragma once

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "machine/machine.hpp"
#include "sim/copies.hpp"
#include "sim/data_memory.hpp"
#include "sim/event_queue.hpp"
#include "sim/fibre.hpp"
#include "sim/geometry.hpp"
#include "sim/line.hpp"
#include "sim/mechanism.hpp"
#include "sim/queues.hpp"
#include "sim/random.hpp"
#include "sim/store_buffer.hpp"

namespace muster::sim {

class Recorder;

/// A wait's predicate, looked at while its participant's fibre does not run.
struct Test {
  bool (*holds)(Word seen, std::uint64_t argument);
  std::uint64_t argument;
  bool operator()(Word seen) const { return holds(seen, argument); }

  /// Equals, AtLeast and any other predicate that is one or two words of plain data.
  template <class Pred>
  static Test of(Pred pred) {
    using Bits = std::conditional_t<sizeof(Pred) == sizeof(Word), Word, std::uint64_t>;
    static_assert(sizeof(Pred) == sizeof(Bits) && std::is_trivially_copyable_v<Pred>);
    return {[](Word seen, std::uint64_t bits) {
              return __builtin_bit_cast(Pred, static_cast<Bits>(bits))(seen);
            },
            __builtin_bit_cast(Bits, pred)};
  }
};

class Engine {
 public:
  /// `lines` cells, all 0. `pool` must outlive the engine.
  Engine(const Geometry& geometry, const Parameters& parameters, Mechanisms mechanisms,
         std::uint64_t seed, std::size_t lines, StackPool& pool);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Line& line(std::size_t index) { return lines_[index]; }
  /// Gives a line to the memory of a participant's die, as its first touch does.
  void set_home(std::size_t index, unsigned participant) {
    lines_[index].home = static_cast<std::uint16_t>(geometry_.die_of(participant));
  }

  /// What a participant does, from so long after now on. Once it has ended it can be started again.
  void start(unsigned participant, std::function<void()> body, Time after = 0);

  /// Until every participant has ended. Throws what a participant threw, Error(system) if all wait
  /// for each other (it names who waits for what), or if more than `events_max` events pass.
  void run(std::uint64_t events_max);

  /// A participant's own clock.
  Time clock(unsigned participant) const { return cores_[participant].clock; }
  std::uint64_t events() const { return events_; }
  Random& random() { return random_; }
  DataMemory& data() { return data_; }
  const Geometry& geometry() const { return geometry_; }
  bool models(Mechanism mechanism) const { return mechanisms_.has(mechanism); }
  /// Told of everything that happens from now on; null for nobody.
  void set_recorder(Recorder* recorder) { recorder_ = recorder; }

  // What participants do, each on its own fibre.
  enum class Update : std::uint8_t { add, exchange, compare_exchange };

  Word load(unsigned participant, const Line& line);
  /// Has the line come, unless as many are on their way as stores may wait for.
  void expect_load(unsigned participant, const Line& line);
  void store(unsigned participant, Line& line, Word value);
  /// Returns what was there before.
  Word update(unsigned participant, Line& line, Update kind, Word operand, Word expected = 0);
  bool await(unsigned participant, Line& line, Test test);
  bool await_all(unsigned participant, std::span<Line* const> set, Test test);
  /// An index into the set, the first ready one at or after `from`; no_cell if it gave up.
  std::size_t await_any(unsigned participant, std::span<Line* const> set, Test test,
                        std::size_t from);
  /// Pays for the layers around a message.
  void message(unsigned participant) { delay(participant, message_); }
  /// Reads or changes plain data at an address of data().
  void touch(unsigned participant, std::uint64_t address, bool writes);
  /// Does something else for so long.
  void delay(unsigned participant, Time duration);
  /// From then on every wait gives up, and no time passes.
  bool is_abandoned() const { return abandoned_; }

 private:
  enum class Purpose : std::uint8_t { load, poll, ahead, scan, reserve, update, store };
  enum class Doing : std::uint8_t {
    running,
    loading,
    updating,
    draining,
    awaiting,
    scanning,
    delayed,
    ended
  };

  static constexpr Time never = INT64_MAX;

  struct Transaction {
    Line* line;
    std::uint32_t participant;
    Purpose purpose;
    bool arrived;  ///< it had to leave the die: half of the latency is behind it
    Time served_at;
    std::uint32_t next_free;
  };

  /// Polling of a set: passes over all its cells.
  struct Scan {
    std::span<Line* const> set;
    std::size_t from = 0;      ///< where a pass begins
    std::size_t visited = 0;   ///< of this pass
    unsigned outstanding = 0;  ///< misses
    bool any = false;          ///< one ready cell is enough: the first in the order of the pass
    bool all_ready = false;    ///< so far in this pass
    bool missed = false;       ///< this pass
    bool waiting = false;      ///< until one of the cells changes
    std::vector<Waiter> waiters;
    // For `any`: what is known of each cell in the order of the pass, and how many of the first
    // ones are known not to be ready. Reads that were on their way when a wait was over go on.
    enum class Known : std::uint8_t { nothing, reading, unready, ready };
    std::vector<Known> known;
    std::size_t settled = 0;
    std::vector<const Line*> reading;

    void begin_pass() {
      visited = 0;
      missed = false;
      all_ready = true;
      settled = 0;
      if (any) known.assign(set.size(), Known::nothing);
    }
    std::size_t index_of(std::size_t turn) const {
      return from + turn < set.size() ? from + turn : from + turn - set.size();
    }
    /// The first in the order of the pass that is ready, if that is known; else no_cell.
    std::size_t first_ready() {
      while (settled < set.size() && known[settled] == Known::unready) ++settled;
      return settled < set.size() && known[settled] == Known::ready ? index_of(settled) : no_cell;
    }
  };

  struct Core {
    explicit Core(unsigned store_entries) : stores(store_entries) {}
    std::unique_ptr<Fibre> fibre;
    Time clock = 0;
    Doing doing = Doing::running;
    bool resumes = false;  ///< and there is an event for that
    unsigned requested_stores = 0;
    std::size_t room_for = 0;  ///< draining: goes on when at most so many stores are pending
    StoreBuffer stores;
    Line* line = nullptr;  ///< of the operation it is in
    Test test{};
    Waiter waiter;
    Update kind = Update::add;
    Word operand = 0;
    Word expected = 0;
    Word result = 0;
    Scan scan;
    // Running ahead, as speculation does.
    struct Known {
      Line* next = nullptr;  ///< what it waited for after this line the last time
      Time ended_at = -1;    ///< the commit that ended its last wait for it
    };
    Line* awaited = nullptr;  ///< the last one
    std::unordered_map<const Line*, Known> known;
    const Line* ahead_to = nullptr;  ///< how far it has come
    Time ahead_at = never;           ///< when it goes on
    std::vector<const Line*> ahead;  ///< reads on their way
    bool awaits_ahead = false;       ///< one of these is what it waits for
  };

  // engine.cpp: transactions
  bool present(const Line& line, unsigned participant) const {
    return copies_.has(line.index, participant);
  }
  void set_present(const Line& line, unsigned participant) { copies_.add(line.index, participant); }
  bool owns(const Line& line, unsigned participant) const {
    return line.owner == participant && line.free_at <= now_ && present(line, participant);
  }
  std::uint32_t open(unsigned participant, Line& line, Purpose purpose);
  void request(unsigned participant, Line& line, Purpose purpose, Time at);
  void finish_locally(unsigned participant, Line& line, Purpose purpose, Time at);
  void arrive(std::uint32_t transaction);
  void serve(std::uint32_t transaction, Time at);
  /// From a die to another one that has the line.
  Time way_to(unsigned other, const Line& line, unsigned die) const {
    const Time straight = geometry_.between(die, other);
    return home_way_ ? std::max(straight, geometry_.between(die, line.home)) : straight;
  }
  /// To the farthest of those that have it, one of them at least another one.
  Time way_to_all(const Line& line, unsigned die) const {
    const Time straight = geometry_.farthest(line.holders, die);
    return home_way_ ? std::max(straight, geometry_.between(die, line.home)) : straight;
  }
  Time serve_read(Transaction& t, Time at);
  Time serve_ownership(Transaction& t, Time at);
  void done(std::uint32_t transaction);
  void commit(Line& line, unsigned participant, Word value);
  Time rest(Time latency, const Transaction& t) const {
    return t.arrived ? latency - latency / 2 : latency;
  }
  /// Of two cores of a die: the owner keeps its line for half of the way, if it does.
  Time rest_inside(Time latency, const Transaction& t) const {
    return owner_hold_ ? rest(latency, t) : latency;
  }
  /// Who has just got a line keeps it while its word of that is on the way to the line's order, and
  /// the next request on the way from there: half of a transfer together.
  void hold(const Line& line, Time from, Time latency) {
    if (owner_hold_) held_until_[line.index] = from + latency / 2;
  }
  Time in_order(const Line& line, Time at) const {
    return line_order_ ? std::max(at, line.free_at) : at;
  }

  // engine.cpp: what participants are in the middle of
  void dispatch(Event event);
  void resume(unsigned participant, Time at);
  void look(unsigned participant);
  void looked(unsigned participant, bool stale);
  void awaits(unsigned participant, Line& line);
  void run_ahead_from(unsigned participant, const Line& line, Time at);
  void run_ahead(unsigned participant);
  void reserve(unsigned participant);
  void conditional_store(unsigned participant, Line& line);
  void apply_update(unsigned participant, Line& line);
  void store_granted(unsigned participant, Line& line);
  void commit_stores(unsigned participant);
  void request_stores(unsigned participant);

  // scan.cpp
  static bool is_on_its_way(const Core& core, const Line& line) {
    const std::vector<const Line*>& reading = core.scan.reading;
    return std::find(reading.begin(), reading.end(), &line) != reading.end();
  }
  void scan(unsigned participant);
  void scan_any(unsigned participant);
  void scan_read(unsigned participant, const Line& line, bool stale);
  /// How many misses may be outstanding before the n-th cell of a pass: what is no whole number is
  /// the one below or above in turn, so that a fit can vary it smoothly.
  unsigned overlap_at(std::size_t n) const {
    const double golden = 0.6180339887498949;  // spreads the turns evenly
    const double turn = golden * static_cast<double>(n);
    return static_cast<unsigned>(poll_overlap_ + turn - std::floor(turn));
  }
  bool scan_passed(unsigned participant, Time at);
  void scan_waits(unsigned participant);
  void scan_is_over(unsigned participant, std::size_t ready, Time at);

  // operations.cpp
  void block(unsigned participant);
  void drain(unsigned participant, std::size_t room_for);
  std::size_t await_set(unsigned participant, std::span<Line* const> set, Test test, bool any,
                        std::size_t from);
  void abandon();
  std::string who_waits() const;

  Geometry geometry_;
  Mechanisms mechanisms_;
  bool line_order_;
  bool die_sharing_;
  bool ll_sc_;
  double poll_overlap_;
  std::size_t poll_ways_;
  Time set_fill_;
  unsigned store_overlap_;
  bool owner_hold_;
  std::size_t run_ahead_;
  bool home_way_;
  Time hit_;
  Time load_gap_;
  Time store_gap_;
  Time rmw_local_;
  Time poll_turn_;
  Time message_;
  Time memory_;
  Time line_data_;

  Time now_ = 0;
  std::vector<Time> held_until_;  ///< by line, where owners hold
  std::uint64_t events_ = 0;
  unsigned running_ = 0;  ///< participants that have not ended
  bool abandoned_ = false;
  EventQueue queue_;
  DieAgents agents_;
  ReadQueues reads_;
  DataMemory data_;
  Random random_;
  std::vector<Line> lines_;
  Copies copies_;
  std::vector<Core> cores_;
  std::vector<Transaction> transactions_;
  std::uint32_t free_transaction_ = nobody;
  std::vector<std::uint32_t> woken_;
  StackPool& pool_;
  Recorder* recorder_ = nullptr;
  std::exception_ptr thrown_;
};

}  // namespace muster::sim
