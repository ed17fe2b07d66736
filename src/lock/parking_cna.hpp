// SPDX-License-Identifier: BSD-3-Clause
// Compact NUMA-aware lock, as a mutex: lock/parking_queue.hpp, whose first one calls the next that
// waits on its own NUMA node. Those passed over are set aside, in order, in a second list; they
// come back when nobody near is left, or after `limit` calls in a row within a NUMA node.
//
// Cost: two line transfers a section, most of them within a NUMA node.
// Source: Dice and Kogan, EuroSys 2019, figures 3 to 5. Differs: the second list hangs on the
// mutex, not on the holder's place; who was first calls when it enters, not when it leaves; a count
// bounds the unfairness instead of a random number.
//
// Invariants:
// 1. Only the first of the list touches the three words of the second one, and links of those that
//    wait behind others, and only while it has the word.
// 2. The last of either list has no link; the tail's owner is never set aside.
// 3. While somebody is set aside the streak grows with each call within a NUMA node, up to `limit`.
#pragma once

#include "lock/parking_queue.hpp"

namespace muster::locks {

template <class M>
struct NearFirst {
  static constexpr Traits traits{"cna", Style::direct, false, "two, most within a NUMA node",
                                 "Dice and Kogan 2019, beside a word as in qspinlock"};

  static Word choose(M& m, const auto& q, const auto& t, Word next) {
    const Word first = rest(m, q, t);
    const Word streak = first == 0 ? 0 : m.load(q.streak(), relaxed);
    if (first == 0 || streak < q.limit()) {
      Word passed = 0;  // the last one
      for (Word at = next; at != 0;) {
        if (m.load(q.numa(at), relaxed) == t.numa) {
          if (passed != 0) set_aside(m, q, t, next, passed);
          m.store(q.streak(), streak + 1, relaxed);
          return at;
        }
        passed = at;
        at = m.load(q.link(at), muster::acquire);  // pairs with join's store
      }
    }
    m.store(q.streak(), 0, relaxed);
    if (first == 0) return next;
    // All of them before those in line.
    const Word last = m.load(q.aside_last(), relaxed);
    m.store(q.link(last), next, relaxed);
    m.store(q.aside_first(), 0, relaxed);
    return first;
  }

  static Word rest(M& m, const auto& q, const auto& t) {
    return q.client_of(m.load(q.aside_first(), relaxed), t);
  }

 private:
  /// Moves [from, to] of the line to the end of the second list.
  static void set_aside(M& m, const auto& q, const auto& t, Word from, Word to) {
    m.store(q.link(to), 0, relaxed);
    if (rest(m, q, t) == 0) {
      m.store(q.aside_first(), t.mark | from, relaxed);
    } else {
      const Word last = m.load(q.aside_last(), relaxed);
      m.store(q.link(last), from, relaxed);
    }
    m.store(q.aside_last(), to, relaxed);
  }
};
template <class M>
using ParkingCna = ParkingQueue<M, NearFirst>;

}  // namespace muster::locks
