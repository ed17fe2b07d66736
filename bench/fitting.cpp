// SPDX-License-Identifier: BSD-3-Clause
// How good what `auto` composes is, in the model: its latency, as a ratio to the best of all
// registered barriers and of some hundred composed ones; and how long it takes to find, in CPU
// time. Every known machine, three mappings and three random subsets of the cores, threads' and an
// MPI's settings.
//
//   muster-bench-fitting [--tune] [--cases] [--topology] [MACHINE...]
//
// MACHINE: a known one, or a description file, with its own costs. --topology: `auto` sees the
// topology alone, as on hardware. --tune: the best is also that of what `muster tune` finds, from
// all starts and at twice the length, which takes hours. --cases: a line for each.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "fitting/fitting.hpp"
#include "fitting/known_machines.hpp"
#include "machine/error.hpp"
#include "sim/predict.hpp"
#include "sim/tune.hpp"

namespace {

using namespace muster;

constexpr sim::Effort coarse{.warm_up = 4, .measured = 8, .members = 0, .seeds = 1};
constexpr sim::Effort fine{.warm_up = 8, .measured = 40, .members = 0, .seeds = 1};
constexpr sim::TuneEffort thorough{.starts = 5, .finalists = 16, .final = fine};
constexpr unsigned random_subsets = 3;
constexpr unsigned teams[] = {3, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192};

/// Of this thread: other programs on the machine take their time from somewhere else.
double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1000;
}

std::vector<std::string> contestants(const sim::MachineModel& machine) {
  std::vector<std::string> names{"scheduled-MACHINE:all", "scheduled-MACHINE:rounds"};
  for (const std::string& name : sim::all_algorithms(machine)) {
    if (!name.starts_with("base-")) names.push_back(name);
  }
  std::vector<std::string> sets = machine.shape->level_sets();
  sets.emplace_back("MACHINE");
  for (const std::string& levels : sets) {
    for (const char* gather : {"flat", "tree4", "tree8", "count4", "count5", "count8"}) {
      for (const char* release : {"+line8", "+line16", "+line", "+line4x2", "+line8x3"}) {
        const std::string bottom = fmt::format("scheduled-{}:{}{}", levels, gather, release);
        if (levels == "MACHINE") {
          names.push_back(bottom);
          continue;
        }
        for (const char* top : {"/all", "/rounds", "/tree4+line", "/count4+direct8"}) {
          names.push_back(bottom + top);
        }
      }
    }
  }
  return names;
}

struct Sums {
  double regret = 0;
  double worst = 1;
  double registered = 0;  ///< the best of these, likewise
  unsigned cases = 0;

  void add(double ratio, double ratio_of_registered) {
    regret += ratio;
    worst = std::max(worst, ratio);
    registered += ratio_of_registered;
    ++cases;
  }
  void add(const Sums& other) {
    regret += other.regret;
    worst = std::max(worst, other.worst);
    registered += other.registered;
    cases += other.cases;
  }
  void print(std::string_view what) const {
    fmt::print("{:<24} {:>6}  {:>6.3f} {:>6.3f}  {:>10.3f}\n", what, cases, regret / cases, worst,
               registered / cases);
  }
};

/// Of all contestants the model's short runs leave some, and long ones decide.
constexpr std::size_t finalists = 8;

struct Judged {
  double ratio;             ///< of what `auto` takes, to the best
  double ratio_registered;  ///< of the best registered one
  std::string best;
};

/// `names`: the last is what `auto` takes.
Judged judge(const sim::MachineModel& machine, std::vector<std::string> names, sim::Query team) {
  const auto times = [&](const std::vector<std::string>& of, const sim::Effort& how_long) {
    std::vector<double> us(of.size());
    sim::run_parallel(of.size(), [&](std::size_t n, sim::StackPool& pool) {
      sim::Query query = team;
      query.algorithm = of[n];
      us[n] = sim::latency_us_of(machine, query, how_long, 1, pool);
    });
    return us;
  };
  const auto is_registered = [](const std::string& name) {
    return !name.starts_with("scheduled-");
  };
  const std::vector<double> quick = times(names, coarse);
  std::vector<std::size_t> order(names.size() - 1);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return quick[a] < quick[b]; });
  std::vector<std::string> finals{names.back()};
  for (const bool composed : {true, false}) {
    std::size_t left = finalists;
    for (const std::size_t n : order) {
      if (left == 0 || is_registered(names[n]) == composed) continue;
      finals.push_back(names[n]);
      --left;
    }
  }
  const std::vector<double> us = times(finals, fine);
  double registered = HUGE_VAL;
  for (std::size_t n = 1; n < finals.size(); ++n) {
    if (is_registered(finals[n])) registered = std::min(registered, us[n]);
  }
  const auto best = std::min_element(us.begin(), us.end());
  return {us.front() / *best, registered / *best,
          finals[static_cast<std::size_t>(best - us.begin())]};
}

/// The same subset for the same seed.
std::vector<PuSet> random_subset(const Topology& topology, unsigned ranks, unsigned seed) {
  std::vector<PuSet> all =
      topology.map_ranks(Mapping::core, static_cast<unsigned>(topology.cores().size()));
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(seed);
  for (std::size_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[random() % n]);
  order.resize(ranks);
  std::sort(order.begin(), order.end());
  std::vector<PuSet> subset;
  for (const std::size_t core : order) subset.push_back(all[core]);
  return subset;
}

struct Options {
  bool tunes = false;
  bool tells = false;
  bool sees_topology_alone = false;
  std::vector<std::string> machines;
};

void compare(const Options& options) {
  fmt::print("Latencies in the model, as ratios to the best known: predictions.\n\n");
  fmt::print("{:<24} {:>6}  {:>6} {:>6}  {:>10}\n", "", "cases", "auto", "worst", "registered");
  Sums all[2];
  std::vector<double> search_us;
  for (const bool progresses : {false, true}) {
    for (const std::string& name : options.machines) {
      sim::MachineModel machine = sim::load_machine(name);
      if (!progresses) {
        machine.set("call", 5, "a thread's loop");
        machine.set("poll-turn", 10, "a thread's loop");
      }
      const MachineCosts costs = options.sees_topology_alone ? costs_for(*machine.shape, progresses)
                                                             : sim::costs_of(machine);
      const std::vector<std::string> names = contestants(machine);
      Sums sums;
      for (const unsigned ranks : teams) {
        if (ranks > machine.shape->cores().size()) continue;
        for (unsigned way = 0; way < 3 + random_subsets; ++way) {
          const auto map_by = static_cast<Mapping>(std::min(way, 2U));
          sim::Query team{"", ranks, map_by};
          if (way >= 3) team.bindings = random_subset(*machine.shape, ranks, way);
          const std::vector<PuSet> where =
              way < 3 ? machine.shape->map_ranks(map_by, ranks) : team.bindings;
          const auto begin = cpu_us();
          const std::string chosen = fit_choice(*machine.shape, where, costs).algorithm.text();
          if (ranks == 128) search_us.push_back(cpu_us() - begin);
          std::vector<std::string> names_here = names;
          if (options.tunes) {
            for (const auto& found : sim::tune(machine, team, thorough, {})) {
              names_here.push_back(found.query.algorithm);
            }
          }
          names_here.push_back(chosen);
          const Judged judged = judge(machine, std::move(names_here), team);
          sums.add(judged.ratio, judged.ratio_registered);
          all[progresses ? 1 : 0].add(judged.ratio, judged.ratio_registered);
          if (options.tells) {
            fmt::print("{:.3f} {}{} {} {}: {}, best {}\n", judged.ratio, machine.name,
                       progresses ? ", MPI" : "", ranks,
                       way < 3 ? mapping_name(map_by) : "somewhere", chosen, judged.best);
          }
        }
      }
      sums.print(fmt::format("{}{}", machine.name, progresses ? ", MPI" : ""));
      std::fflush(stdout);
    }
  }
  all[0].print("threads");
  all[1].print("MPI");
  Sums both = all[0];
  both.add(all[1]);
  both.print("all");
  if (search_us.empty()) return;
  std::sort(search_us.begin(), search_us.end());
  fmt::print("\nFor 128 participants `auto` takes {:.1f} ms in the median, {:.1f} at most.\n",
             search_us[search_us.size() / 2] / 1000, search_us.back() / 1000);
}

}  // namespace

int main(int count, char** words) {
  Options options;
  for (int n = 1; n < count; ++n) {
    const std::string_view word = words[n];
    if (word == "--help") {
      fmt::print("muster-bench-fitting [--tune] [--cases] [--topology] [MACHINE...]\n");
      return 0;
    }
    if (word == "--tune") {
      options.tunes = true;
    } else if (word == "--cases") {
      options.tells = true;
    } else if (word == "--topology") {
      options.sees_topology_alone = true;
    } else {
      options.machines.emplace_back(word);
    }
  }
  if (options.machines.empty()) {
    for (const KnownMachine& known : known_machines()) options.machines.emplace_back(known.name);
  }
  try {
    compare(options);
  } catch (const Error& error) {
    fmt::print(stderr, "muster-bench-fitting: {}\n", error.what());
    return 2;
  }
}
