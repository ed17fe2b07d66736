// SPDX-License-Identifier: BSD-3-Clause
// How fast the modelled machine runs on one core of this one: events and episodes a second, and how
// long a whole table of predictions takes.
//
//   muster-bench-sim [SECONDS]    how long each row is repeated, 0.3 by default; CPU time
#include <fmt/format.h>

#include <time.h>

#include <chrono>
#include <cstdlib>
#include <string_view>

#include "sim/predict.hpp"

namespace {

using namespace muster;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Of this thread: other programs on the machine take their time from somewhere else.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The Kunpeng's dies, as many packages as it takes.
sim::MachineModel machine_of(unsigned cores) {
  sim::MachineModel machine = sim::load_machine("kunpeng920-2s");
  const unsigned packages = (cores + 63) / 64;
  machine.topology = fmt::format("package:{} numa:2 core:32 pu:1", packages);
  machine.shape = Topology::from_synthetic(machine.topology);
  return machine;
}

struct Row {
  const char* algorithm;
  unsigned ranks;
  double wanted;  ///< episodes a second; 0: no wish
};

constexpr Row rows[] = {
    {"sense-reversing", 128, 0},
    {"sense-reversing-counter", 128, 5000},
    {"sense-reversing-gr", 128, 5000},
    {"combining-tree", 128, 5000},
    {"mcs", 128, 5000},
    {"tournament", 128, 5000},
    {"dissemination", 128, 2000},
    {"topo-NUMA-SOCKET", 128, 5000},
    {"topo-NUMA", 128, 5000},
    {"topo-SOCKET", 128, 5000},
    {"base-linear", 128, 0},
    {"base-tree", 128, 0},
    {"sense-reversing-counter", 1024, 500},
    {"combining-tree", 1024, 500},
    {"mcs", 1024, 500},
    {"tournament", 1024, 500},
    {"topo-NUMA-SOCKET", 1024, 500},
    {"dissemination", 1024, 0},
};

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.3;
  if (argc > 2 || seconds <= 0) {
    fmt::print("muster-bench-sim [SECONDS]    how long each row is repeated, 0.3 by default\n");
    return argc == 2 && std::string_view(argv[1]) == "--help" ? 0 : 2;
  }
  sim::StackPool pool;
  fmt::print("{:<26} {:>6} {:>10} {:>14} {:>12} {:>10} {:>8}\n", "algorithm", "ranks", "us",
             "events/episode", "M events/s", "episodes/s", "wanted");
  double events_all = 0;
  double seconds_all = 0;
  for (const Row& row : rows) {
    const sim::MachineModel machine = machine_of(row.ranks);
    const unsigned episodes = row.ranks > 256 ? 40 : 200;
    const sim::Effort effort{8, episodes, 0, 1};
    std::uint64_t events = 0;
    unsigned runs = 0;
    double us = 0;
    const double begin = cpu_seconds();
    do {
      us = latency_us_of(machine, {row.algorithm, row.ranks, Mapping::core}, effort, 1, pool,
                         &events);
      ++runs;
    } while (cpu_seconds() - begin < seconds);
    const double took = cpu_seconds() - begin;
    const double done = static_cast<double>(runs) * (effort.warm_up + effort.measured);
    events_all += static_cast<double>(events);
    seconds_all += took;
    fmt::print("{:<26} {:>6} {:>10.2f} {:>14.0f} {:>12.1f} {:>10.0f} {:>8}\n", row.algorithm,
               row.ranks, us, static_cast<double>(events) / done,
               static_cast<double>(events) / took / 1e6, done / took,
               row.wanted > 0 ? fmt::format("{:.0f}", row.wanted) : "-");
  }
  fmt::print("all: {:.1f} M events/s on one core (wanted: 20)\n\n", events_all / seconds_all / 1e6);

  const sim::MachineModel machine = sim::load_machine("kunpeng920-2s");
  std::vector<sim::Query> queries;
  for (const std::string& algorithm : sim::all_algorithms(machine)) {
    for (const Mapping mapping : {Mapping::core, Mapping::numa, Mapping::socket}) {
      queries.push_back({algorithm, 128, mapping});
    }
  }
  for (const unsigned members : {0U, 6U}) {
    const auto begin = Clock::now();
    sim::Effort effort;
    effort.members = members;
    sim::predict(machine, queries, effort);
    fmt::print("table of {} algorithms x 3 mappings, 128 ranks, {}: {:.2f} s (wanted: 5)\n",
               queries.size() / 3, members == 0 ? "without intervals" : "with intervals",
               since(begin));
  }
  return 0;
}
