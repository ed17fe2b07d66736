// SPDX-License-Identifier: BSD-3-Clause
// A lock with readers, who share it. Each NUMA node has a word that its readers add to when they
// come and another one when they go. Writers take turns by tickets; whose turn it is says so in
// each node's first word and waits for the readers it finds there. Who comes to read meanwhile
// waits for this writer, and not for the next one: readers and writers alternate.
//
// Cost: a reader two atomic additions on lines of its node; a writer as many as there are nodes,
// twice, and its ticket.
// Source: Brandenburg and Anderson, Real-Time Systems 46(1), 2010, section 4 (PF-T, phase-fair);
// the words by node: Calciu et al., PPoPP 2013. What lets readers in is a word of its own here, so
// that they wait for a number and not for a bit that comes again.
//
// Invariants:
// 1. `serving` is the number of the writer whose turn it is, or that of the next one to come.
// 2. `came` has the bits of a writer that is announced at the node; it goes in when as many readers
//    have gone as had come before it.
// 3. `writers` counts those that were announced at the node and have ended. A reader that has seen
//    one's bits finds it ended or not: another one after that is announced only by acquire(), which
//    waits for this reader. try_acquire() announces itself where nobody reads.
#pragma once

#include "lock/shape.hpp"

namespace muster::locks {

template <LockMachine M>
class PhaseFair : public Direct<PhaseFair<M>> {
 public:
  static constexpr Traits traits{"phase-fair", Style::direct, true, "two a node; readers none",
                                 "Brandenburg and Anderson 2010, PF-T; words by NUMA node"};

  struct Ticket {
    Word number = 0;   ///< as a writer
    unsigned cluster;  ///< may change between two sections
  };

  static Layout layout(const Shape& shape) {
    return {
        .global_cells = 2 + cells_per_cluster * shape.clusters, .slots = 0, .cells_per_slot = 0};
  }
  PhaseFair(const Shape& shape, typename M::Cells cells)
      : clusters_(shape.clusters), cells_(cells) {}
  Ticket ticket(unsigned client) const { return ticket(client, client % clusters_); }
  Ticket ticket(unsigned, unsigned cluster) const { return {.cluster = cluster}; }

  bool acquire(M& m, Ticket& t) const {
    t.number = m.fetch_add(next(), 1, relaxed);
    if (!m.await(serving(), equals(t.number), muster::acquire)) return false;  // pairs with release
    for (unsigned c = 0; c < clusters_; ++c) {
      // pairs with acquire_shared's addition
      const Word readers = m.fetch_add(came(c), bits(ended(m, c)), muster::release);
      m.store(before(c), readers, relaxed);
    }
    for (unsigned c = 0; c < clusters_; ++c) {
      const Word all = m.load(before(c), relaxed);
      // pairs with release_shared's additions
      if (!m.await(gone(c), equals(all), muster::acquire)) return false;
    }
    return true;
  }

  /// If no writer is there or waits, and nobody reads.
  bool try_acquire(M& m, Ticket& t) const {
    t.number = m.load(serving(), muster::acquire);  // pairs with release's store
    Word drawn = t.number;
    if (!m.compare_exchange(next(), drawn, t.number + 1, relaxed)) return false;
    for (unsigned c = 0; c < clusters_; ++c) {
      const Word left = m.load(gone(c), muster::acquire);  // pairs with release_shared's additions
      Word readers = left;
      // pairs with acquire_shared's addition
      if (m.compare_exchange(came(c), readers, left + bits(ended(m, c)), muster::release)) continue;
      end(m, t, c);
      return false;
    }
    return true;
  }

  void release(M& m, Ticket& t) const { end(m, t, clusters_); }

  bool acquire_shared(M& m, Ticket& t) const {
    const Word seen = m.fetch_add(came(t.cluster), reader, muster::acquire);  // pairs with end
    if ((seen & present) == 0) return true;
    const Word count = m.load(writers(t.cluster), muster::acquire);  // pairs with end's store
    if (bits(count) != (seen & (reader - 1))) return true;
    return m.await(writers(t.cluster), at_least(count + 1), muster::acquire);  // with the same
  }
  void release_shared(M& m, Ticket& t) const {
    m.fetch_add(gone(t.cluster), reader, muster::release);  // pairs with the writer's await
  }

 private:
  static constexpr Word present = 1;  // in `came`: a writer, and
  static constexpr Word odd = 2;      // whether an odd number have ended before it
  static constexpr Word reader = 4;
  static constexpr Word bits(Word count) { return present | (count & 1) * odd; }

  /// By whose turn it is.
  Word ended(M& m, unsigned cluster) const { return m.load(writers(cluster), relaxed); }
  /// It was announced at so many nodes.
  void end(M& m, const Ticket& t, unsigned clusters) const {
    for (unsigned c = 0; c < clusters; ++c) {
      const Word count = ended(m, c);
      // pairs with acquire_shared's addition: who comes now does not wait
      m.fetch_add(came(c), Word{0} - bits(count), muster::release);
      m.store(writers(c), count + 1, muster::release);  // pairs with acquire_shared's reads
    }
    m.store(serving(), t.number + 1, muster::release);  // pairs with acquire's await
  }

  auto& next() const { return cells_.global(0); }
  auto& serving() const { return cells_.global(1); }
  static constexpr unsigned cells_per_cluster = 4;
  auto& came(unsigned cluster) const { return cells_.global(2 + cells_per_cluster * cluster); }
  auto& gone(unsigned cluster) const { return cells_.global(3 + cells_per_cluster * cluster); }
  auto& writers(unsigned cluster) const { return cells_.global(4 + cells_per_cluster * cluster); }
  /// The writer's: what `gone` will be when all that came before it have gone.
  auto& before(unsigned cluster) const { return cells_.global(5 + cells_per_cluster * cluster); }

  unsigned clusters_;
  typename M::Cells cells_;
};

}  // namespace muster::locks
