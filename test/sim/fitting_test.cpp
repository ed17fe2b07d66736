// SPDX-License-Identifier: BSD-3-Clause
// What `auto` composes without the model, judged by the model.
#include "fitting/fitting.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fitting/known_machines.hpp"
#include "sim/pair_matrix.hpp"
#include "sim/predict.hpp"
#include "topology/text_file.hpp"

namespace muster::sim {
namespace {

/// Threads wait otherwise than ranks that make an MPI's progress.
MachineModel machine_of(std::string_view name, bool progresses) {
  MachineModel machine = load_machine(std::string(name));
  if (!progresses) {
    machine.set("call", 5, "a thread's loop");
    machine.set("poll-turn", 10, "a thread's loop");
  }
  return machine;
}

TEST(KnownMachines, AreWhatTheirDescriptionsSay) {
  for (const KnownMachine& known : known_machines()) {
    const MachineModel machine = load_machine(std::string(known.name));
    EXPECT_EQ(nearest_machine(*machine.shape).machine.name, known.name);
    EXPECT_EQ(known.packages * known.domains * known.cores, machine.shape->cores().size());
    EXPECT_EQ(known.domain_ns, machine.latencies.front().ns) << known.name;
    EXPECT_EQ(known.machine_ns, machine.latencies.back().ns) << known.name;
    if (machine.latencies.size() > 2) {
      EXPECT_EQ(known.package_ns, machine.latencies[1].ns) << known.name;
    }
    const Costs& costs = known.costs;
    const Parameters& p = machine.parameters;
    EXPECT_EQ(costs.hit, p.hit_ns) << known.name;
    EXPECT_EQ(costs.load_gap, p.load_gap_ns) << known.name;
    EXPECT_EQ(costs.store_gap, p.store_gap_ns) << known.name;
    EXPECT_EQ(costs.rmw_local, p.rmw_local_ns) << known.name;
    EXPECT_EQ(costs.read_occupancy, p.read_occupancy_ns) << known.name;
    EXPECT_EQ(costs.agent_occupancy, p.agent_occupancy_ns) << known.name;
    EXPECT_EQ(costs.poll_overlap, p.poll_overlap) << known.name;
    EXPECT_EQ(costs.set_fill, p.set_fill_ns) << known.name;
    EXPECT_EQ(costs.ll_sc, machine.mechanisms.has(Mechanism::ll_sc)) << known.name;
  }
}

/// Of four dies of eight cores, whose processor hwloc calls so.
std::string nearest_to(const std::string& architecture, const std::string& vendor) {
  std::string xml =
      read_text_file(std::string(MUSTER_SOURCE_DIR) + "/test/machines/memoryless-dies.xml", "test");
  const auto tell = [&](const char* name, const std::string& value) {
    if (!value.empty()) {
      xml.insert(xml.find("<info "), fmt::format(R"(<info name="{}" value="{}"/>)", name, value));
    }
  };
  tell("Architecture", architecture);
  tell(architecture == "aarch64" ? "CPUImplementer" : "CPUVendor", vendor);
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "nearest.xml";
  std::ofstream(file) << xml;
  const Topology topology = Topology::from_file(file.string());
  std::filesystem::remove(file);
  return costs_for(topology, false).source;
}

TEST(KnownMachines, TheNearestIsOfTheSameVendorOrArchitectureAndAlike) {
  const char* const none = "generic: no known machine is like this one";
  EXPECT_EQ(nearest_to("", ""), none);
  EXPECT_EQ(nearest_to("riscv64", ""), none);
  EXPECT_EQ(nearest_to("ppc64le", ""), "those of power9-2s, the nearest of its architecture");
  EXPECT_EQ(nearest_to("x86_64", "GenuineIntel"), none) << "two packages of one domain of 32 cores";
  EXPECT_EQ(nearest_to("x86_64", "AuthenticAMD"),
            "those of epyc-7763-2s, the nearest of its vendor");
  EXPECT_EQ(nearest_to("x86_64", "CentaurHauls"),
            "those of epyc-7763-2s, the nearest of its architecture");
  EXPECT_EQ(nearest_to("aarch64", "0x41"), "those of graviton3, the nearest of its vendor");
  EXPECT_EQ(nearest_to("aarch64", "0x48"), none) << "two packages of two domains of 32 cores";
}

/// `auto`, `explain`, `sim` and the report of `muster run` guess alike: one function does.
TEST(KnownMachines, AreGuessedAlikeForTheModelAndTheEstimate) {
  const std::string folder = std::string(MUSTER_SOURCE_DIR) + "/test/machines/";
  for (const char* name : {"memoryless-dies.xml", "hybrid-6p8e.xml", "cpuless-numa.xml"}) {
    const Topology topology = Topology::from_file(folder + name);
    const MachineCosts guess = costs_for(topology, true);
    const MachineModel machine = assumed_machine(topology, "file " + folder + name);
    const MachineCosts model = costs_of(machine);
    EXPECT_EQ(model.source, guess.source);
    EXPECT_EQ(model.domain, guess.domain);
    EXPECT_EQ(model.costs, guess.costs);
    ASSERT_EQ(model.classes.size(), guess.classes.size());
    for (std::size_t n = 0; n < model.classes.size(); ++n) {
      EXPECT_EQ(model.classes[n].level, guess.classes[n].level);
      EXPECT_EQ(model.classes[n].ns, guess.classes[n].ns);
    }
    EXPECT_THAT(machine.about, testing::HasSubstr(guess.source));
  }
}

TEST(Fitting, EstimatesWhatTheModelSays) {
  StackPool pool;
  double sum = 0;
  unsigned count = 0;
  for (const bool progresses : {false, true}) {
    for (const KnownMachine& known : known_machines()) {
      const MachineModel machine = machine_of(known.name, progresses);
      const unsigned ranks = static_cast<unsigned>(machine.shape->cores().size());
      const std::vector<PuSet> bindings = machine.shape->map_ranks(Mapping::core, ranks);
      const MachineCosts own = costs_of(machine);
      const Seats seats = seats_of(*machine.shape, bindings, own);
      const Costs& costs = own.costs;
      for (const NamedGroups& way : all_groups(*machine.shape, bindings)) {
        for (const char* recipe :
             {"tree8+line8/all", "count4+line8/all", "count8+line4x2/rounds"}) {
          if (way.levels == "MACHINE" && std::string_view(recipe).starts_with("tree")) continue;
          const double estimated =
              estimate_ns(compose(way.groups, parse_recipe(recipe)), seats, costs) / 1000;
          const std::string name = "scheduled-" + way.levels + ":" + recipe;
          const double modelled =
              latency_us_of(machine, {name, ranks, Mapping::core}, Effort{}, 1, pool);
          const double error = std::abs(std::log(estimated / modelled));
          EXPECT_LT(error, std::log(1.5))
              << known.name << " " << name << ": " << estimated << " for " << modelled;
          sum += error;
          ++count;
        }
      }
    }
  }
  EXPECT_LT(sum / count, 0.06);
}

/// As a Xeon Phi, whose L2s are no domains: the costs of a machine where they are mislead.
TEST(Fitting, GoesByTheCostsThatADescriptionHas) {
  std::string text = format_machine(load_machine("graviton3"));
  const auto replace = [&](std::string_view statement, std::string_view by) {
    const std::size_t begin = text.find("\n" + std::string(statement)) + 1;
    text.replace(begin, text.find('\n', begin) - begin, by);
  };
  replace("topology ", "topology l2:32 core:2 pu:1 | assumed: a test");
  replace("latency ",
          "latency L2 41.4 ns | assumed: a test\nlatency MACHINE 91.1 ns | assumed: a test");
  replace("domain ", "domain MACHINE | assumed: a test");
  const MachineModel machine = parse_machine(text, "test", "");
  constexpr unsigned ranks = 32;
  const Choice choice =
      fit_choice(*machine.shape, machine.shape->map_ranks(Mapping::core, ranks), costs_of(machine));
  EXPECT_NE(choice.why.find("costs: those of graviton3"), std::string::npos) << choice.why;
  StackPool pool;
  const auto latency_us = [&](const std::string& name) {
    return latency_us_of(machine, {name, ranks, Mapping::core}, Effort{}, 1, pool);
  };
  EXPECT_LT(latency_us(choice.algorithm.text()), latency_us("topo-counter"))
      << choice.algorithm.text();
}

// Some recipes want more cells there than compose() grants.
TEST(Fitting, ComposesForThousands) {
  constexpr unsigned ranks = 4096;
  const Topology topology = Topology::from_synthetic("package:64 core:64 pu:1");
  const std::vector<PuSet> bindings = topology.map_ranks(Mapping::core, ranks);
  const Choice choice = fit_choice(topology, bindings, costs_for(topology, false));
  const Schedule schedule = compose_proved(&all_groups(topology, bindings).front().groups, ranks,
                                           choice.algorithm.recipe);
  EXPECT_EQ(schedule.participants(), ranks);
}

// Each set of levels there has more groups than may tell each other.
TEST(Fitting, GathersAlikeWhereTooManyWouldTellEachOther) {
  constexpr unsigned ranks = 4096;
  const char* const shape = "package:64 numa:2 core:32 pu:1";
  const Topology topology = Topology::from_synthetic(shape);
  const MachineModel machine = assumed_machine(topology, shape);
  const Choice choice =
      fit_choice(topology, topology.map_ranks(Mapping::core, ranks), costs_of(machine));
  StackPool pool;
  constexpr Effort effort{.warm_up = 2, .measured = 4, .members = 0};
  const auto latency_us = [&](const std::string& name) {
    return latency_us_of(machine, {name, ranks, Mapping::core}, effort, 1, pool);
  };
  EXPECT_LT(latency_us(choice.algorithm.text()), 1.3 * latency_us("topo-counter"))
      << choice.algorithm.text();
}

// So `auto` need not know where two sit: dissemination is as good as any other everywhere.
TEST(Two, AreServedBestByTheSameBarrierWhereverTheySit) {
  StackPool pool;
  constexpr Effort effort{.measured = 40, .members = 0, .seeds = 4};
  for (const bool progresses : {false, true}) {
    for (const KnownMachine& known : known_machines()) {
      const MachineModel machine = machine_of(known.name, progresses);
      std::vector<std::string> names = {"scheduled-MACHINE:count+line", "scheduled-MACHINE:all"};
      for (const std::string& name : all_algorithms(machine)) {
        if (!name.starts_with("base-")) names.push_back(name);
      }
      const auto cores = static_cast<unsigned>(machine.shape->cores().size());
      for (const unsigned other : {1U, known.cores, cores / 2, cores - 1}) {
        const std::vector<PuSet> all = machine.shape->map_ranks(Mapping::core, cores);
        const Query pair{"", 2, Mapping::core, {all[0], all[std::min(other, cores - 1)]}};
        const auto latency_us = [&](const std::string& name) {
          Query query = pair;
          query.algorithm = name;
          return latency_us_of(machine, query, effort, 1, pool);
        };
        const double ours = latency_us("dissemination");
        for (const std::string& name : names) {
          EXPECT_LT(ours, 1.02 * latency_us(name)) << known.name << " " << other << ": " << name;
        }
      }
    }
  }
}

/// The whole is in doc/results.md.
TEST(Fitting, IsNearlyTheBestThatTheModelKnows) {
  StackPool pool;
  double regret = 0;
  unsigned cases = 0;
  for (const bool progresses : {false, true}) {
    for (const KnownMachine& known : known_machines()) {
      const MachineModel machine = machine_of(known.name, progresses);
      for (const unsigned ranks : {6U, 16U, 32U, 64U}) {
        if (ranks > machine.shape->cores().size()) continue;
        const std::vector<PuSet> bindings = machine.shape->map_ranks(Mapping::core, ranks);
        const Choice choice = fit_choice(*machine.shape, bindings, costs_of(machine));
        const auto latency_us = [&](const std::string& name) {
          return latency_us_of(machine, {name, ranks, Mapping::core}, Effort{}, 1, pool);
        };
        double best = HUGE_VAL;
        for (const std::string& name : all_algorithms(machine)) {
          if (!name.starts_with("base-")) best = std::min(best, latency_us(name));
        }
        const double ratio = latency_us(choice.algorithm.text()) / best;
        EXPECT_LT(ratio, 1.25) << known.name << " " << ranks << ": " << choice.algorithm.text();
        regret += ratio;
        ++cases;
      }
    }
  }
  EXPECT_LT(regret / cases, 1.0) << "of the best that is registered by name";
}

}  // namespace
}  // namespace muster::sim
