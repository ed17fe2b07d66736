// SPDX-License-Identifier: BSD-3-Clause
// Machine descriptions from matrices of latencies, and from micro-benchmarks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "machine/error.hpp"
#include "sim/measure.hpp"
#include "sim/pair_matrix.hpp"
#include "sim/simplex.hpp"

namespace muster::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The lower triangle over a synthetic machine, by the innermost unit of so many CPUs.
std::string triangle(unsigned cpus, const std::vector<std::pair<unsigned, double>>& units) {
  std::string text;
  for (unsigned a = 0; a < cpus; ++a) {
    for (unsigned b = 0; b < cpus; ++b) {
      if (b > 0) text += ",";
      if (b >= a) continue;
      for (const auto& [size, ns] : units) {
        if (a / size != b / size) continue;
        text += std::to_string(ns + ((a + b) % 3 - 1.0));
        break;
      }
    }
    text += "\n";
  }
  return text;
}

TEST(Import, FindsTheClassesOfDistance) {
  const PairMatrix matrix =
      parse_pair_matrix(triangle(16, {{4, 20}, {8, 60}, {16, 200}}), "matrix");
  const Topology topology = Topology::from_synthetic("package:2 numa:2 core:4 pu:1");
  const Distances distances = distances_of(matrix, topology, {});
  ASSERT_EQ(distances.merged.size(), 3U);
  EXPECT_EQ(distances.merged[0].name(), "NUMA");
  EXPECT_EQ(distances.merged[1].name(), "PACKAGE");
  EXPECT_EQ(distances.merged[2].name(), "MACHINE");
  EXPECT_NEAR(distances.merged[0].median_ns, 20, 1);
  EXPECT_NEAR(distances.merged[1].median_ns, 60, 1);
  EXPECT_NEAR(distances.merged[2].median_ns, 200, 1);
  EXPECT_EQ(distances.merged[2].pairs, 64U);
  EXPECT_GT(distances.explained, 0.99);
}

/// Whoever is in another package than the lines' home has a long way to everybody but its die.
TEST(Import, FindsTheHomeOfTheLines) {
  const Topology topology = Topology::from_synthetic("package:2 [numa] l3:4 core:4 pu:1");
  for (const unsigned home : {0U, 1U, 2U}) {  // 2: nowhere, or each line with who uses it
    std::string text;
    for (unsigned a = 0; a < 32; ++a) {
      for (unsigned b = 0; b < a; ++b) {
        const bool far = a / 16 != b / 16 || (home < 2 && a / 16 != home);
        text += std::to_string((a / 4 == b / 4 ? 25 : far ? 200 : 100) + (a + b) % 3) + ",";
      }
      text += "\n";
    }
    const Distances distances = distances_of(parse_pair_matrix(text, "m"), topology, {});
    EXPECT_EQ(distances.home, home < 2 ? std::optional(home) : std::nullopt);
    EXPECT_GT(distances.explained, 0.99);
    ASSERT_EQ(distances.merged.size(), 3U);
    EXPECT_NEAR(distances.merged[1].median_ns, 101, 1);
    EXPECT_NEAR(distances.merged[2].median_ns, 201, 1);
    MachineSketch sketch{.name = "m",
                         .about = "a",
                         .topology = "package:2 [numa] l3:4 core:4 pu:1",
                         .ll_sc = false,
                         .latencies = {},
                         .latency_source = "measured: by hand",
                         .home_way = distances.home.has_value()};
    for (const DistanceClass& c : distances.merged)
      sketch.latencies.push_back({c.level, c.median_ns});
    const MachineModel machine = machine_like(load_machine("epyc-7763-2s"), sketch);
    EXPECT_EQ(machine.value("home-way"), home < 2 ? 1 : 0);
    EXPECT_EQ(format_machine(parse_machine(format_machine(machine), "f", "")),
              format_machine(machine));
  }
}

TEST(Import, MergesWhatIsEquallyFar) {
  // Clusters of two that nobody can tell, and an inner level that is farther than the one around.
  const PairMatrix matrix =
      parse_pair_matrix(triangle(16, {{2, 31}, {4, 30}, {8, 30.5}, {16, 90}}), "matrix");
  const Topology topology = Topology::from_synthetic("package:2 l3:2 l2:2 core:2 pu:1");
  const Distances distances = distances_of(matrix, topology, {});
  ASSERT_EQ(distances.merged.size(), 2U);
  EXPECT_EQ(distances.merged[0].name(), "PACKAGE");
  EXPECT_EQ(distances.merged[0].pairs, 2 * 28U);
  EXPECT_GT(distances.classes.size(), 2U);
}

/// Half of that machine's dies have no memory: their cores are in no NUMA node, but in groups.
TEST(Import, LevelsMayCoverSomeCoresOnly) {
  const std::string file = std::string(MUSTER_SOURCE_DIR) + "/test/machines/memoryless-dies.xml";
  const Topology topology = Topology::from_file(file);
  const auto of = [](unsigned pu, unsigned cores) { return pu / 2 / cores; };
  std::string text;
  for (unsigned a = 0; a < 64; ++a) {
    for (unsigned b = 0; b < a; ++b) {
      const bool memory = of(a, 8) % 2 == 0;
      text += std::to_string(of(a, 4) == of(b, 4)   ? 20
                             : of(a, 8) != of(b, 8) ? 140
                             : memory               ? 60
                                                    : 90) +
              ",";
    }
    text += "\n";
  }
  const Distances distances = distances_of(parse_pair_matrix(text, "m"), topology, {});
  MachineSketch sketch{.name = "m",
                       .about = "a",
                       .topology = "file " + file,
                       .latencies = {},
                       .latency_source = "measured: by hand"};
  for (const DistanceClass& c : distances.merged)
    sketch.latencies.push_back({c.level, c.median_ns});
  const MachineModel machine = machine_like(load_machine("epyc-7763-2s"), sketch);
  ASSERT_EQ(machine.latencies.size(), 4U);
  EXPECT_EQ(machine.latencies[1].name(), "NUMA");
  EXPECT_EQ(machine.latencies[2].name(), "GROUP");
  const MachineModel again = parse_machine(format_machine(machine), "f", "");
  EXPECT_EQ(format_machine(again), format_machine(machine));
  const Geometry geometry = geometry_of(again, {0, 1, 4, 8, 12, 24});
  const auto ns = [&](unsigned a, unsigned b) {
    return to_ns(geometry.between(geometry.die_of(a), geometry.die_of(b)));
  };
  EXPECT_EQ(ns(0, 1), 20);
  EXPECT_EQ(ns(0, 2), 60);
  EXPECT_EQ(ns(3, 4), 90);
  EXPECT_EQ(ns(3, 5), 140);  // neither has memory: that is nothing that they share
  EXPECT_EQ(ns(0, 3), 140);
}

std::vector<std::string> assumed_levels(const std::string& topology) {
  std::vector<std::string> names;
  for (const LatencyClass& latency :
       assumed_machine(Topology::from_synthetic(topology), topology).latencies) {
    names.push_back(latency.name());
  }
  return names;
}

TEST(Assumed, HasALatencyForEachDistanceAndNoOther) {
  EXPECT_THAT(assumed_levels("package:2 numa:2 core:4 pu:1"),
              ElementsAre("NUMA", "PACKAGE", "MACHINE"));
  EXPECT_THAT(assumed_levels("package:2 [numa] core:4 pu:1"), ElementsAre("NUMA", "MACHINE"));
  EXPECT_THAT(assumed_levels("package:2 [numa] l3:2 core:4 pu:1"),
              ElementsAre("L3", "PACKAGE", "MACHINE"));
  // Packages inside NUMA nodes: of several, and of one.
  EXPECT_THAT(assumed_levels("numa:2 package:2 core:4 pu:1"),
              ElementsAre("PACKAGE", "NUMA", "MACHINE"));
  EXPECT_THAT(assumed_levels("numa:1 package:2 core:4 pu:1"), ElementsAre("PACKAGE", "MACHINE"));
  EXPECT_THAT(assumed_levels("package:1 numa:2 core:4 pu:1"), ElementsAre("NUMA", "MACHINE"));
  EXPECT_THAT(assumed_levels("core:4 pu:1"), ElementsAre("MACHINE"));
}

/// Four packages in a ring, one hop 150 ns or two: whatever lies between is no surprise.
TEST(Import, AMarginHoldsWhatTheClassHas) {
  const char* const packages = "package:4 core:4 pu:1";
  std::string text;
  for (unsigned a = 0; a < 16; ++a) {
    for (unsigned b = 0; b < a; ++b) {
      const unsigned hops = std::min((a / 4 - b / 4) % 4, (b / 4 - a / 4) % 4);
      text += std::to_string(hops == 0 ? 40 : 150 * hops) + ",";
    }
    text += "\n";
  }
  const Topology topology = Topology::from_synthetic(packages);
  const MachineModel machine = imported_machine(
      load_machine("kunpeng920-2s"),
      {.name = "ring", .about = "a", .topology = packages, .latencies = {}, .latency_source = ""},
      distances_of(parse_pair_matrix(text, "m"), topology, {}), "a test");
  EXPECT_EQ(machine.value("latency-MACHINE"), 150);
  EXPECT_NEAR(machine.uncertainty.at("latency-MACHINE"), 1, 1e-9);  // to 300, or from 75
  EXPECT_NEAR(machine.uncertainty.at("latency-PACKAGE"), 0.1, 1e-9);
  EXPECT_EQ(machine.provenance.at("latency-PACKAGE"), "measured: median of 24 pairs, a test");
  EXPECT_EQ(machine.provenance.at("latency-MACHINE"), "measured: median of 96 pairs, a test");
}

TEST(Import, SiblingsAreNoClass) {
  const PairMatrix matrix = parse_pair_matrix(triangle(8, {{2, 5}, {8, 40}}), "matrix");
  const Topology topology = Topology::from_synthetic("package:1 core:4 pu:2");
  const Distances distances = distances_of(matrix, topology, {});
  ASSERT_TRUE(distances.siblings_ns.has_value());
  EXPECT_NEAR(*distances.siblings_ns, 5, 1);
  ASSERT_EQ(distances.merged.size(), 1U);
  EXPECT_NEAR(distances.merged[0].median_ns, 40, 1);
  EXPECT_FALSE(distances.merged[0].level.has_value());
}

/// A machine of 2 packages of 4 cores of 2 PUs: its matrix, with row n for CPU cpus[n].
std::string rows_of(const std::vector<unsigned>& cpus) {
  std::string text;
  for (std::size_t a = 0; a < cpus.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const unsigned ns = cpus[a] / 2 == cpus[b] / 2 ? 8 : cpus[a] / 8 == cpus[b] / 8 ? 50 : 140;
      text += std::to_string(ns + (a + b) % 3) + ",";
    }
    text += "\n";
  }
  return text;
}

TEST(Import, InfersHowRowsAreNumbered) {
  const Topology topology = Topology::from_synthetic("package:2 core:4 pu:2");
  const std::vector<Numbering> usual = usual_numberings(topology);
  ASSERT_EQ(usual.size(), 4U);  // this topology numbers siblings side by side itself
  for (const Numbering& numbering : usual) {
    const PairMatrix matrix = parse_pair_matrix(rows_of(numbering.cpus), "m");
    const Numbering inferred = infer_numbering(matrix, topology);
    EXPECT_EQ(inferred.name, numbering.name);
    EXPECT_EQ(inferred.cpus, numbering.cpus);
    const Distances distances = distances_of(matrix, topology, inferred.cpus);
    EXPECT_GT(distances.explained_with_siblings, 0.99);
    EXPECT_NEAR(distances.siblings_ns.value_or(0), 9, 1);
  }
  EXPECT_EQ(usual[1].name, "siblings last");
  EXPECT_EQ(usual[1].cpus,
            (std::vector<unsigned>{0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15}));
}

/// Where all are equally far, nothing speaks against the topology's own.
TEST(Import, KeepsTheTopologysNumbersWithoutAReason) {
  const Topology topology = Topology::from_synthetic("package:2 core:4 pu:2");
  const PairMatrix matrix = parse_pair_matrix(triangle(16, {{16, 70}}), "m");
  EXPECT_EQ(infer_numbering(matrix, topology).name, "as the topology numbers them");
}

TEST(Import, SaysWhatIsMissingAndWhatDiffers) {
  const PairMatrix matrix = parse_pair_matrix("-,20,NaN\n10,,\nnan,8,\n", "m");
  EXPECT_EQ(matrix.unmeasured, 1U);
  EXPECT_NEAR(matrix.at(1, 0), 15, 1e-9);
  EXPECT_NEAR(matrix.asymmetry, 10.0 / 15, 1e-9);
  EXPECT_EQ(parse_pair_matrix(",\n7,\n", "m").asymmetry, 0);
}

TEST(Import, GivesAMachineThatReadsBack) {
  MachineSketch sketch;
  sketch.name = "small";
  sketch.about = "for this test";
  sketch.topology = "package:2 numa:2 core:4 pu:1";
  sketch.latencies = {{LevelKind::numa, 20}, {std::nullopt, 200}};
  sketch.latency_source = "measured: by hand";
  const MachineModel machine = machine_like(load_machine("kunpeng920-2s"), sketch);
  EXPECT_EQ(machine.domain, LevelKind::numa);
  const std::string text = format_machine(machine);
  const MachineModel again = parse_machine(text, "f", "");
  EXPECT_EQ(format_machine(again), text);
  EXPECT_FALSE(again.mechanisms.has(Mechanism::ll_sc));
  EXPECT_NEAR(again.value("read-occupancy"),
              load_machine("kunpeng920-2s").value("read-occupancy") * 20 / 35, 0.01);
}

std::string error_of(const std::string& text) {
  try {
    parse_pair_matrix(text, "m");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Import, ErrorsNameTheLine) {
  EXPECT_THAT(error_of(""), HasSubstr("fewer than two"));
  EXPECT_THAT(error_of(",\nx,\n"), HasSubstr("m:2: \"x\" is no time"));
  EXPECT_THAT(error_of(",\n-1,\n"), HasSubstr("m:2: \"-1\""));
  EXPECT_THAT(error_of(",,\n1,,\n"), HasSubstr("m:1: 3 columns, but 2 lines"));
  EXPECT_THAT(error_of(",\n,\n"), HasSubstr("no pair has a time"));
  EXPECT_EQ(error_of(",\n1,\n"), "");
  const PairMatrix matrix = parse_pair_matrix(",\n1,\n", "m");
  const auto refusal = [&](const char* topology) -> std::string {
    try {
      static_cast<void>(infer_numbering(matrix, Topology::from_synthetic(topology)));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal("core:4 pu:1"), HasSubstr("has 2 CPUs, the topology or --cpus 4:"));
  EXPECT_THAT(refusal("core:1 pu:1"), HasSubstr("has 2 CPUs, the topology or --cpus 1:"));
  EXPECT_THROW(distances_of(matrix, Topology::from_synthetic("core:4 pu:1"), {0, 9}), Error);
  EXPECT_THROW(distances_of(matrix, Topology::from_synthetic("core:4 pu:1"), {3, 3}), Error);
}

TEST(Synthetic, DescribesWhatNestsRegularly) {
  for (const char* text : {"package:2 numa:2 core:4 pu:1", "package:1 l3:2 core:4 pu:2"}) {
    const Topology topology = Topology::from_synthetic(text);
    const Topology again = Topology::from_synthetic(synthetic_description(topology, "--machine"));
    EXPECT_EQ(again.cores().size(), topology.cores().size()) << text;
    EXPECT_EQ(again.cores().front().pus.size(), topology.cores().front().pus.size()) << text;
    for (const LevelKind kind : {LevelKind::package, LevelKind::l3}) {
      if (topology.level(kind) == nullptr) continue;
      ASSERT_NE(again.level(kind), nullptr) << text;
      EXPECT_EQ(again.level(kind)->units.size(), topology.level(kind)->units.size()) << text;
    }
  }
}

TEST(Synthetic, SaysHowToNameAnIrregularMachine) {
  const Topology topology =
      Topology::from_file(std::string(MUSTER_SOURCE_DIR) + "/test/machines/hybrid-6p8e.xml");
  try {
    synthetic_description(topology, "--machine");
    FAIL() << "it nests";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--machine machine.xml"));
  }
}

TEST(Simplex, FindsTheBottomOfAValley) {
  SimplexOptions options;
  options.start = {-1.2, 1};
  options.low = {-5, -5};
  options.high = {5, 5};
  options.evaluations = 600;
  options.starts = 3;
  const Minimum best = minimise(
      [](const Point& p) {
        const double a = 1 - p[0];
        const double b = p[1] - p[0] * p[0];
        return a * a + 100 * b * b;
      },
      options);
  EXPECT_NEAR(best.at[0], 1, 0.05);
  EXPECT_NEAR(best.at[1], 1, 0.1);
  options.high = {0.5, 5};
  options.start = {0, 0};
  const Minimum bounded = minimise([](const Point& p) { return -p[0] + p[1] * p[1]; }, options);
  EXPECT_NEAR(bounded.at[0], 0.5, 1e-6);
}

TEST(Simplex, ALineIsSearchedAsAWhole) {
  const auto two_valleys = [](const Point& p) {
    const double x = p[0];
    return x < 3 ? 1 + (x - 1) * (x - 1) : 0.5 + (x - 7.3) * (x - 7.3);
  };
  const Minimum best = minimise_on_line(two_valleys, 0, 10, 40);
  EXPECT_NEAR(best.at[0], 7.3, 0.01);
  EXPECT_EQ(best.evaluations, 40U);
  const Minimum at_the_end = minimise_on_line([](const Point& p) { return -p[0]; }, -2, 5, 20);
  EXPECT_EQ(at_the_end.at[0], 5);
  const Minimum poor = minimise_on_line(two_valleys, 0, 10, 1);  // never fewer than five
  EXPECT_EQ(poor.evaluations, 5U);
}

TEST(Patterns, RunInTheModel) {
  const MachineModel machine = load_machine("kunpeng920-2s");
  StackPool pool;
  const auto ns = [&](const char* pattern, std::vector<unsigned> cores, unsigned count) {
    return model_ns(machine, {pattern, pattern, std::move(cores), count}, pool);
  };
  const double near = ns("ping-pong", {0, 1}, 1);
  EXPECT_GT(near, 4 * 35);  // two ownership requests and two reads
  EXPECT_GT(ns("ping-pong", {0, 40}, 1), near);
  EXPECT_GT(ns("ping-pong", {0, 100}, 1), ns("ping-pong", {0, 40}, 1));
  EXPECT_GT(ns("one-writer", {0, 1, 2, 3, 4, 5, 6, 7}, 1), ns("one-writer", {0, 1}, 1));
  EXPECT_GT(ns("one-reader", {0, 1}, 16), ns("one-reader", {0, 1}, 4));
  EXPECT_GT(ns("many-stores", {0, 1}, 16), ns("many-stores", {0, 1}, 4));
  EXPECT_GT(ns("one-counter", {0, 1, 2, 3}, 16), ns("one-counter", {0, 1}, 16));
  EXPECT_NEAR(ns("own-stores", {0}, 64), 64 * machine.parameters.store_gap_ns,
              16 * machine.parameters.store_gap_ns + 5);
  EXPECT_NEAR(ns("own-looks", {0}, 64), 64 * machine.parameters.hit_ns, 1);
}

MicroResult result_of(const char* pattern, const char* label, std::vector<unsigned> cores,
                      double measured_ns, double modelled_ns, bool barrier = false) {
  return {{pattern, label, std::move(cores), 1}, measured_ns, modelled_ns, false, barrier};
}

TEST(Closure, IsJudgedByKind) {
  const std::vector<Closure> closures = closures_of({
      result_of("own-looks", "a look", {0}, 1.0, 1.1),
      result_of("one-counter", "an addition", {0}, 10, 10),  // one core: alone
      result_of("ping-pong", "near", {0, 1}, 100, 114.5),
      result_of("ping-pong", "far", {0, 2}, 100, 86),
      result_of("one-counter", "4 each", {0, 1}, 100, 110),
      result_of("one-counter", "16 each", {0, 1}, 100, 80),
      result_of("one-counter", "64 each", {0, 1}, 100, 116),
      result_of("mcs", "mcs", {0, 1}, 100, 120, true),  // a prediction may be farther off
  });
  ASSERT_EQ(closures.size(), 4U);
  EXPECT_EQ(closures[0].kind, "alone");
  EXPECT_EQ(closures[0].all, 2U);
  EXPECT_TRUE(closures[0].closes());
  EXPECT_NEAR(closures[0].worst, 0.1, 1e-12);
  EXPECT_EQ(closures[1].kind, "ping-pong");
  EXPECT_EQ(closures[1].good, 2U);
  EXPECT_TRUE(closures[1].closes());
  EXPECT_EQ(closures[2].kind, "one-counter");
  EXPECT_EQ(closures[2].good, 1U);
  EXPECT_EQ(closures[2].all, 3U);
  EXPECT_FALSE(closures[2].closes());
  EXPECT_NEAR(closures[2].worst, -0.2, 1e-12);
  EXPECT_EQ(closures[2].worst_label, "16 each");
  EXPECT_EQ(closures[3].kind, "barriers");
  EXPECT_TRUE(closures[3].prediction);
  EXPECT_TRUE(closures[3].closes());
  EXPECT_FALSE(all_close(closures));
  EXPECT_EQ(verdict(closures[1]),
            "ping-pong    closes         2 of 2 within 15 %, the worst +14.5 % (near)");
  EXPECT_EQ(verdict(closures[2]),
            "one-counter  does not close 1 of 3 within 15 %, the worst -20.0 % (16 each)");
  EXPECT_EQ(verdict(closures[3]),
            "barriers     holds          1 of 1 within 25 %, the worst +20.0 % (mcs)");
}

TEST(Closure, DoesNotDependOnPredictions) {
  const std::vector<Closure> closures =
      closures_of({result_of("ping-pong", "near", {0, 1}, 100, 100),
                   result_of("mcs", "mcs", {0, 1}, 100, 100, true),
                   result_of("topo", "topo", {0, 1}, 100, 74, true)});
  ASSERT_EQ(closures.size(), 2U);
  EXPECT_FALSE(closures[1].closes());
  EXPECT_TRUE(all_close(closures));
  EXPECT_THAT(verdict(closures[1]), HasSubstr("barriers     does not hold  1 of 2"));
}

}  // namespace
}  // namespace muster::sim
