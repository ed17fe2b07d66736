// SPDX-License-Identifier: BSD-3-Clause
// Barriers with one fault each, which no weaker memory order would cause. The checks have to catch
// them. And one that is right, though nobody ships it: its flags count episodes.
#pragma once

#include <vector>

#include "barrier/dissemination.hpp"
#include "barrier/following.hpp"
#include "barrier/mcs.hpp"
#include "barrier/shape.hpp"
#include "check/suite/mutation.hpp"

namespace muster::check {

struct HandWritten {
  const char* name;
  std::vector<Rehearsed> programs;  ///< one of which has to notice; each name once
};
/// All those of barriers, for P = 2 and 3, of shipped ones also 5 and 6, and 3 episodes.
std::vector<HandWritten> hand_written_mutants();

}  // namespace muster::check

namespace muster::check::mutants {

struct RankedTicket {
  unsigned rank;
  Word parity = 0;
  Word sense = 1;
  Word episode = 0;
};

/// What the mutants of the central counter share.
template <Machine M>
class Central {
 public:
  static constexpr Traits traits{"mutant", Champion::nobody, false, "", ""};
  struct Ticket {
    Word sense = 0;
  };
  static Layout layout(const Shape&) { return {2, 0}; }
  Central(const Shape& shape, typename M::Cells cells) : n_(shape.participants), cells_(cells) {}
  void prepare(M&) const {}
  Ticket ticket(unsigned) const { return {}; }

 protected:
  auto& count() const { return cells_.global(0); }
  auto& sense() const { return cells_.global(1); }
  Word n_;
  typename M::Cells cells_;
};

/// Releases before it resets: an arrival in between is lost.
template <Machine M>
class LateReset : public Central<M> {
 public:
  using Central<M>::Central;
  bool wait(M& m, typename Central<M>::Ticket& t) const {
    t.sense ^= 1;
    if (m.fetch_add(this->count(), 1, acq_rel) + 1 == this->n_) {
      m.store(this->sense(), t.sense, release);
      m.store(this->count(), 0, relaxed);
    }
    return m.await(this->sense(), equals(t.sense), acquire);
  }
};

/// The sense stays what it was in the first episode: nobody waits in the second.
template <Machine M>
class SenseNotReversed : public Central<M> {
 public:
  using Central<M>::Central;
  bool wait(M& m, typename Central<M>::Ticket& t) const {
    t.sense = 1;
    if (m.fetch_add(this->count(), 1, acq_rel) + 1 == this->n_) {
      m.store(this->count(), 0, relaxed);
      m.store(this->sense(), t.sense, release);
    }
    return m.await(this->sense(), equals(t.sense), acquire);
  }
};

/// One arrival too few is waited for.
template <Machine M>
class MissingParticipant : public Central<M> {
 public:
  using Central<M>::Central;
  bool wait(M& m, typename Central<M>::Ticket& t) const {
    t.sense ^= 1;
    if (m.fetch_add(this->count(), 1, acq_rel) + 2 == this->n_) {
      m.store(this->count(), 0, relaxed);
      m.store(this->sense(), t.sense, release);
    }
    return m.await(this->sense(), equals(t.sense), acquire);
  }
};

/// A load and a store instead of an update: two arrivals count as one.
template <Machine M>
class NoUpdate : public Central<M> {
 public:
  using Central<M>::Central;
  bool wait(M& m, typename Central<M>::Ticket& t) const {
    t.sense ^= 1;
    const Word before = m.load(this->count(), acquire);
    m.store(this->count(), before + 1, release);
    if (before + 1 == this->n_) {
      m.store(this->count(), 0, relaxed);
      m.store(this->sense(), t.sense, release);
    }
    return m.await(this->sense(), equals(t.sense), acquire);
  }
};

enum class Flags { no_parity, no_sense, epoch };

/// Dissemination over other flags.
template <Machine M, Flags flags>
class Disseminating {
 public:
  static constexpr Traits traits{"mutant", Champion::nobody, false, "", ""};
  using Ticket = RankedTicket;
  static Layout layout(const Shape& shape) { return {0, 2 * rounds_of(shape.participants)}; }
  Disseminating(const Shape& shape, typename M::Cells cells)
      : n_(shape.participants), rounds_(rounds_of(n_)), cells_(cells) {}
  void prepare(M&) const {}
  Ticket ticket(unsigned rank) const { return {rank}; }

  bool wait(M& m, Ticket& t) const {
    t.episode += 1;
    for (unsigned round = 0, distance = 1; round < rounds_; ++round, distance *= 2) {
      auto& theirs = cells_.of((t.rank + distance) % n_, t.parity * rounds_ + round);
      auto& mine = cells_.of(t.rank, t.parity * rounds_ + round);
      if (flags == Flags::epoch) {
        m.store(theirs, t.episode, release);
        if (!m.await(mine, at_least(t.episode), acquire)) return false;
      } else {
        m.store(theirs, t.sense, release);
        if (!m.await(mine, equals(t.sense), acquire)) return false;
      }
    }
    if (flags == Flags::no_parity) t.sense ^= 1;
    if (flags == Flags::no_sense) t.parity ^= 1;
    return true;
  }

 private:
  unsigned n_;
  unsigned rounds_;
  typename M::Cells cells_;
};

/// A predicate that does not know that counters wrap.
struct NotModular {
  Word bound;
  bool operator()(Word seen) const { return seen >= bound; }
};

enum class Gathering { not_modular, forgets_last, forgets_to_release };

/// A flat tree with a fault in its leader.
template <Machine M, Gathering fault>
class Gathered {
 public:
  static constexpr Traits traits{"mutant", Champion::nobody, false, "", ""};
  using Ticket = RankedTicket;
  static Layout layout(const Shape&) { return {0, 2}; }
  Gathered(const Shape& shape, typename M::Cells cells)
      : n_(shape.participants), first_(shape.first_episode), cells_(cells) {}
  void prepare(M& m) const {
    for (unsigned r = 0; r < n_; ++r) {
      m.store(cells_.of(r, 0), first_, relaxed);
      m.store(cells_.of(r, 1), first_, relaxed);
    }
  }
  Ticket ticket(unsigned rank) const { return {.rank = rank, .episode = first_}; }

  bool wait(M& m, Ticket& t) const {
    t.episode += 1;
    if (t.rank != 0) {
      m.store(cells_.of(t.rank, 0), t.episode, release);
      return reached(m, cells_.of(t.rank, 1), t.episode);
    }
    const unsigned gathered = fault == Gathering::forgets_last ? n_ - 1 : n_;
    const unsigned released = fault == Gathering::forgets_to_release ? n_ - 1 : n_;
    for (unsigned r = 1; r < gathered; ++r) {
      if (!reached(m, cells_.of(r, 0), t.episode)) return false;
    }
    for (unsigned r = 1; r < released; ++r) m.store(cells_.of(r, 1), t.episode, release);
    return true;
  }

 private:
  bool reached(M& m, typename M::Cell& cell, Word episode) const {
    if (fault == Gathering::not_modular) return m.await(cell, NotModular{episode}, acquire);
    return m.await(cell, at_least(episode), acquire);
  }

  unsigned n_;
  Word first_;
  typename M::Cells cells_;
};

/// The shipped tree, but inner vertices do not wait for their children: 6 have one below the root.
template <Machine M>
class InnerNotGathered : public Mcs<M> {
 public:
  using Mcs<M>::Mcs;
  typename Mcs<M>::Ticket ticket(unsigned rank) const {
    auto ticket = Mcs<M>::ticket(rank);
    if (rank != 0) ticket.children.clear();
    return ticket;
  }
};

/// The shipped dissemination without its third round, which 5 have first.
template <Machine M>
class TwoRoundsAtMost : public Dissemination<M> {
 public:
  using Dissemination<M>::Dissemination;
  typename Dissemination<M>::Ticket ticket(unsigned rank) const {
    auto ticket = Dissemination<M>::ticket(rank);
    if (ticket.rounds.size() > 2) ticket.rounds.resize(2);
    return ticket;
  }
};

enum class Changing { at_once, too_late, cells_as_they_are, not_met_before, not_met_after };

/// The shipped one that follows, with a fault in a change.
template <MovingMachine M, Changing fault>
class Changed : public Following<M> {
 public:
  using Following<M>::Following;
  using Ticket = typename Following<M>::Ticket;

  bool wait(M& m, Ticket& t) const {
    const Word episode = t.episode += 1;
    if (const Word pu = m.pu(); pu != t.pu) m.store(this->place_of(t.rank), t.pu = pu, relaxed);
    const Word announced = m.load(this->announced(), relaxed);
    const bool now = announced == episode || fault == Changing::at_once;
    if (now && announced != t.began) return change(m, t);
    if (t.rank == 0 && at_least(t.next_look)(episode)) {
      this->look(m, t);
      if (fault == Changing::too_late) m.store(this->announced(), episode, relaxed);
    }
    return run_packed(m, t.program, episode - t.began, this->cell());
  }

 private:
  bool change(M& m, Ticket& t) const {
    if (fault != Changing::not_met_before && !this->meet(m, t)) return false;
    for (unsigned n = 1; n <= Room::cells && fault != Changing::cells_as_they_are; ++n) {
      m.store(this->cells_.of(t.rank, n), 0, relaxed);
    }
    t.began = t.episode;
    return this->take(m, t) && (fault == Changing::not_met_after || this->meet(m, t));
  }
};

}  // namespace muster::check::mutants
