// SPDX-License-Identifier: BSD-3-Clause
// What every lock has in common: one operation, *execute this critical section*. A lock `L<M>` is a
// view of shared cells and gives each client a private `Ticket`:
//
//   static constexpr Traits traits;
//   static Layout layout(const Shape&);          the cells it needs; all are 0 at first
//   L(const Shape&, M::Cells);
//   Ticket ticket(client) const;                 private state; one thread at a time uses it
//   bool execute(M&, Ticket&, work) const;       false if it gave up: the section may have run
//
// What is to be done is the client's `work`, and only it knows what a request looks like:
//
//   work.run_own(m)     does it, here
//   work.put(m, slot)   leaves it in a slot, for somebody else
//   work.posted(m)      hears that there are requests to be seen: where a server has to be told
//   work.run(m, slot)   does what was left there
//
// Locks that carry the lock to the section have `acquire` and `release`, too, most of them
// `try_acquire`, which does not wait, and never call the last three. Slot s lies beside cell
// of(s, 0): on hardware a request is on the line of its flag.
//
// What every lock promises:
// 1. Each section runs exactly once, and no two at the same time.
// 2. A section sees what its client did before `execute` and what earlier sections did; after
//    `execute` the client sees what its section did.
#pragma once

#include <cstdint>
#include <string_view>

#include "machine/lock_machine.hpp"

namespace muster::locks {

struct Shape {
  unsigned clients = 1;   ///< at most; fewer than 2^20
  unsigned clusters = 1;  ///< h-synch, phase-fair: NUMA nodes that hold clients
  unsigned limit = 64;    ///< sections in a row that end a combiner's visit; 1 or more
};

struct Layout {
  unsigned global_cells = 0;
  unsigned slots = 0;  ///< ranks of the machine's cells
  unsigned cells_per_slot = 0;
};

/// Who executes a section.
enum class Style : std::uint8_t {
  direct,     ///< the client itself, when the lock is its
  combining,  ///< whichever client has the lock
  server,     ///< a thread that does nothing else, if there is one
  adaptive    ///< whichever of these serves best
};

struct Traits {
  std::string_view name;
  Style style;
  bool fair;              ///< first come, first served
  std::string_view cost;  ///< line transfers a section, contended
  std::string_view source;
};

/// A client's own count, which others may read at any time and then find a little old.
class Count {
 public:
  Count& operator+=(std::uint64_t more) {
    __atomic_store_n(&count_, count_ + more, __ATOMIC_RELAXED);
    return *this;
  }
  Count& operator++() { return *this += 1; }
  std::uint64_t value() const { return __atomic_load_n(&count_, __ATOMIC_RELAXED); }

 private:
  std::uint64_t count_ = 0;
};

/// Locks that carry the lock to the section: `acquire` and `release` are all that they are.
template <class L>
class Direct {
 public:
  bool execute(auto& m, auto& t, auto& work) const {
    const L& lock = static_cast<const L&>(*this);
    if (!lock.acquire(m, t)) return false;
    work.run_own(m);
    lock.release(m, t);
    return true;
  }
};

/// Locks whose holder executes what others have left, by their parts:
///
///   take(m, t)            true: the client executes its own section now; else it has to
///   delegate(m, t, work)  see to it that its section is executed; false if it gave up
///   give(m, t)            after its own section: true if the lock is given; false: there are
///                         requests of others, and it has to
///   serve(m, t, work)     execute these and give the lock; false if it gave up
template <class L>
class Combining {
 public:
  bool execute(auto& m, auto& t, auto& work) const {
    const L& lock = static_cast<const L&>(*this);
    if (!lock.take(m, t)) return lock.delegate(m, t, work);
    work.run_own(m);
    return lock.give(m, t) || lock.serve(m, t, work);
  }
};

}  // namespace muster::locks
