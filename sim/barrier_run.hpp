// SPDX-License-Identifier: BSD-3-Clause
// One barrier on the modelled machine, in the steady back-to-back period that osu_barrier
// measures: some episodes of warm-up, then some that count. Every run checks what a barrier
// promises: nobody leaves an episode before all have arrived in it.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "barrier/registry.hpp"
#include "machine/error.hpp"
#include "sim/modelled.hpp"
#include "sim/recorder.hpp"

namespace muster::sim {

struct BarrierSetup {
  Geometry geometry;
  Parameters parameters;
  Mechanisms mechanisms = Mechanisms::all();
  Shape shape;  ///< shape.participants is the geometry's
  unsigned warm_up = 8;
  unsigned measured = 20;
  std::uint64_t seed = 1;
  /// What a participant does before its episode besides calling the barrier; empty for nothing.
  std::function<Time(Random&, unsigned participant, unsigned episode)> work;
  Recorder* recorder = nullptr;  ///< told of the episode after the warm-up
};

struct BarrierOutcome {
  double latency_ns = 0;    ///< mean period of an episode
  double exit_skew_ns = 0;  ///< between the first and the last to leave, mean
  std::uint64_t events = 0;
  Layout layout;  ///< where the cells are: the global ones first, then rank by rank
};

/// The barrier `B<Modelled>`. Throws Error(system) when it deadlocks or lets somebody pass early:
/// the message names the episode. Deterministic: the same setup gives the same outcome to the bit.
template <class B>
BarrierOutcome run_barrier_as(const BarrierSetup& setup, StackPool& pool) {
  const unsigned participants = setup.shape.participants;
  const unsigned episodes = setup.warm_up + setup.measured;
  const Layout layout = B::layout(setup.shape);
  Engine engine(setup.geometry, setup.parameters, setup.mechanisms, setup.seed,
                layout.global_cells + std::size_t{participants} * layout.cells_per_rank, pool);
  for (unsigned rank = 0; rank < participants; ++rank) {
    for (unsigned cell = 0; cell < layout.cells_per_rank; ++cell) {
      engine.set_home(layout.global_cells + std::size_t{rank} * layout.cells_per_rank + cell, rank);
    }
  }
  for (unsigned cell = 0; cell < layout.global_cells; ++cell) engine.set_home(cell, 0);

  const B barrier(setup.shape, typename Modelled::Cells(engine, layout));
  const Time call =
      setup.mechanisms.has(Mechanism::call_cost) ? from_ns(setup.parameters.call_ns) : 0;
  struct Episode {
    unsigned arrived = 0;
    unsigned left = 0;
    Time first_exit = INT64_MAX;
    Time last_exit = 0;
  };
  std::vector<Episode> log(episodes);
  if (setup.shape.first_episode != 0) {  // before anybody else does anything
    engine.start(0, [&] {
      Modelled port(engine, 0);
      barrier.prepare(port);
    });
    engine.run(UINT64_MAX);
  }
  for (unsigned rank = 0; rank < participants; ++rank) {
    engine.start(
        rank,
        [&, rank] {
          Modelled port(engine, rank);
          auto ticket = barrier.ticket(rank);
          for (unsigned e = 0; e < episodes; ++e) {
            const Time before =
                call + (setup.work ? setup.work(engine.random(), rank, e) : Time{0});
            engine.delay(rank, before);
            Episode& episode = log[e];
            ++episode.arrived;
            const bool recorded = setup.recorder != nullptr && e == setup.warm_up;
            if (recorded) {
              engine.set_recorder(setup.recorder);
              setup.recorder->entered(rank, engine.clock(rank));
            }
            if (!barrier.wait(port, ticket)) return;
            if (episode.arrived != participants) {
              throw Error(Status::system, "rank " + std::to_string(rank) + " left episode " +
                                              std::to_string(e) + " when " +
                                              std::to_string(episode.arrived) + " of " +
                                              std::to_string(participants) + " had arrived");
            }
            const Time now = engine.clock(rank);
            episode.first_exit = std::min(episode.first_exit, now);
            episode.last_exit = std::max(episode.last_exit, now);
            ++episode.left;
            if (recorded) setup.recorder->left(rank, now);
            if (recorded && episode.left == participants) engine.set_recorder(nullptr);
          }
        },
        static_cast<Time>(engine.random().below(1000)));
  }
  engine.run(std::uint64_t{episodes} * 4000 * (participants + 16) *
             (16 + participants / 8));  // far more than any barrier here needs

  BarrierOutcome outcome;
  outcome.events = engine.events();
  const Time begin = setup.warm_up > 0 ? log[setup.warm_up - 1].last_exit : 0;
  outcome.latency_ns = to_ns(log.back().last_exit - begin) / setup.measured;
  for (unsigned e = setup.warm_up; e < episodes; ++e) {
    outcome.exit_skew_ns += to_ns(log[e].last_exit - log[e].first_exit) / setup.measured;
  }
  outcome.layout = layout;
  return outcome;
}

/// What the model runs: the registered barriers (registry.hpp), then those over messages.
const std::vector<std::string>& modelled_barriers();

/// As parse_algorithm(), which knows only the registered ones: also those of OpenMP's runtimes.
Algorithm parse_modelled(std::string_view text);

/// The barrier of that name, one of modelled_barriers() or of OpenMP's. Throws Error(unknown_name)
/// besides.
BarrierOutcome run_barrier(std::string_view name, const BarrierSetup& setup, StackPool& pool);

}  // namespace muster::sim
