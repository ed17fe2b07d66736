// SPDX-License-Identifier: BSD-3-Clause
// A schedule that follows its participants: for threads that nobody has bound. Each says where it
// runs when that has changed. Rank 0 looks at times; where another schedule pays, it writes that
// beside the running one, and says from which episode on it holds. A schedule that somebody has
// moved away from costs time, never more.
//
// Cost: the schedule's, two loads of what lies in the cache, and at times rank 0's looks.
// Source: ours.
//
// Invariants:
// 1. There are two areas of programs and cells. The running schedule has one of them, the next one
//    is written into the other.
// 2. Rank 0 announces episode e + 1 before it arrives in e, and after everybody has arrived in the
//    running schedule's first episode. So whoever leaves e has seen the announcement and what it
//    tells of, nobody acts on it before, and nobody still reads what is overwritten. All of that
//    follows from what every barrier promises, so that plain words and relaxed orders do.
// 3. A new area's cells stand as if e had been its schedule's last episode.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "barrier/scheduled.hpp"

namespace muster {

/// What a schedule may have of each rank, so that such a barrier can change to it.
struct Room {
  unsigned cells;
  unsigned words;  ///< of its program

  /// `participants` of more than followed_max never change, and have no room for two schedules.
  static constexpr Room of(unsigned participants) {
    const unsigned cells = std::min(64U, participants + 8);
    return {cells, 2 * cells + 64};
  }
  bool fits(const Schedule& schedule) const {
    if (schedule.cells_per_rank > cells) return false;
    return std::all_of(schedule.programs.begin(), schedule.programs.end(),
                       [&](const Schedule::Program& program) {
                         std::size_t size = 2;
                         for (unsigned s = program.arrivals; s < program.end; ++s) {
                           size += 3 + schedule.steps[s].cells();
                         }
                         return size <= words;
                       });
  }
};

constexpr unsigned followed_max = 1024;

template <MovingMachine M>
class Following {
 public:
  static constexpr Traits traits{"following", Champion::nobody, false,
                                 "that of the schedule that it has composed last", "ours"};

  struct Ticket {
    unsigned rank;
    Word episode;
    Word changed;  ///< the first episode of what runs
    unsigned area;
    Word pu;  ///< as it was said last
    Word next_look;
    Word looks_apart;
    Part<M> part;
    std::vector<Word> pus;  ///< rank 0's
  };

  static Layout layout(const Shape& shape) {
    const Room room = Room::of(shape.participants);
    const unsigned areas = shape.participants > followed_max ? 1 : 2;
    return {.global_cells = 1,
            .cells_per_rank = 1 + areas * room.cells,
            .words_per_rank = areas == 1 ? 0 : 2 * room.words};
  }

  Following(const Shape& shape, typename M::Cells cells)
      : first_(compose_proved(nullptr, shape.participants, {})),
        participants_(shape.participants),
        room_(Room::of(shape.participants)),
        first_episode_(shape.first_episode),
        cells_(cells) {}

  void prepare(M& m) const {
    set_up(m, first_, first_episode_, in_area(0));
    m.store(change(), first_episode_, relaxed);
  }

  Ticket ticket(unsigned rank) const {
    Ticket t{.rank = rank,
             .episode = first_episode_,
             .changed = first_episode_,
             .area = 0,
             .pu = 0,
             .next_look = first_episode_ + 1,
             .looks_apart = 1,
             .part = part_of<M>(first_, rank, in_area(0)),
             .pus = {}};
    t.part.steps.reserve(room_.words);
    t.part.cells.reserve(room_.words);
    if (looks(rank)) t.pus.resize(participants_);
    return t;
  }

  bool wait(M& m, Ticket& t) const {
    const Word episode = t.episode += 1;
    if (const Word pu = m.pu(); pu != t.pu) m.store(place_of(t.rank), t.pu = pu, relaxed);
    const Word announced = m.load(change(), relaxed);  // ordered by invariant 2
    if (announced == episode && announced != t.changed) {
      if (!take(m, t)) return false;
    } else if (looks(t.rank) && at_least(t.next_look)(episode)) {
      look(m, t);
    }
    return t.part.run(m, episode);
  }

  /// As somebody's pu() has told; it may have moved since.
  auto& place_of(unsigned rank) const { return cells_.of(rank, 0); }

 protected:
  bool looks(unsigned rank) const { return rank == 0 && participants_ <= followed_max; }

  /// In an episode after that in which the running schedule began.
  void look(M& m, Ticket& t) const {
    constexpr Word looks_apart_max = 1024;
    t.next_look = t.episode + t.looks_apart;
    t.looks_apart = std::min(2 * t.looks_apart, looks_apart_max);
    for (unsigned rank = 0; rank < participants_; ++rank) {
      t.pus[rank] = m.load(place_of(rank), relaxed);
    }
    const Schedule* const next = m.compose(t.pus);
    // An episode's number comes again after 2^32.
    if (next == nullptr || !room_.fits(*next) || t.episode + 1 == t.changed) return;
    write(m, *next, 1 - t.area, t.episode);
    m.store(change(), t.episode + 1, relaxed);  // ordered by invariant 2
  }

  void write(M& m, const Schedule& next, unsigned area, Word before) const {
    set_up(m, next, before, in_area(area));
    for (unsigned rank = 0; rank < participants_; ++rank) {
      const Schedule::Program& program = next.programs[rank];
      unsigned at = area * room_.words;
      const auto put = [&](Word word) { m.write(cells_.word(rank, at++), word); };
      put(program.departures - program.arrivals);
      put(program.end - program.arrivals);
      for (unsigned s = program.arrivals; s < program.end; ++s) {
        const Step& step = next.steps[s];
        put(step.awaits);
        put(step.stores);
        put(step.adders);
        for (unsigned n = 0; n < step.cells(); ++n) {
          const CellAt& cell = next.cells[step.first_cell + n];
          put(cell.rank * room_.cells + cell.index);
        }
      }
    }
  }

  /// Takes the other area's program; false if that is none. Another process may have written there:
  /// nothing that it says leads out of the barrier.
  bool take(M& m, Ticket& t) const {
    t.area = 1 - t.area;
    t.changed = t.episode;
    const unsigned end = (t.area + 1) * room_.words;
    unsigned at = t.area * room_.words;
    const auto get = [&]() -> Word {
      if (at == end) return 0;
      return m.read(cells_.word(t.rank, at++));
    };
    Part<M>& part = t.part;
    part.steps.clear();
    part.cells.clear();
    part.departures = get();
    const Word steps = get();
    if (part.departures > steps || steps > room_.words) return false;
    for (Word s = 0; s < steps; ++s) {
      Step step{static_cast<unsigned>(part.cells.size()), get(), get(), get()};
      if (step.awaits > room_.words || step.stores > room_.words) return false;
      if (step.cells() > end - at) return false;
      for (unsigned n = step.cells(); n > 0; --n) {
        const Word cell = get();
        if (cell >= participants_ * room_.cells) return false;
        part.cells.push_back(&in_area(t.area)({cell / room_.cells, cell % room_.cells}));
      }
      part.steps.push_back(step);
    }
    return true;
  }

  auto in_area(unsigned area) const {
    return [ this, area ](const CellAt& cell) -> auto& {
      return cells_.of(cell.rank, 1 + area * room_.cells + cell.index);
    };
  }

  auto& change() const { return cells_.global(0); }

  Schedule first_;
  unsigned participants_;
  Room room_;
  Word first_episode_;
  typename M::Cells cells_;
};

}  // namespace muster
