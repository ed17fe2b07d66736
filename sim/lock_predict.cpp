// SPDX-License-Identifier: BSD-3-Clause
#include "sim/lock_predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace muster::sim {
namespace {

LockSetup prepare(const MachineModel& machine, const CoreTree& tree, const LockQuery& query,
                  const LockEffort& effort) {
  std::vector<unsigned> cores = query.placement.threads;
  if (query.placement.server) cores.push_back(*query.placement.server);
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  std::vector<unsigned> spares;
  if (may_have_server(query.lock) && !wants_server(query.lock) && query.placement.server) {
    for (const NumaCores& numa : tree.numa_nodes()) {
      const auto spare = std::find_if(numa.cores.begin(), numa.cores.end(), [&](unsigned core) {
        return !std::binary_search(cores.begin(), cores.end(), core);
      });
      if (spare != numa.cores.end()) spares.push_back(*spare);
    }
    cores.insert(cores.end(), spares.begin(), spares.end());
    std::sort(cores.begin(), cores.end());
  }
  const auto participant_on = [&](unsigned core) {
    return static_cast<unsigned>(std::lower_bound(cores.begin(), cores.end(), core) -
                                 cores.begin());
  };
  LockSetup setup;
  setup.geometry = geometry_of(machine, cores);
  setup.parameters = machine.parameters;
  setup.mechanisms = machine.mechanisms;
  for (const unsigned core : query.placement.threads) {
    setup.threads.push_back(participant_on(core));
  }
  if (query.placement.server) setup.server = participant_on(*query.placement.server);
  for (const unsigned core : spares) setup.spares.push_back(participant_on(core));
  const unsigned near_memory = tree.numa_nodes().at(query.placement.memory).cores.front();
  setup.home_die = geometry_of(machine, {near_memory}).die_of(0);
  setup.pattern = query.pattern;
  setup.words = query.words;
  setup.stride = query.stride;
  setup.readers = query.readers;
  setup.warm_up = effort.warm_up;
  setup.window = effort.window;
  setup.slice_ns = effort.slice_ns;
  setup.seed = effort.seed;
  setup.sections = query.sections;
  setup.sleep = query.sleep;
  return setup;
}

}  // namespace

std::vector<std::vector<LockOutcome>> predict_locks(const std::vector<LockBatch>& batches,
                                                    const LockEffort& effort,
                                                    const Progress& progress) {
  struct Run {
    const LockBatch* batch;
    const LockQuery* query;
    LockOutcome outcome;
  };
  std::vector<Run> runs;
  std::vector<std::vector<std::size_t>> run_of(batches.size());
  for (std::size_t b = 0; b < batches.size(); ++b) {
    std::map<std::string, std::size_t> run_of_key;
    for (const LockQuery& query : batches[b].queries) {
      check_cores(query.lock, query.placement.threads, query.placement.server);
      const Sections sections = query.sections.value_or(Sections{});
      const std::string key = fmt::format(
          "{} {} {} {} {} {} {} {} {} {}", query.lock, pattern_name(query.pattern), query.words,
          query.pattern == Pattern::strided ? query.stride : 0, query.readers,
          query.sections.has_value(), sections.held_ns, sections.apart_ns, sections.lines,
          placement_key(batches[b].tree, query.placement));
      const auto [at, is_new] = run_of_key.try_emplace(key, runs.size());
      if (is_new) runs.push_back({&batches[b], &query, {}});
      run_of[b].push_back(at->second);
    }
  }
  const std::size_t whole = run_parallel(
      runs.size(),
      [&](std::size_t n, StackPool& pool) {
        Run& run = runs[n];
        const LockSetup setup = prepare(run.batch->machine, run.batch->tree, *run.query, effort);
        run.outcome = run_lock(run.query->lock, setup, pool);
      },
      progress);
  std::vector<std::vector<LockOutcome>> outcomes(batches.size());
  for (std::size_t b = 0; b < batches.size(); ++b) {
    for (const std::size_t run : run_of[b]) {
      if (run >= whole) break;
      outcomes[b].push_back(runs[run].outcome);
    }
  }
  return outcomes;
}

std::vector<LockOutcome> predict_locks(const MachineModel& machine, const CoreTree& tree,
                                       const std::vector<LockQuery>& queries,
                                       const LockEffort& effort, const Progress& progress) {
  return predict_locks({{machine, tree, queries}}, effort, progress).front();
}

}  // namespace muster::sim
