// SPDX-License-Identifier: BSD-3-Clause
// Runs a schedule (schedule.hpp): a barrier that was composed for one machine and one placement.
// Each rank goes through its own steps: it waits for some flags, then stores others. A step may end
// at a counter instead: whoever completes it goes on with the arrivals for all who have counted
// themselves in there, and the others go on with their departures.
//
// Cost: what the schedule says. Source: ours; the parts that compose.hpp puts together are those of
// Kurnosov 2022, of Yew, Tzeng and Lawrie 1987 and of Hensgen, Finkel and Manber 1988.
//
// Invariants (check_schedule() holds a schedule to them):
// 1. A flag reaches e once in episode e, and its writer stores it with all that it has seen of
//    arrivals; so whoever has seen all flags of its departures knows that all have arrived.
// 2. No flag is more than one ahead of a reader: its writer has left an episode that its reader has
//    arrived in. So flags need neither reset nor parity. Comparisons are modular: they wrap.
#pragma once

#include <vector>

#include "barrier/compose.hpp"
#include "barrier/shape.hpp"

namespace muster {

template <Machine M>
class Scheduled {
 public:
  static constexpr Traits traits{"scheduled", Champion::nobody, false,
                                 "that of its steps, which muster explain shows", "ours"};

  struct Ticket {
    Word episode;
    unsigned departures;
    std::vector<Step> steps;
    std::vector<typename M::Cell*> cells;
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 0, .cells_per_rank = schedule_of(shape).cells_per_rank};
  }

  Scheduled(const Shape& shape, typename M::Cells cells)
      : schedule_(schedule_of(shape)), first_episode_(shape.first_episode), cells_(cells) {}

  void prepare(M& m) const {
    for (const Step& step : schedule_.steps) {
      const unsigned stored = step.first_cell + step.awaits;
      for (unsigned at = stored; at < stored + step.stores; ++at) {
        m.store(cell(at), first_episode_, relaxed);
      }
      if (step.adders > 0)
        m.store(cell(stored + step.stores), first_episode_ * step.adders, relaxed);
    }
  }

  Ticket ticket(unsigned rank) const {
    const Schedule::Program& program = schedule_.programs[rank];
    Ticket t{.episode = first_episode_,
             .departures = program.departures - program.arrivals,
             .steps = {},
             .cells = {}};
    for (unsigned s = program.arrivals; s < program.end; ++s) {
      Step step = schedule_.steps[s];
      const unsigned end = step.first_cell + step.awaits + step.stores + (step.adders > 0 ? 1 : 0);
      const auto own = static_cast<unsigned>(t.cells.size());
      for (unsigned at = step.first_cell; at < end; ++at) t.cells.push_back(&cell(at));
      step.first_cell = own;
      t.steps.push_back(step);
    }
    return t;
  }

  bool wait(M& m, Ticket& t) const {
    const Word episode = t.episode += 1;
    for (unsigned s = 0; s < t.steps.size(); ++s) {
      const Step& step = t.steps[s];
      typename M::Cell* const* cell = t.cells.data() + step.first_cell;
      if (step.awaits == 1) {
        if (!m.await(**cell, at_least(episode), acquire)) return false;  // pairs with the store
      } else if (step.awaits > 1) {
        if (!m.await_all({cell, step.awaits}, at_least(episode), acquire))
          return false;  // pairs with each one's store
      }
      cell += step.awaits;
      for (unsigned n = 0; n < step.stores; ++n, ++cell) {
        m.store(**cell, episode, release);  // pairs with the awaits above
      }
      if (step.adders > 0) {
        // Releases what this one and those it stands for wrote; the last one acquires it.
        const Word before = m.fetch_add(**cell, 1, acq_rel);
        if (before + 1 != episode * step.adders) s = t.departures - 1;
      }
    }
    return true;
  }

 private:
  static Schedule schedule_of(const Shape& shape) {
    if (shape.schedule != nullptr) return *shape.schedule;
    return compose_proved(shape.groups, shape.participants, {});
  }

  auto& cell(unsigned at) const {
    return cells_.of(schedule_.cells[at].rank, schedule_.cells[at].index);
  }

  Schedule schedule_;
  Word first_episode_;
  typename M::Cells cells_;
};

}  // namespace muster
