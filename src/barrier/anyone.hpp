// SPDX-License-Identifier: BSD-3-Clause
// A barrier whose participants have no ranks: in each episode as many threads as it counts, of
// however many there are, whichever come first. As pthread_barrier_wait() has it. One word holds
// the episode and how many have arrived in it, so that who arrives learns both at once: between a
// look at the episode and a count of its own another episode may have passed. Who completes an
// episode opens it in a second word, on which the others wait: arrivals wake nobody.
//
// Cost: P atomic additions on one line, one after another: O(P).
// Source: Mellor-Crummey and Scott, ACM TOCS 9(1), 1991, algorithm 7; the word is ours.
//
// Invariants:
// 1. The arrivals of an episode are counted below `one_episode_`; the last one's sum is the next
//    episode's start. So the cells are of one number of participants.
// 2. Episodes are opened by additions: who completed one may come after who completed the next, and
//    must not take it back.
// 3. A wait is over before 2^30 more have arrived, which takes half a minute at 30 ns each: nobody
//    waits for who is late in leaving. With room for 2^16 arrivals in each episode two threads had
//    passed 2^15 of these in 0.1 s, and who missed them hung.
#pragma once

#include <bit>

#include "barrier/shape.hpp"

namespace muster {

template <Machine M>
class Anyone {
 public:
  static constexpr Traits traits{"anyone", Champion::last_to_arrive, true,
                                 "P atomic additions on one line, in sequence",
                                 "Mellor-Crummey and Scott 1991, algorithm 7, without ranks"};

  /// What an episode adds to a word.
  static constexpr Word one_episode_of(Word participants) { return std::bit_ceil(participants); }

  struct Ticket {
    Word end = 0;  ///< of the episode
    bool was_last = false;
    unsigned place = 0;  ///< how many had come before
  };

  static Layout layout(const Shape&) { return {.global_cells = 2, .cells_per_rank = 0}; }

  Anyone(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants),
        one_episode_(one_episode_of(shape.participants)),
        start_(shape.first_episode * one_episode_),
        cells_(cells) {}

  void prepare(M& m) const {
    m.store(arrivals(), start_, relaxed);
    m.store(opened(), start_, relaxed);
  }
  Ticket ticket(unsigned) const { return {}; }

  bool arrive(M& m, Ticket& t) const {
    Word before = m.load(arrivals(), relaxed);
    Word after = 0;
    do {
      t.end = (before | (one_episode_ - 1)) + 1;
      t.place = before & (one_episode_ - 1);
      t.was_last = t.place + 1 == participants_;
      after = t.was_last ? t.end : before + 1;
      // Releases this participant's writes and, read from by the next one, all earlier ones'; the
      // last acquires them all.
    } while (!m.compare_exchange(arrivals(), before, after, acq_rel));
    if (!t.was_last) return true;
    if (!m.all_arrived()) return false;
    m.fetch_add(opened(), one_episode_, release);  // pairs with the await in depart
    return true;
  }

  bool depart(M& m, Ticket& t) const {
    return t.was_last || m.await(opened(), at_least(t.end), acquire);  // pairs with arrive
  }

  bool wait(M& m, Ticket& t) const { return arrive(m, t) && depart(m, t); }

 private:
  auto& arrivals() const { return cells_.global(0); }
  auto& opened() const { return cells_.global(1); }

  Word participants_;
  Word one_episode_;
  Word start_;
  typename M::Cells cells_;
};

}  // namespace muster
