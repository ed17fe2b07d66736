// SPDX-License-Identifier: BSD-3-Clause
// A condition of a lock: sections wait for it, without the lock, until another one signals. Who
// waits is listed in order before the lock is given up, so no signal after that is lost, and is
// woken by itself: one signal releases one, whoever else's time is over meanwhile.
//
// A template over a ConditionMachine, which need not be known yet where a condition is.
// Source: ours.
//
// Invariants:
// 1. With the mutex: who waits is listed, and nobody else is.
// 2. Nobody touches a waiter, nor the condition for its sake, once the mutex is given back in which
//    it was signalled: it may be gone.
#pragma once

#include "machine/crew_machine.hpp"

namespace muster::locks {

template <class M>
struct Condition {
  /// Lives where its thread waits.
  struct Waiter;
  using Link = typename M::template Plain<Waiter*>;
  struct Waiter {
    typename M::Signal woken;
    Link next;
    typename M::template Plain<bool> waits;
  };

  typename M::Mutex mutex;
  Link first;
  Link last;

  /// By who has the lock. `unlocked(body)` gives it up, calls body() and takes it again. True: it
  /// was signalled, not only `end`.
  bool wait(M& m, Waiter& self, auto end, auto unlocked) {
    static_assert(ConditionMachine<M>);
    m.within(mutex, [&] { append(m, self); });
    bool is_signalled = false;
    unlocked([&] {
      is_signalled = m.within(mutex, [&] {
        while (m.read(self.waits) && m.wait_until(self.woken, mutex, end)) {
        }
        return !leave(m, self);
      });
    });
    return is_signalled;
  }

  /// Releases the one that has waited longest, if any waits; or all.
  void signal(M& m, bool all) {
    m.within(mutex, [&] {
      while (Waiter* const waiter = m.read(first)) {
        leave(m, *waiter);
        m.call_one(waiter->woken);
        if (!all) break;
      }
    });
  }

  /// With the mutex. False: it was not listed.
  bool leave(M& m, Waiter& self) {
    if (!m.read(self.waits)) return false;
    m.write(self.waits, false);
    Waiter* before = nullptr;
    for (Waiter* at = m.read(first); at != &self; at = m.read(at->next)) before = at;
    Waiter* const after = m.read(self.next);
    m.write(before == nullptr ? first : before->next, after);
    if (after == nullptr) m.write(last, before);
    return true;
  }

 private:
  void append(M& m, Waiter& self) {
    Waiter* const before = m.read(last);
    m.write(self.waits, true);
    m.write(before == nullptr ? first : before->next, &self);
    m.write(last, &self);
  }
};

}  // namespace muster::locks
