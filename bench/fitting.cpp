// SPDX-License-Identifier: BSD-3-Clause
// How good what `auto` composes is, in the model: its latency, as a ratio to the best of all
// registered barriers and of some hundred composed ones; and how long it takes to find. Every known
// machine, three mappings, threads' and an MPI's settings.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "fitting/fitting.hpp"
#include "fitting/known_machines.hpp"
#include "sim/predict.hpp"

namespace {

using namespace muster;

constexpr sim::Effort effort{.warm_up = 4, .measured = 8, .members = 0, .seeds = 1};
constexpr unsigned teams[] = {3, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192};

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
  void print(std::string_view what) const {
    fmt::print("{:<24} {:>6}  {:>6.3f} {:>6.3f}  {:>10.3f}\n", what, cases, regret / cases, worst,
               registered / cases);
  }
};

}  // namespace

int main() {
  fmt::print("Latencies in the model, as ratios to the best known: predictions.\n\n");
  fmt::print("{:<24} {:>6}  {:>6} {:>6}  {:>10}\n", "", "cases", "auto", "worst", "registered");
  Sums all;
  std::vector<double> search_us;
  for (const bool progresses : {false, true}) {
    for (const KnownMachine& known : known_machines()) {
      sim::MachineModel machine = sim::load_machine(std::string(known.name));
      if (!progresses) {
        machine.set("call", 5, "a thread's loop");
        machine.set("poll-turn", 10, "a thread's loop");
      }
      std::vector<std::string> names = contestants(machine);
      Sums sums;
      for (const unsigned ranks : teams) {
        if (ranks > machine.shape->cores().size()) continue;
        for (const Mapping map_by : {Mapping::core, Mapping::numa, Mapping::socket}) {
          const auto bindings = machine.shape->map_ranks(map_by, ranks);
          const auto begin = std::chrono::steady_clock::now();
          names.push_back(fit_choice(*machine.shape, bindings, progresses).algorithm.text());
          const std::chrono::duration<double, std::micro> took =
              std::chrono::steady_clock::now() - begin;
          if (ranks == 128) search_us.push_back(took.count());
          std::vector<double> us(names.size());
          sim::run_parallel(names.size(), [&](std::size_t n, sim::StackPool& pool) {
            us[n] = sim::latency_us_of(machine, {names[n], ranks, map_by}, effort, 1, pool);
          });
          double registered = HUGE_VAL;
          for (std::size_t n = 0; n < names.size(); ++n) {
            if (!names[n].starts_with("scheduled-")) registered = std::min(registered, us[n]);
          }
          const double best = *std::min_element(us.begin(), us.end());
          sums.add(us.back() / best, registered / best);
          all.add(us.back() / best, registered / best);
          names.pop_back();
        }
      }
      sums.print(fmt::format("{}{}", known.name, progresses ? ", MPI" : ""));
      std::fflush(stdout);
    }
  }
  all.print("all");
  std::sort(search_us.begin(), search_us.end());
  fmt::print("\nFor 128 participants `auto` takes {:.1f} ms in the median, {:.1f} at most.\n",
             search_us[search_us.size() / 2] / 1000, search_us.back() / 1000);
}
