// SPDX-License-Identifier: BSD-3-Clause
#include "sim/remedies.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "fitting/known_machines.hpp"
#include "machine/error.hpp"
#include "machine/hardware.hpp"
#include "sim/pair_matrix.hpp"

namespace muster::sim {
namespace {

constexpr const char* mutexes[] = {"mutex-pthread", "mutex-spin-then-park", "mutex-mcs",
                                   "mutex-cna"};
constexpr const char* combining = "cc-synch";
constexpr const char* served = "rcl";
constexpr unsigned lines_max = 64;

/// As the scheduler spreads threads that nobody has bound.
std::vector<unsigned> all_over(const std::vector<unsigned>& cores, unsigned threads) {
  std::vector<unsigned> on;
  for (std::size_t t = 0; t < threads; ++t) on.push_back(cores[t * cores.size() / threads]);
  return on;
}

double mean_distance(const MachineModel& machine, const std::vector<unsigned>& cores) {
  const Geometry geometry = geometry_of(machine, cores);
  double sum = 0;
  std::size_t pairs = 0;
  for (unsigned a = 0; a < cores.size(); ++a) {
    for (unsigned b = 0; b < a; ++b, ++pairs) {
      const unsigned dies[] = {geometry.die_of(a), geometry.die_of(b)};
      sum += to_ns(dies[0] == dies[1] ? geometry.inside(a, b) : geometry.between(dies[0], dies[1]));
    }
  }
  return pairs == 0 ? machine.latencies.front().ns : sum / static_cast<double>(pairs);
}

}  // namespace

Remedies predict_remedies(const MachineModel& machine, const Contention& seen,
                          const SleepCosts& sleep, const Progress& progress) {
  for (const double ns : {seen.held_ns, seen.apart_ns, seen.moved_ns}) {
    if (!std::isfinite(ns) || ns < 0) throw Error(Status::invalid, "a time that is none");
  }
  if (seen.threads == 0) throw Error(Status::invalid, "there has to be a thread");
  const CoreTree tree(*machine.shape);
  const std::vector<unsigned> near = tree.outwards_from(0, CoreTree::Itself::included);
  Remedies remedies;
  remedies.threads = std::min(seen.threads, tree.cores());
  std::vector<unsigned> wide = all_over(tree.order(), remedies.threads);
  const double way = mean_distance(machine, wide);
  remedies.lines = static_cast<unsigned>(
      std::clamp(std::round(seen.moved_ns / way), 1.0, static_cast<double>(lines_max)));

  std::vector<LockQuery> queries;
  const auto add = [&](const char* lock, bool is_near, LockPlacement placement) {
    // Fewer threads than the program has come as often as all of these: it has no more cores.
    const double share = static_cast<double>(placement.threads.size()) / seen.threads;
    placement.memory = tree.numa_of(placement.threads.front());
    LockQuery query;
    query.lock = lock;
    query.words = std::uint64_t{2} * lines_max * 16;
    query.placement = std::move(placement);
    query.sections = Sections{seen.held_ns, seen.apart_ns * share, remedies.lines};
    query.sleep = sleep;
    queries.push_back(std::move(query));
    remedies.all.push_back({lock, is_near, 0});
  };
  const auto add_all = [&](bool is_near) {
    std::vector<unsigned> on = wide;
    if (is_near) on.assign(near.begin(), near.begin() + remedies.threads);
    for (const char* mutex : mutexes) add(mutex, is_near, {{}, on, 0});
    add(combining, is_near, {{}, on, 0});
    if (seen.threads >= tree.cores()) return;
    std::vector<unsigned> others = is_near ? near : tree.order();
    const unsigned server = others.front();
    others.erase(others.begin());
    if (is_near) others.resize(seen.threads);
    add(served, is_near, {server, is_near ? others : all_over(others, seen.threads), 0});
  };
  add_all(false);
  const std::vector<unsigned> packed(near.begin(), near.begin() + remedies.threads);
  if (placement_key(tree, {{}, packed, tree.numa_of(packed.front())}) !=
      placement_key(tree, {{}, wide, tree.numa_of(wide.front())})) {
    add_all(true);
  }

  LockEffort effort;
  effort.warm_up = 1'000 + 20 * remedies.threads;
  effort.window = 4'000 + 100 * remedies.threads;
  const std::vector<LockOutcome> outcomes = predict_locks(machine, tree, queries, effort, progress);
  for (std::size_t n = 0; n < outcomes.size(); ++n) {
    remedies.all[n].sections_s = outcomes[n].throughput_ops_s;
  }
  return remedies;
}

SleepCosts measure_sleep() {
  constexpr unsigned rounds = 60;
  std::atomic<Word> word{0};
  std::atomic<Word> lonely{0};  // nobody sleeps there
  std::atomic<std::int64_t> ran_at{0};
  std::atomic<bool> asleep{false};
  const auto futex = [](std::atomic<Word>& on, int what, Word value) {
    return syscall(SYS_futex, &on, what, value, nullptr, nullptr, 0);
  };
  std::thread sleeper([&] {
    for (Word round = 0; round < rounds; ++round) {
      asleep.store(true);
      while (word.load() == round) futex(word, FUTEX_WAIT_PRIVATE, round);
      ran_at.store(now_ns());
    }
  });
  std::vector<double> calls;
  std::vector<double> wakes;
  std::vector<double> runs;
  for (Word round = 0; round < rounds; ++round) {
    while (!asleep.exchange(false)) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    std::int64_t begin = now_ns();
    futex(lonely, FUTEX_WAKE_PRIVATE, 1);
    calls.push_back(static_cast<double>(now_ns() - begin));
    ran_at.store(0);
    word.store(round + 1);
    begin = now_ns();
    futex(word, FUTEX_WAKE_PRIVATE, 1);
    wakes.push_back(static_cast<double>(now_ns() - begin));
    while (ran_at.load() == 0) std::this_thread::yield();
    runs.push_back(static_cast<double>(ran_at.load() - begin));
  }
  sleeper.join();
  const auto median = [](std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + rounds / 2, values.end());
    return values[rounds / 2];
  };
  SleepCosts costs{median(calls), median(wakes), median(runs)};
  costs.runs_after = std::max(costs.runs_after, costs.wake);
  return costs;
}

}  // namespace muster::sim
