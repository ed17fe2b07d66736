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

template <LockMachine M>
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

  bool execute(M& m, Ticket& t, auto& work) const {
    using Turn = typename CcSynch<M>::Turn;
    if (!queues_.join(m, t.queue, t.cluster)) {
      const Turn turn = queues_.leave_request(m, t.queue, work);
      if (turn != Turn::head) return turn == Turn::done;
    }
    const Word mine =
        m.load(owned(t.cluster), relaxed);  // combiners of a cluster follow each other
    m.store(busy(mine), 1, relaxed);        // before the exchange releases it
    const Word predecessor = m.exchange(central(), mine, acq_rel);  // pairs with itself: it is busy
    if (!m.await(busy(predecessor), equals(0), acquire))
      return false;  // pairs with the store below
    work.run_own(m);
    const Word next = queues_.combine(m, t.queue, work);
    m.store(busy(mine), 0, release);  // pairs with the next combiner's await
    m.store(owned(t.cluster), predecessor, relaxed);
    queues_.make_head(m, next);
    return true;
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
