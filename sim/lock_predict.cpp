// SPDX-License-Identifier: BSD-3-Clause
#include "sim/lock_predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "sim/predict.hpp"

namespace muster::sim {
namespace {

LockSetup prepare(const MachineModel& machine, const CoreTree& tree, const LockQuery& query,
                  const LockEffort& effort) {
  std::vector<unsigned> cores = query.placement.threads;
  if (query.placement.server) cores.push_back(*query.placement.server);
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
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
  const unsigned near_memory = tree.numa_nodes().at(query.placement.memory).cores.front();
  setup.home_die = geometry_of(machine, {near_memory}).die_of(0);
  setup.pattern = query.pattern;
  setup.words = query.words;
  setup.stride = query.stride;
  setup.warm_up = effort.warm_up;
  setup.window = effort.window;
  setup.slice_ns = effort.slice_ns;
  setup.seed = effort.seed;
  return setup;
}

}  // namespace

std::vector<LockOutcome> predict_locks(const MachineModel& machine, const CoreTree& tree,
                                       const std::vector<LockQuery>& queries,
                                       const LockEffort& effort, const LockProgress& progress) {
  std::map<std::string, std::size_t> run_of_key;
  std::vector<std::size_t> run_of(queries.size());
  std::vector<std::size_t> query_of;  // by run
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const LockQuery& query = queries[q];
    const std::string key = fmt::format(
        "{} {} {} {} {}", query.lock, pattern_name(query.pattern), query.words,
        query.pattern == Pattern::strided ? query.stride : 0, placement_key(tree, query.placement));
    const auto [at, is_new] = run_of_key.try_emplace(key, query_of.size());
    if (is_new) query_of.push_back(q);
    run_of[q] = at->second;
  }
  std::vector<LockOutcome> of_run(query_of.size());
  std::mutex mutex;
  std::size_t done = 0;
  run_parallel(query_of.size(), [&](std::size_t n, StackPool& pool) {
    const LockQuery& query = queries[query_of[n]];
    of_run[n] = run_lock(query.lock, prepare(machine, tree, query, effort), pool);
    const std::lock_guard guard(mutex);
    ++done;
    if (progress) progress(done, query_of.size());
  });
  std::vector<LockOutcome> outcomes;
  for (const std::size_t run : run_of) outcomes.push_back(of_run[run]);
  return outcomes;
}

}  // namespace muster::sim
