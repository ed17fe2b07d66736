// SPDX-License-Identifier: BSD-3-Clause
// Request slots: each client has a ring of them, which it fills in order and executors empty in
// order. A request names its lock and has a number. Executors may be several, of several locks: who
// *has the lock that a request names* executes it, if it is the next of its client.
//
// Cost: two line transfers a request: the entry to the executor, and back when it is cleared.
// Source: after Lozi et al., ACM TOCS 33(4), 2016, section 3; rings, numbers and the test under the
// lock are ours: a server that tests before it has the lock executes a request twice.
//
// Invariants:
// 1. An entry is 0, or its request is not executed yet. Only its client makes it nonzero, and only
//    whoever has the lock it names makes it 0: before it counts it as served, and so before the
//    client's next request is executed. If an entry is 0, so are those of all requests before.
// 2. A request is in the entry of the one before if its client knows that to be executed, else in
//    the entry after. So who waits for each answer always has the line that it writes next: it has
//    just read the answer there.
// 3. `served` tells how many of the client's requests are executed, where the last one was, and
//    whether the next is being executed, which may give the lock up and take it again. An old
//    `served` leads to entries that are 0, have a number too high, or one that has come again:
//    `served` is another by then, as who posts has seen a ring of requests done. None runs twice.
#pragma once

#include <algorithm>

#include "lock/hints.hpp"
#include "lock/served.hpp"

namespace muster::locks {

/// Cells of a client: the entries, then `served`. Slot c * depth + k is client c's entry k.
constexpr unsigned cells_per_ring(unsigned depth) { return depth + 1; }

/// The requests are those of all locks that share the rings.
template <LockMachine M>
class Rings {
 public:
  using Cell = typename M::Cell;

  struct Ticket {
    unsigned client;
    bool entered = false;  ///< executors know of this client
    Word posted = 0;
    Word executed = 0;   ///< so many at least, as far as it knows
    unsigned place = 0;  ///< of the last one posted
  };

  static constexpr Word lock_bits = 20;
  static constexpr Word locks_max = (Word{1} << lock_bits) - 1;

  /// What is in an entry: 11 bits of the request's number, 20 of its lock; above, a mark.
  static constexpr Word request(Word number, Word lock) {
    return (number << lock_bits | (lock + 1)) & 0x7fff'ffffU;
  }
  static constexpr Word number_of(Word request) { return (request & 0x7fff'ffffU) >> lock_bits; }
  static constexpr Word lock_of(Word request) { return (request & locks_max) - 1; }

  /// `depth`: a power of two, at most Served::depth_max.
  Rings(unsigned depth, typename M::Cells cells) : depth_(depth), cells_(cells) {}

  /// The entry, which is 0 once the request is executed; null if it gave up. A full ring is awaited
  /// half empty: an executor that follows closely would want the very lines that are written next.
  Cell* post(M& m, Ticket& t, Word lock, auto& work) const {
    if (Cell* const last = full_at(t)) {
      if (!m.await(*last, equals(0), acquire)) return nullptr;  // pairs with execute's store
      t.executed = t.posted + half() - depth_;
    }
    if (!is_idle(t)) t.place = wrapped(t.place + 1);
    return &post_alone(m, t, lock, work);
  }
  /// The same by a client that knows all its requests to be executed.
  Cell& post_alone(M& m, Ticket& t, Word lock, auto& work) const {
    Cell& entry = cells_.of(t.client, t.place);
    work.put(m, t.client * depth_ + t.place);
    m.store(entry, request(++t.posted, lock), release);  // pairs with next's load
    work.posted(m);
    return entry;
  }
  static bool is_idle(const Ticket& t) { return t.executed == t.posted; }

  /// The entry that post() awaits; null: it need not look, which takes the executor's line.
  Cell* full_at(const Ticket& t) const {
    const bool is_full = t.posted - t.executed >= depth_;
    return is_full ? &cells_.of(t.client, wrapped(t.place + half())) : nullptr;
  }

  /// When the client has seen that the entry of its last request is 0.
  static void has_answer(Ticket& t) { t.executed = t.posted; }
  /// The entry of a client's last executed request, or `ahead` of it: its next one's, or one ahead.
  Cell& at_last(M& m, unsigned client, unsigned ahead = 0) const {
    const Served so_far(m.load(served(client), relaxed));
    return cells_.of(client, wrapped(so_far.place + ahead));
  }

  /// A client's next request, for whoever has its lock, or sees here which one to take.
  struct Next {
    Word request = 0;  ///< 0: there is none, or it is being executed
    Word executed = 0;
    unsigned place = 0;
    bool is_of(Word lock) const { return request != 0 && lock_of(request) == lock; }
  };

  Next next(M& m, unsigned client) const {
    const Word turn = m.load(served(client), acquire);  // pairs with execute's last store
    const Served so_far(turn);
    if (so_far.is_busy) return {};
    const Word number = number_of(request(so_far.executed + 1, 0));
    for (unsigned ahead = 0; ahead < std::min(depth_, 2U); ++ahead) {
      const unsigned place = wrapped(so_far.place + ahead);
      const Word seen = m.load(cells_.of(client, place), acquire);  // pairs with post's store
      if (seen == 0 || number_of(seen) != number) continue;
      if (depth_ > 1 && m.load(served(client), relaxed) != turn) return next(m, client);
      return {seen, so_far.executed, place};
    }
    return {};
  }

  /// By who has the lock, and had it when it looked.
  void execute(M& m, unsigned client, const Next& next, auto& work) const {
    m.store_unawaited(served(client), Served{next.executed, next.place, true}.word());
    work.run(m, client * depth_ + next.place);
    m.store(cells_.of(client, next.place), 0, release);  // pairs with the client's await
    // Pairs with the load above, of the next lock.
    m.store(served(client), Served{next.executed + 1, next.place, false}.word(), release);
  }

  /// Executes the client's next request if it is one for `lock`, which the caller has.
  bool serve(M& m, unsigned client, Word lock, auto& work) const {
    const Next found = next(m, client);
    if (!found.is_of(lock)) return false;
    execute(m, client, found, work);
    return true;
  }
  unsigned depth() const { return depth_; }
  Cell& served(unsigned client) const { return cells_.of(client, depth_); }
  Cell& entry(unsigned client, const Next& next) const { return cells_.of(client, next.place); }

 private:
  unsigned half() const { return depth_ > 1 ? depth_ / 2 : 1; }
  unsigned wrapped(unsigned place) const { return place & (depth_ - 1); }

  unsigned depth_;
  typename M::Cells cells_;
};

}  // namespace muster::locks
