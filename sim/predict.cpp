// SPDX-License-Identifier: BSD-3-Clause
#include "sim/predict.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>

#include "machine/in_parallel.hpp"

namespace muster::sim {
namespace {

constexpr unsigned message_ranks_max = 512;

}  // namespace

Preparation prepare(const MachineModel& machine, const Query& query, std::uint64_t seed) {
  const Algorithm algorithm = parse_modelled(query.algorithm);
  if (algorithm.name == "auto") {
    throw Error(Status::invalid, "the model runs barriers by their own names, not \"auto\"");
  }
  if (algorithm.name.starts_with("base-") && query.ranks > message_ranks_max) {
    throw Error(Status::invalid,
                "a barrier over messages needs a queue for each pair of ranks: "
                "the model holds those of " +
                    std::to_string(message_ranks_max) + " ranks");
  }
  Preparation result;
  result.name = algorithm.name;
  const std::vector<PuSet> where =
      query.bindings.empty() ? machine.shape->map_ranks(query.map_by, query.ranks) : query.bindings;
  result.setup.geometry = geometry_of(machine, cores_of_ranks(machine, where));
  result.setup.parameters = machine.parameters;
  result.setup.mechanisms = machine.mechanisms;
  result.setup.shape.participants = query.ranks;
  result.setup.shape.radix = algorithm.radix;
  result.setup.seed = seed;
  if (algorithm.uses_groups()) {
    const ActiveLevels active = machine.shape->active_levels(parse_level_mask(algorithm.levels));
    Grouping grouping = group_ranks(machine.shape->place(where, active));
    if (grouping.status != Status::ok) throw Error(grouping.status, grouping.reason);
    result.groups = std::make_unique<GroupTree>(std::move(grouping.tree));
    result.setup.shape.groups = result.groups.get();
  }
  if (algorithm.name == "scheduled") {
    result.schedule = std::make_unique<Schedule>(
        compose_proved(result.groups.get(), query.ranks, algorithm.recipe));
    result.setup.shape.schedule = result.schedule.get();
  }
  return result;
}

BarrierOutcome outcome_of(const MachineModel& machine, const Query& query, const Effort& effort,
                          std::uint64_t first_seed, StackPool& pool) {
  Preparation ready = prepare(machine, query, first_seed);
  ready.setup.warm_up = effort.warm_up;
  ready.setup.measured = effort.measured;
  BarrierOutcome mean;
  for (unsigned n = 0; n < effort.seeds; ++n) {
    ready.setup.seed = first_seed + n;
    const BarrierOutcome outcome = run_barrier(ready.name, ready.setup, pool);
    mean.latency_ns += outcome.latency_ns / effort.seeds;
    mean.exit_skew_ns += outcome.exit_skew_ns / effort.seeds;
    mean.events += outcome.events;
  }
  return mean;
}

double latency_us_of(const MachineModel& machine, const Query& query, const Effort& effort,
                     std::uint64_t first_seed, StackPool& pool, std::uint64_t* events) {
  const BarrierOutcome outcome = outcome_of(machine, query, effort, first_seed, pool);
  if (events != nullptr) *events += outcome.events;
  return outcome.latency_ns / 1000;
}

std::vector<Prediction> predict(const MachineModel& machine, const std::vector<Query>& queries,
                                const Effort& effort, const Progress& progress) {
  const std::vector<MachineModel> members = ensemble_of(machine, effort.members);
  std::vector<BarrierOutcome> outcomes(queries.size() * members.size());
  const std::size_t whole = run_parallel(
      outcomes.size(),
      [&](std::size_t n, StackPool& pool) {
        outcomes[n] = outcome_of(members[n % members.size()], queries[n / members.size()], effort,
                                 effort.seed, pool);
      },
      progress);
  std::vector<Prediction> predictions(whole / members.size());
  for (std::size_t q = 0; q < predictions.size(); ++q) {
    const auto begin = outcomes.begin() + static_cast<std::ptrdiff_t>(q * members.size());
    const auto end = begin + static_cast<std::ptrdiff_t>(members.size());
    const auto [least, most] = std::minmax_element(
        begin, end, [](const auto& a, const auto& b) { return a.latency_ns < b.latency_ns; });
    const auto [even, uneven] = std::minmax_element(
        begin, end, [](const auto& a, const auto& b) { return a.exit_skew_ns < b.exit_skew_ns; });
    const bool sends = queries[q].algorithm.starts_with("base-") && machine.message_error > 0;
    const double error = sends ? machine.message_error : machine.error;
    predictions[q].latency_us = begin->latency_ns / 1000;
    predictions[q].latency_us_low = least->latency_ns / 1000 / (1 + error);
    predictions[q].latency_us_high = most->latency_ns / 1000 * (1 + error);
    predictions[q].exit_skew_us = begin->exit_skew_ns / 1000;
    predictions[q].exit_skew_us_low = even->exit_skew_ns / 1000 / (1 + error);
    predictions[q].exit_skew_us_high = uneven->exit_skew_ns / 1000 * (1 + error);
  }
  return predictions;
}

std::vector<std::string> all_algorithms(const MachineModel& machine) {
  std::vector<std::string> all;
  for (const std::string& name : modelled_barriers()) {
    // Those for more participants than PUs, or for some that move, are not what a model of one rank
    // a core can tell of.
    const bool stays = name != "sense-reversing-pu" && name != "following";
    if (!parse_modelled(name).uses_groups() && stays) all.push_back(name);
    if (name != "combining-tree") continue;
    for (const char* radix : {":4", ":8", ":16"}) all.push_back(name + radix);
  }
  all.emplace_back("topo-counter");
  const std::vector<std::string> sets = machine.shape->level_sets();
  for (const std::string& levels : sets) all.push_back("topo-" + levels);
  // The first set is all levels, as without a name.
  for (std::size_t n = 1; n < sets.size(); ++n) all.push_back("topo-counter-" + sets[n]);
  return all;
}

std::vector<Predicted> beside_best(const MachineModel& machine, const Query& query,
                                   std::size_t count,
                                   const std::function<bool(const Algorithm&)>& fits) {
  std::vector<Query> queries{query};
  for (const std::string& name : all_algorithms(machine)) {
    if (!name.starts_with("base-") && fits(parse_algorithm(name))) {
      queries.push_back(query);
      queries.back().algorithm = name;
    }
  }
  Effort alone;
  alone.members = 0;
  const std::vector<Prediction> quick = predict(machine, queries, alone);
  std::map<double, std::size_t> by_latency;
  for (std::size_t q = 1; q < queries.size(); ++q) {
    // To the bit as fast as another one: the same barrier by another name.
    if (quick[q].latency_us != quick[0].latency_us) by_latency.emplace(quick[q].latency_us, q);
  }
  std::vector<Query> best{query};
  for (const auto& [latency_us, q] : by_latency) {
    if (best.size() <= count) best.push_back(queries[q]);
  }
  const std::vector<Prediction> predictions = predict(machine, best, Effort{});
  std::vector<Predicted> result;
  for (std::size_t n = 0; n < best.size(); ++n) result.push_back({best[n], predictions[n]});
  return result;
}

std::size_t run_parallel(std::size_t count, const std::function<void(std::size_t, StackPool&)>& job,
                         const Progress& progress) {
  std::mutex telling;
  std::size_t done = 0;
  std::atomic<bool> goes_on{true};
  const auto work = [&](std::size_t n) {
    thread_local StackPool pool;
    if (!goes_on) return false;
    job(n, pool);
    const std::lock_guard guard(telling);
    if (progress && !progress(++done, count)) goes_on = false;
    return true;
  };
  std::size_t whole = 0;
  bool is_left_out = false;
  const auto take = [&](bool has_run) {
    is_left_out = is_left_out || !has_run;
    if (!is_left_out) ++whole;
  };
  in_parallel(count, work, take, [](std::size_t) {});
  return whole;
}

}  // namespace muster::sim
