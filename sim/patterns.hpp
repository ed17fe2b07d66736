// SPDX-License-Identifier: BSD-3-Clause
// The micro-benchmarks that tell a machine's parameters, each as a barrier: nobody leaves an
// episode before all have arrived in it. So they run, unchanged, on hardware and in the model, with
// what runs barriers there.
#pragma once

#include <vector>

#include "barrier/shape.hpp"

namespace muster::sim {

inline constexpr Traits pattern_traits{"pattern", Champion::nobody, false, "", ""};

/// What a pattern's shape means by `radix`: how many flags, or operations, an episode has.
template <Machine M>
class MicroPattern {
 public:
  static constexpr Traits traits = pattern_traits;
  struct Ticket {
    unsigned rank;
    Word episode = 0;
    std::vector<typename M::Cell*> flags;
  };
  MicroPattern(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants), count_(shape.radix), cells_(cells) {}
  void prepare(M&) const {}
  Ticket ticket(unsigned rank) const { return {rank, 0, {}}; }

 protected:
  unsigned participants_;
  unsigned count_;
  typename M::Cells cells_;
};

/// Rank 0 tells rank 1, which answers: a flag's round trip.
template <Machine M>
struct PingPong : MicroPattern<M> {
  using typename MicroPattern<M>::Ticket;
  using MicroPattern<M>::MicroPattern;
  static Layout layout(const Shape&) { return {0, 1}; }
  bool wait(M& m, Ticket& t) const {
    auto& own = this->cells_.of(t.rank, 0);
    auto& others = this->cells_.of(1 - t.rank, 0);
    ++t.episode;
    if (t.rank == 0) m.store(others, t.episode, release);  // pairs with the other's await
    if (!m.await(own, equals(t.episode), acquire)) return false;
    if (t.rank == 1) m.store(others, t.episode, release);  // pairs with the other's await
    return true;
  }
};

/// Rank 0 writes one flag, which all others read; each answers in a flag of its own.
template <Machine M>
struct OneWriter : MicroPattern<M> {
  using typename MicroPattern<M>::Ticket;
  using MicroPattern<M>::MicroPattern;
  static Layout layout(const Shape&) { return {1, 1}; }
  Ticket ticket(unsigned rank) const {
    Ticket t{rank, 0, {}};
    for (unsigned r = 1; rank == 0 && r < this->participants_; ++r) {
      t.flags.push_back(&this->cells_.of(r, 0));
    }
    return t;
  }
  bool wait(M& m, Ticket& t) const {
    ++t.episode;
    auto& go = this->cells_.global(0);
    if (t.rank != 0) {
      if (!m.await(go, equals(t.episode), acquire)) return false;  // pairs with rank 0's store
      m.store(this->cells_.of(t.rank, 0), t.episode, release);     // pairs with rank 0's await_all
      return true;
    }
    m.store(go, t.episode, release);
    return m.await_all(t.flags, at_least(t.episode), acquire);
  }
};

/// `count` flags, written by all others in turn, polled by rank 0 as a set; then it answers.
template <Machine M>
struct OneReader : MicroPattern<M> {
  using typename MicroPattern<M>::Ticket;
  using MicroPattern<M>::MicroPattern;
  static Layout layout(const Shape& shape) { return {1, shape.radix}; }
  Ticket ticket(unsigned rank) const {
    Ticket t{rank, 0, {}};
    for (unsigned n = 0; n < this->count_; ++n) {
      const unsigned writer = 1 + n % (this->participants_ - 1);
      if (rank == 0 || rank == writer) t.flags.push_back(&this->cells_.of(writer, n));
    }
    return t;
  }
  bool wait(M& m, Ticket& t) const {
    ++t.episode;
    auto& go = this->cells_.global(0);
    if (t.rank == 0) {
      if (!m.await_all(t.flags, at_least(t.episode), acquire)) return false;
      m.store(go, t.episode, release);  // pairs with the others' await
      return true;
    }
    for (auto* flag : t.flags) m.store(*flag, t.episode, release);  // pairs with rank 0's await_all
    return m.await(go, equals(t.episode), acquire);
  }
};

/// Rank 0 stores to `count` flags; their readers wait for one after another, then answer.
template <Machine M>
struct ManyStores : MicroPattern<M> {
  using typename MicroPattern<M>::Ticket;
  using MicroPattern<M>::MicroPattern;
  static Layout layout(const Shape& shape) { return {0, shape.radix + 1}; }
  Ticket ticket(unsigned rank) const {
    Ticket t{rank, 0, {}};
    for (unsigned n = 0; n < this->count_; ++n) {
      const unsigned reader = 1 + n % (this->participants_ - 1);
      if (rank == 0 || rank == reader) t.flags.push_back(&this->cells_.of(reader, n + 1));
    }
    return t;
  }
  bool wait(M& m, Ticket& t) const {
    ++t.episode;
    if (t.rank == 0) {
      for (auto* flag : t.flags)
        m.store(*flag, t.episode, release);  // pairs with its reader's await
      for (unsigned r = 1; r < this->participants_; ++r) {
        if (!m.await(this->cells_.of(r, 0), equals(t.episode), acquire)) return false;
      }
      return true;
    }
    for (auto* flag : t.flags) {
      if (!m.await(*flag, equals(t.episode), acquire)) return false;
    }
    m.store(this->cells_.of(t.rank, 0), t.episode, release);  // pairs with rank 0's await
    return true;
  }
};

/// Everybody adds `count` times to one counter, then waits until all have.
template <Machine M>
struct OneCounter : MicroPattern<M> {
  using typename MicroPattern<M>::Ticket;
  using MicroPattern<M>::MicroPattern;
  static Layout layout(const Shape&) { return {1, 0}; }
  bool wait(M& m, Ticket& t) const {
    ++t.episode;
    auto& counter = this->cells_.global(0);
    for (unsigned n = 0; n < this->count_; ++n) m.fetch_add(counter, 1, acq_rel);
    const Word all = t.episode * this->count_ * this->participants_;
    return m.await(counter, at_least(all), acquire);  // pairs with the additions
  }
};

/// A core alone stores `count` times to a line it owns.
template <Machine M>
struct OwnStores : MicroPattern<M> {
  using typename MicroPattern<M>::Ticket;
  using MicroPattern<M>::MicroPattern;
  static Layout layout(const Shape&) { return {0, 1}; }
  bool wait(M& m, Ticket& t) const {
    for (unsigned n = 0; n < this->count_; ++n) m.store(this->cells_.of(t.rank, 0), n, release);
    return true;
  }
};

/// A core alone looks `count` times at what is there: turns of a polling loop that never miss.
template <Machine M>
struct OwnLooks : MicroPattern<M> {
  using typename MicroPattern<M>::Ticket;
  using MicroPattern<M>::MicroPattern;
  static Layout layout(const Shape&) { return {0, 1}; }
  bool wait(M& m, Ticket& t) const {
    for (unsigned n = 0; n < this->count_; ++n) {
      if (!m.await(this->cells_.of(t.rank, 0), equals(0), acquire)) return false;
    }
    return true;
  }
};

}  // namespace muster::sim
