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
// 2. `served` is twice the number of the client's executed requests, and one more while the next is
//    being executed, which may give the lock up and take it again. Request n + 1 is in entry n mod
//    depth (a power of two): an old `served` names an entry that is 0 or has a number too high.
//    So nothing runs twice.
#pragma once

#include "lock/reception.hpp"

namespace muster::locks {

/// The requests are those of all locks that share the rings.
template <Machine M>
class Rings {
 public:
  using Cell = typename M::Cell;

  struct Ticket {
    unsigned client;
    bool entered = false;  ///< executors know of this client
    Word posted = 0;
    Word executed = 0;  ///< so many at least, as far as it knows
  };

  /// Cells of a client: the entries, then `served`. Slot c * depth + k is client c's entry k.
  static constexpr unsigned cells_per_client(unsigned depth) { return depth + 1; }
  static constexpr Word lock_bits = 20;
  static constexpr Word locks_max = (Word{1} << lock_bits) - 1;

  Rings(unsigned depth, typename M::Cells cells) : depth_(depth), cells_(cells) {}

  /// The entry, which is 0 once the request is executed; null if it gave up. If the ring is full it
  /// waits until half of it is empty: an executor that follows closely would want the very lines
  /// that are written next.
  template <class Work>
  Cell* post(M& m, Ticket& t, Word lock, Work& work) const {
    const unsigned at = place(t.posted);
    Cell& entry = cells_.of(t.client, at);
    if (t.posted - t.executed >= depth_) {  // else it need not look: that takes the executor's line
      const unsigned empty = depth_ > 1 ? depth_ / 2 : 1;
      Cell& last = cells_.of(t.client, place(t.posted + empty - 1));
      if (!m.await(last, equals(0), acquire)) return nullptr;  // pairs with serve's store
      t.executed = t.posted + empty - depth_;
    }
    work.put(m, t.client * depth_ + at);
    m.store(entry, request(++t.posted, lock), release);  // pairs with serve's load
    if constexpr (requires { work.posted(m); }) work.posted(m);
    return &entry;
  }

  /// When the client has seen that the entry of its last request is 0.
  static void has_answer(Ticket& t) { t.executed = t.posted; }

  /// The entry of a client's next request, or of the one being executed; or `ahead` of that.
  Cell& next(M& m, unsigned client, unsigned ahead = 0) const {
    const Word twice = m.load(served(client), relaxed);
    return cells_.of(client, place(twice / 2 + ahead));
  }

  /// A client's next request; 0 if there is none, or one is being executed.
  Word pending(M& m, unsigned client) const {
    const Word twice = m.load(served(client), relaxed);
    return twice % 2 != 0 ? 0 : m.load(cells_.of(client, place(twice / 2)), relaxed);
  }

  /// The lock that a pending request names.
  static constexpr Word lock_of(Word request) { return (request & locks_max) - 1; }

  /// Executes the client's next request if it is one for `lock`, which the caller has.
  template <class Work>
  bool serve(M& m, unsigned client, Word lock, Work& work) const {
    const Word twice = m.load(served(client), acquire);  // pairs with the last store below
    if (twice % 2 != 0) return false;
    const unsigned at = place(twice / 2);
    Cell& entry = cells_.of(client, at);
    const Word seen = m.load(entry, acquire);  // pairs with post's store
    if (seen != request(twice / 2 + 1, lock)) return false;
    m.store(served(client), twice + 1,
            relaxed);  // the lock keeps others away, until it is given up
    work.run(m, client * depth_ + at);
    m.store(entry, 0, release);                   // pairs with the client's await
    m.store(served(client), twice + 2, release);  // pairs with the load above, of the next lock
    return true;
  }

 private:
  /// 11 bits of the number, 20 of the lock; never 0, below 2^31.
  static constexpr Word request(Word number, Word lock) {
    return (number << lock_bits | (lock + 1)) & 0x7fff'ffffU;
  }

  /// Where request number n + 1 is.
  unsigned place(Word n) const { return n & (depth_ - 1); }
  Cell& served(unsigned client) const { return cells_.of(client, depth_); }

  unsigned depth_;
  typename M::Cells cells_;
};

}  // namespace muster::locks
