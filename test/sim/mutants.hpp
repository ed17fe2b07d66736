// SPDX-License-Identifier: BSD-3-Clause
// Barriers with one fault each. The model has to catch them, or its silence about the others would
// say nothing. (Weakened memory orders are the checked machine's to find: the model's stores
// become visible in program order.)
#pragma once

#include <vector>

#include "barrier/shape.hpp"

namespace muster::sim {

inline constexpr Traits mutant_traits{"mutant", Champion::nobody, false, "", ""};

/// Dissemination without parity: a fast partner's next signal overwrites one not yet seen.
template <Machine M>
struct NoParity {
  static constexpr Traits traits = mutant_traits;
  struct Ticket {
    unsigned rank;
    Word sense = 0;
  };
  static Layout layout(const Shape& shape) { return {0, rounds_of(shape.participants)}; }
  NoParity(const Shape& shape, typename M::Cells all) : n(shape.participants), cells(all) {}
  void prepare(M&) const {}
  Ticket ticket(unsigned rank) const { return {rank}; }
  bool wait(M& m, Ticket& t) const {
    t.sense ^= 1;
    for (unsigned round = 0, distance = 1; distance < n; ++round, distance *= 2) {
      m.store(cells.of((t.rank + distance) % n, round), t.sense, release);
      if (!m.await(cells.of(t.rank, round), equals(t.sense), acquire)) return false;
    }
    return true;
  }
  unsigned n;
  typename M::Cells cells;
};

/// Central counter that is reset after the release: an early arrival is lost.
template <Machine M>
struct LateReset {
  static constexpr Traits traits = mutant_traits;
  struct Ticket {
    Word sense = 0;
  };
  static Layout layout(const Shape&) { return {2, 0}; }
  LateReset(const Shape& shape, typename M::Cells all) : n(shape.participants), cells(all) {}
  void prepare(M&) const {}
  Ticket ticket(unsigned) const { return {}; }
  bool wait(M& m, Ticket& t) const {
    t.sense ^= 1;
    if (m.fetch_add(cells.global(0), 1, acq_rel) + 1 == n) {
      m.store(cells.global(1), t.sense, release);
      m.store(cells.global(0), 0, relaxed);
    }
    return m.await(cells.global(1), equals(t.sense), acquire);
  }
  Word n;
  typename M::Cells cells;
};

/// Flat tree whose root forgets the last participant.
template <Machine M>
struct Forgets {
  static constexpr Traits traits = mutant_traits;
  struct Ticket {
    unsigned rank;
    Word episode;
    std::vector<typename M::Cell*> counters;
  };
  static Layout layout(const Shape&) { return {1, 1}; }
  Forgets(const Shape& s, typename M::Cells all)
      : n(s.participants), first(s.first_episode), cells(all) {}
  void prepare(M& m) const {
    for (unsigned r = 0; r < n; ++r) m.store(cells.of(r, 0), first, relaxed);
    m.store(cells.global(0), first, release);
  }
  Ticket ticket(unsigned rank) const {
    Ticket t{rank, first, {}};
    for (unsigned r = 1; r + 1 < n && rank == 0; ++r) t.counters.push_back(&cells.of(r, 0));
    return t;
  }
  bool wait(M& m, Ticket& t) const {
    t.episode += 1;
    if (t.rank != 0) {
      m.store(cells.of(t.rank, 0), t.episode, release);
      return m.await(cells.global(0), at_least(t.episode), acquire);
    }
    if (!m.await_all(t.counters, at_least(t.episode), acquire)) return false;
    m.store(cells.global(0), t.episode, release);
    return true;
  }
  unsigned n;
  Word first;
  typename M::Cells cells;
};

/// Flat tree whose comparison is not modular: it hangs or lets pass when the counters wrap.
template <Machine M>
struct NotModular : Forgets<M> {
  using Forgets<M>::Forgets;
  using Ticket = typename Forgets<M>::Ticket;
  struct Larger {
    Word bound;
    bool operator()(Word seen) const { return seen >= bound; }
  };
  Ticket ticket(unsigned rank) const {
    Ticket t{rank, this->first, {}};
    for (unsigned r = 1; r < this->n && rank == 0; ++r) t.counters.push_back(&this->cells.of(r, 0));
    return t;
  }
  bool wait(M& m, Ticket& t) const {
    t.episode += 1;
    auto& go = this->cells.global(0);
    if (t.rank != 0) {
      m.store(this->cells.of(t.rank, 0), t.episode, release);
      return m.await(go, Larger{t.episode}, acquire);
    }
    if (!m.await_all(t.counters, Larger{t.episode}, acquire)) return false;
    m.store(go, t.episode, release);
    return true;
  }
};

/// Waits for any one of the set where all are needed.
template <Machine M>
struct AnyForAll : Forgets<M> {
  using Forgets<M>::Forgets;
  using Ticket = typename Forgets<M>::Ticket;
  Ticket ticket(unsigned rank) const {
    Ticket t{rank, this->first, {}};
    for (unsigned r = 1; r < this->n && rank == 0; ++r) t.counters.push_back(&this->cells.of(r, 0));
    return t;
  }
  bool wait(M& m, Ticket& t) const {
    t.episode += 1;
    auto& go = this->cells.global(0);
    if (t.rank != 0) {
      m.store(this->cells.of(t.rank, 0), t.episode, release);
      return m.await(go, at_least(t.episode), acquire);
    }
    if (!t.counters.empty() && m.await_any(t.counters, at_least(t.episode), acquire) == no_cell) {
      return false;
    }
    m.store(go, t.episode, release);
    return true;
  }
};

/// Tournament whose champion wakes all it beat but the first.
template <Machine M>
struct SleepsOn {
  static constexpr Traits traits = mutant_traits;
  struct Ticket {
    unsigned rank;
    Word sense = 0;
  };
  static Layout layout(const Shape& s) { return {0, rounds_of(s.participants) + 1}; }
  SleepsOn(const Shape& s, typename M::Cells all)
      : n(s.participants), rounds(rounds_of(s.participants)), cells(all) {}
  void prepare(M&) const {}
  Ticket ticket(unsigned rank) const { return {rank}; }
  bool wait(M& m, Ticket& t) const {
    t.sense ^= 1;
    unsigned round = 0;
    for (; round < rounds; ++round) {
      const unsigned bit = 1U << round;
      if ((t.rank & bit) != 0) {
        m.store(cells.of(t.rank - bit, round), t.sense, release);
        if (!m.await(cells.of(t.rank, rounds), equals(t.sense), acquire)) return false;
        break;
      }
      if (t.rank + bit >= n) continue;
      if (!m.await(cells.of(t.rank, round), equals(t.sense), acquire)) return false;
    }
    while (round-- > (t.rank == 0 ? 1U : 0U)) {
      if (t.rank + (1U << round) < n) {
        m.store(cells.of(t.rank + (1U << round), rounds), t.sense, release);
      }
    }
    return true;
  }
  unsigned n;
  unsigned rounds;
  typename M::Cells cells;
};

}  // namespace muster::sim
