// SPDX-License-Identifier: BSD-3-Clause
// A machine on which one access, named by its place in the source, goes wrong: every algorithm's
// own text runs, and a test that cannot tell the difference is worth nothing.
#pragma once

#include <unistd.h>

#include <atomic>
#include <utility>

#include "harness.hpp"
#include "machine/hardware.hpp"

namespace muster::test {

enum class Operation : std::uint8_t { store, add, await, await_all };

/// What goes wrong, at every execution of one access.
enum class Change : std::uint8_t {
  none,
  drop,          ///< a store or an addition that never happens
  flip,          ///< a store of another value: a sense not reversed, a counter one off
  postpone,      ///< a store that comes when all others wait or have ended: a late reset
  miscount,      ///< an addition that returns one too many: a wrong number of children
  skip,          ///< a wait that does not wait
  forget,        ///< a wait for all of a set but its last
  weaken,        ///< relaxed instead of what is written
  acquire_only,  ///< an addition that no longer releases
  release_only,  ///< an addition that no longer acquires
};

/// One access of an algorithm, as the control run met it.
struct Access {
  Operation operation;
  Order order;
  int line;
  bool preparing;  ///< not by a participant, but before there are any
};

/// What the ports of a trial do. In memory that the processes of a test share.
struct Mutation {
  static constexpr unsigned accesses_max = 64;
  static constexpr unsigned participants = 5;
  static constexpr unsigned ended = ~0U;

  Change change;
  int line;
  std::atomic<bool> recording;
  std::atomic<bool> locked;
  unsigned recorded;
  Access accesses[accesses_max];
  /// Stores and additions; each is counted when it is done.
  std::atomic<unsigned> changes;
  /// By rank: `changes` before the last look of the wait that it is in, plus one; 0: it is in none.
  std::atomic<unsigned> waits[participants];

  /// By a rank that has looked in vain, and read `changes` before: whether nobody will change
  /// anything any more. How long that took tells nothing, on a machine that is busy.
  bool is_over(unsigned rank, unsigned changes_seen) {
    waits[rank] = changes_seen + 1;
    for (const std::atomic<unsigned>& each : waits) {
      if (const unsigned seen = each; seen != changes_seen + 1 && seen != ended) return false;
    }
    return changes == changes_seen;
  }

  void record(const Access& access) {
    while (locked.exchange(true, std::memory_order_acquire)) continue;
    bool known = recorded == accesses_max;
    for (unsigned i = 0; i < recorded; ++i) known = known || accesses[i].line == access.line;
    if (!known) accesses[recorded++] = access;
    locked.store(false, std::memory_order_release);
  }
};

class Mutated : public Hardware {
 public:
  Mutated(Domain& domain, unsigned rank, const WaitPolicy& policy, bool shared)
      : Hardware(domain, rank, policy, shared), rank_(rank) {}

  /// For all ports; set before any is made.
  static inline Mutation* mutation = nullptr;

  template <Order O>
  void store(Cell& cell, Word word, OrderTag<O> order, Site site = Site::here()) {
    switch (at(Operation::store, O, site)) {
      case Change::drop:
        break;
      case Change::flip:
        Hardware::store(cell, word ^ 1, order);
        break;
      case Change::weaken:
        Hardware::store(cell, word, relaxed);
        break;
      case Change::postpone:
        catch_up();
        late_cell_ = &cell;
        late_word_ = word;
        return;
      default:
        Hardware::store(cell, word, order);
    }
    count_change();
    catch_up();
  }

  template <Order O>
  Word fetch_add(Cell& cell, Word delta, OrderTag<O> order, Site site = Site::here()) {
    const Word before = add(cell, delta, order, at(Operation::add, O, site));
    count_change();
    catch_up();
    return before;
  }

  template <class Pred, Order O>
  bool await(Cell& cell, Pred pred, OrderTag<O> order, Awaited awaited = Awaited::anyone,
             Site site = Site::here()) {
    const bool done = await_one(cell, pred, order, awaited, at(Operation::await, O, site));
    catch_up();
    return done;
  }

  template <class Pred, Order O>
  bool await_all(CellSet<Mutated> cells, Pred pred, OrderTag<O> order, Site site = Site::here()) {
    const Change change = at(Operation::await_all, O, site);
    if (change == Change::forget && !cells.empty()) cells = cells.first(cells.size() - 1);
    bool done = true;
    for (Cell* cell : cells) done = done && await_one(*cell, pred, order, Awaited::anyone, change);
    catch_up();
    return done;
  }

  /// A hint: nothing could notice that it is wrong.
  static Word pu() { return 0; }

 private:
  static Change at(Operation operation, Order order, Site site) {
    if (mutation->recording.load(std::memory_order_relaxed)) {
      mutation->record({operation, order, site.line, gettid() == getpid()});
    }
    return site.line == mutation->line ? mutation->change : Change::none;
  }

  template <Order O>
  Word add(Cell& cell, Word delta, OrderTag<O> order, Change change) {
    switch (change) {
      case Change::drop:
        return Hardware::load(cell, acquire);
      case Change::miscount:
        return Hardware::fetch_add(cell, delta, order) + 1;
      case Change::weaken:
        return Hardware::fetch_add(cell, delta, relaxed);
      case Change::acquire_only:
        return Hardware::fetch_add(cell, delta, acquire);
      case Change::release_only:
        return Hardware::fetch_add(cell, delta, release);
      default:
        return Hardware::fetch_add(cell, delta, order);
    }
  }

  template <class Pred, Order O>
  bool await_one(Cell& cell, Pred pred, OrderTag<O> order, Awaited awaited, Change change) {
    if (change == Change::skip) return true;
    unsigned seen = changes();
    const auto look = [&](Word word) {
      if (pred(word)) return true;
      // ThreadSanitizer would take what follows for order between the participants.
      if (!under_tsan && mutation->is_over(rank_, seen)) break_domain({Status::timeout, rank_});
      seen = changes();
      return false;
    };
    const bool done = change == Change::weaken ? Hardware::await(cell, look, relaxed, awaited)
                                               : Hardware::await(cell, look, order, awaited);
    wait_no_more();
    return done;
  }

  static unsigned changes() { return under_tsan ? 0 : mutation->changes.load(); }
  static void count_change() {
    if (!under_tsan) mutation->changes.fetch_add(1);
  }
  void wait_no_more() const {
    if (!under_tsan) mutation->waits[rank_].exchange(0);  // before what it stores next
  }

  /// The postponed store, when the others have gone on as far as they can.
  void catch_up() {
    if (late_cell_ == nullptr) return;
    while (!mutation->is_over(rank_, changes())) usleep(10);
    wait_no_more();
    Hardware::store(*std::exchange(late_cell_, nullptr), late_word_, relaxed);
    count_change();
  }

  unsigned rank_;
  Cell* late_cell_ = nullptr;
  Word late_word_ = 0;
};

static_assert(Machine<Mutated>);

}  // namespace muster::test
