// SPDX-License-Identifier: BSD-3-Clause
// A schedule that follows its participants: for threads that nobody has bound. Each says where it
// runs when that has changed. Rank 0 looks at times; where another schedule pays, it writes that
// down, and says from which episode on it holds. In that episode all meet twice at a counter, and
// take it over in between. A schedule that somebody has moved away from costs time, never more.
//
// Cost: the schedule's, two loads of what lies in the cache, and at times rank 0's looks.
// Source: ours.
//
// Invariants:
// 1. Rank 0 announces episode e + 1 before it arrives in e. So whoever leaves e has seen that, and
//    nobody acts on it before: that follows from what every barrier promises, so that relaxed
//    orders do.
// 2. When all have met for the first time in e + 1, everybody has left e: nobody goes by the old
//    schedule any more. When they have met again, all cells are 0 again, each has its own copy of
//    its program, and what was written down may be overwritten.
// 3. A schedule's cells count its own episodes, from the one after its change on.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "barrier/packed.hpp"

namespace muster {

/// More participants stay with the schedule that they begin with.
constexpr unsigned followed_max = 1024;

template <MovingMachine M>
class Following {
 public:
  static constexpr Traits traits{"following", Champion::nobody, false,
                                 "that of the schedule that it has composed last", "ours"};

  struct Ticket {
    unsigned rank;
    Word episode;
    Word began;         ///< the episode before the first one of what runs
    Word meetings = 0;  ///< at the counter
    Word pu = 0;        ///< as it was said last
    Word next_look;
    Word looks_apart = 1;
    Program program;
    std::unique_ptr<Word[]> pus;  ///< rank 0's
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 3,
            .cells_per_rank = 1 + Room::cells,
            .words = shape.participants > followed_max ? 0 : shape.participants * Room::words};
  }

  Following(const Shape& shape, typename M::Cells cells)
      : first_(pack(shape.schedule != nullptr ? *shape.schedule
                                              : unplaced_schedule(shape.participants))),
        participants_(shape.participants),
        first_episode_(shape.first_episode),
        cells_(cells) {}

  void prepare(M& m) const { m.store(announced(), first_episode_, relaxed); }

  Ticket ticket(unsigned rank) const {
    Ticket t{.rank = rank,
             .episode = first_episode_,
             .began = first_episode_,
             .next_look = first_episode_ + 2,  // everybody has said where it is
             .program = {},
             .pus = nullptr};
    take_packed([this](Word at) { return first_[at]; }, participants_, rank, t.program);
    if (rank == 0 && participants_ <= followed_max) t.pus = std::make_unique<Word[]>(participants_);
    return t;
  }

  bool wait(M& m, Ticket& t) const {
    const Word episode = t.episode += 1;
    if (const Word pu = m.pu(); pu != t.pu) m.store(place_of(t.rank), t.pu = pu, relaxed);
    // An episode's number comes again after 2^32.
    if (m.load(announced(), relaxed) == episode && t.began != episode) return change(m, t);
    if (t.pus != nullptr && at_least(t.next_look)(episode)) look(m, t);
    return run_packed(m, t.program, episode - t.began, cell());
  }

  /// As somebody's pu() has told; it may have moved since.
  auto& place_of(unsigned rank) const { return cells_.of(rank, 0); }

 protected:
  void look(M& m, Ticket& t) const {
    constexpr Word looks_apart_max = 256;
    t.looks_apart = std::min(2 * t.looks_apart, looks_apart_max);
    t.next_look = t.episode + t.looks_apart;
    for (unsigned rank = 0; rank < participants_; ++rank) {
      t.pus[rank] = m.load(place_of(rank), relaxed);
    }
    const std::span<const Word> next = m.compose({t.pus.get(), participants_});
    if (next.empty()) return;
    for (unsigned n = 0; n < next.size(); ++n) m.write(cells_.word(n), next[n]);
    m.store(announced(), t.episode + 1, relaxed);  // invariant 1
  }

  bool change(M& m, Ticket& t) const {
    if (!meet(m, t)) return false;
    for (unsigned index = 1; index <= Room::cells; ++index) {
      m.store(cells_.of(t.rank, index), 0, relaxed);  // ordered by the second meeting
    }
    t.began = t.episode;
    return take(m, t) && meet(m, t);
  }

  bool take(M& m, Ticket& t) const {
    const auto read = [&](Word at) -> Word { return m.read(cells_.word(at)); };
    return take_packed(read, participants_, t.rank, t.program);
  }

  bool meet(M& m, Ticket& t) const {
    const Word all = ++t.meetings * participants_;
    // Releases what this one wrote; the last one acquires it.
    if (m.fetch_add(cells_.global(1), 1, acq_rel) + 1 != all) {
      return m.await(met(), at_least(t.meetings), acquire);  // pairs with the store
    }
    m.store(met(), t.meetings, release);
    return true;
  }

  auto cell() const {
    return [this](Word number) -> auto& {
      return cells_.of(number / Room::cells, 1 + number % Room::cells);
    };
  }
  auto& announced() const { return cells_.global(0); }
  auto& met() const { return cells_.global(2); }

  std::vector<Word> first_;
  unsigned participants_;
  Word first_episode_;
  typename M::Cells cells_;
};

}  // namespace muster
