// SPDX-License-Identifier: BSD-3-Clause
// The barriers of the OpenMP runtimes, as algorithms: for comparison in the model. What they do for
// tasks is left out.
#pragma once

#include "barrier/sense_reversing.hpp"

namespace muster {

/// GNU's: a counter that counts down, and a generation, each on a line of its own. Which is the
/// central counter, with a generation where that has a sense.
/// Source: GCC's libgomp/config/linux/bar.c.
template <Machine M>
class LibgompBarrier : public SenseReversing<M> {
 public:
  using SenseReversing<M>::SenseReversing;
  static constexpr Traits traits{"libgomp", Champion::last_to_arrive, true,
                                 "P atomic additions on one line, in sequence", "GCC's libgomp"};
};

/// LLVM's default, `hyper`: a tree of four. A parent looks at its children's flags one after
/// another, child by child and level by level; down, it stores each child's flag, the far ones
/// first. All of a member's flags are its own.
/// Source: LLVM's openmp/runtime/src/kmp_barrier.cpp, branch bits 2.
///
/// Invariant: a member's flags count episodes; its parent stores the second after it has read the
/// first.
template <Machine M>
class LibompHyper {
 public:
  static constexpr Traits traits{"libomp-hyper", Champion::rank0, false,
                                 "P - 1 stores up and P - 1 down a tree of four, a chain of "
                                 "6 log4 P",
                                 "LLVM's libomp"};

  struct Ticket {
    unsigned rank = 0;
    Word episode = 0;
  };

  static Layout layout(const Shape&) { return {.global_cells = 0, .cells_per_rank = 2}; }

  LibompHyper(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants), first_(shape.first_episode), cells_(cells) {}

  void prepare(M& m) const {
    for (unsigned rank = 0; rank < participants_; ++rank) {
      m.store(arrived(rank), first_, relaxed);
      m.store(go(rank), first_, relaxed);
    }
  }
  Ticket ticket(unsigned rank) const { return {rank, first_}; }

  bool wait(M& m, Ticket& t) const {
    ++t.episode;
    unsigned reach = 1;  // of ranks that a subtree at this level has
    for (; reach < participants_ && t.rank / reach % 4 == 0; reach *= 4) {
      for (unsigned child = 1; child < 4 && child * reach < participants_ - t.rank; ++child) {
        // Pairs with the child's store below.
        if (!m.await(arrived(t.rank + child * reach), equals(t.episode), acquire)) return false;
      }
    }
    if (t.rank == 0) {
      if (!m.all_arrived()) return false;
    } else {
      m.store(arrived(t.rank), t.episode, release);  // pairs with the parent's await above
      if (!m.await(go(t.rank), equals(t.episode), acquire)) return false;  // and with its store
    }
    while ((reach /= 4) != 0) {
      for (unsigned child = 3; child >= 1; --child) {
        if (child * reach < participants_ - t.rank) {
          m.store(go(t.rank + child * reach), t.episode, release);  // pairs with the child's await
        }
      }
    }
    return true;
  }

 private:
  auto& arrived(unsigned rank) const { return cells_.of(rank, 0); }
  auto& go(unsigned rank) const { return cells_.of(rank, 1); }

  unsigned participants_;
  Word first_;
  typename M::Cells cells_;
};

/// Calls `fn.template operator()<B>()` for each of them over M.
template <class M, class Fn>
void for_each_openmp_peer(Fn&& fn) {
  fn.template operator()<LibgompBarrier<M>>();
  fn.template operator()<LibompHyper<M>>();
}

}  // namespace muster
