// SPDX-License-Identifier: BSD-3-Clause
// H-Synch: a CC-Synch queue for each cluster (NUMA node) and a queue lock among the combiners, so
// that the data stays in one cluster for a whole batch.
//
// Cost: CC-Synch's within the cluster, and two transfers between clusters a batch.
// Source: Fatourou and Kallimanis, PPoPP 2012, section 5 (H-Synch); the lock among them is CLH.
//
// Invariants:
// 1. Whoever executes requests is its queue's combiner and has the central lock.
// 2. A cluster has one combiner at a time, so the central lock needs one word a cluster, and one.
#pragma once

#include "lock/cc_synch.hpp"

namespace muster::locks {

template <Machine M>
class HSynch {
 public:
  static constexpr Traits traits{"h-synch", Style::combining, true, "three within a cluster",
                                 "Fatourou and Kallimanis 2012, H-Synch"};

  struct Ticket {
    typename CcSynch<M>::Ticket queue;
    unsigned cluster;  ///< may change between two sections: spare slots are alike
  };

  /// Global: the clusters' tails, the central lock's tail, its words, and which each cluster has.
  static Layout layout(const Shape& shape) {
    const unsigned c = shape.clusters;
    return {.global_cells = c + 1 + (c + 1) + c, .slots = shape.clients + c, .cells_per_slot = 2};
  }
  HSynch(const Shape& shape, typename M::Cells cells)
      : clusters_(shape.clusters), cells_(cells), queues_(shape, cells) {}

  Ticket ticket(unsigned client) const { return ticket(client, client % clusters_); }
  /// Clusters' tails are 0 at first: slot 0 is cluster 0's, and prepare() sets the others'.
  Ticket ticket(unsigned client, unsigned cluster) const { return {{client + clusters_}, cluster}; }
  /// Once, by one thread, before the first execute.
  void prepare(M& m) const {
    for (unsigned c = 0; c < clusters_; ++c) {
      m.store(cells_.global(c), c, relaxed);
      m.store(owned(c), c + 1, relaxed);
    }
  }

  template <class Work>
  bool execute(M& m, Ticket& t, Work& work) const {
    Word mine = 0;
    Word predecessor = 0;
    const auto enter = [&] {
      mine = m.load(owned(t.cluster), relaxed);  // this cluster's combiners follow one another
      m.store(busy(mine), 1, relaxed);           // before the exchange releases it
      predecessor = m.exchange(central(), mine, acq_rel);     // pairs with itself: the word is busy
      return m.await(busy(predecessor), equals(0), acquire);  // pairs with leave's store
    };
    const auto leave = [&] {
      m.store(busy(mine), 0, release);  // pairs with the next combiner's await
      m.store(owned(t.cluster), predecessor, relaxed);
    };
    return queues_.enqueue(m, t.queue, t.cluster, work, enter, leave);
  }

 private:
  auto& central() const { return cells_.global(clusters_); }
  auto& busy(Word word) const { return cells_.global(clusters_ + 1 + word); }
  auto& owned(unsigned cluster) const { return cells_.global(2 * clusters_ + 2 + cluster); }

  unsigned clusters_;
  typename M::Cells cells_;
  CcSynch<M> queues_;
};

}  // namespace muster::locks
