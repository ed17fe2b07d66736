// SPDX-License-Identifier: BSD-3-Clause
// Latencies between CPUs: measured, sorted into levels, drawn.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <utility>

#include "bench/heat_map.hpp"
#include "bench/matrix_levels.hpp"
#include "bench/pair_times.hpp"
#include "sim/split_mix.hpp"

namespace muster::bench {
namespace {

/// `ns(a, b)`, and up to `noise` of it more or less, at random.
template <class Fn>
sim::PairMatrix matrix_of(unsigned size, Fn ns, double noise = 0.08) {
  SplitMix64 random(7);
  sim::PairMatrix matrix;
  matrix.size = size;
  matrix.ns.assign(std::size_t{size} * size, std::numeric_limits<double>::quiet_NaN());
  for (unsigned a = 0; a < size; ++a) {
    for (unsigned b = 0; b < a; ++b) {
      const double off = noise * (static_cast<double>(random.next() % 2001) / 1000 - 1);
      matrix.ns[a * size + b] = matrix.ns[b * size + a] = ns(a, b) * (1 + off);
    }
  }
  return matrix;
}

std::vector<unsigned> counting(unsigned size) {
  std::vector<unsigned> numbers;
  for (unsigned n = 0; n < size; ++n) numbers.push_back(n);
  return numbers;
}

// Siblings last, packages by turns: no group's rows are neighbours.
TEST(Levels, AreFoundHoweverTheCpusAreNumbered) {
  const auto core = [](unsigned cpu) { return cpu % 32; };
  const auto package = [](unsigned cpu) { return cpu % 2; };
  const auto cache = [](unsigned cpu) { return cpu % 32 / 2 / 4 * 2 + cpu % 2; };
  const sim::PairMatrix matrix = matrix_of(64, [&](unsigned a, unsigned b) {
    return core(a) == core(b) ? 9 : cache(a) == cache(b) ? 25 : package(a) == package(b) ? 90 : 200;
  });
  const FoundLevels found = find_levels(matrix);
  ASSERT_EQ(found.levels.size(), 4U);
  const std::pair<unsigned, double> expected[] = {{2, 9}, {8, 25}, {32, 90}, {64, 200}};
  for (unsigned n = 0; n < 4; ++n) {
    EXPECT_EQ(found.levels[n].sizes,
              std::vector<unsigned>(64 / expected[n].first, expected[n].first));
    EXPECT_NEAR(found.levels[n].median_ns, expected[n].second, 0.03 * expected[n].second);
  }
  EXPECT_EQ(found.levels[0].pairs, 32U);
  EXPECT_EQ(found.levels[3].pairs, 32U * 32U);
  for (unsigned cpu = 0; cpu < 64; ++cpu) EXPECT_EQ(found.levels[2].groups[cpu], package(cpu));
  for (unsigned n = 1; n < 64; ++n) {  // those of a cache stand side by side
    if (n % 8 == 0) continue;
    EXPECT_EQ(cache(found.order[n]), cache(found.order[n - 1])) << n;
    if (n % 2 != 0) continue;
    EXPECT_LT(found.order[n - 2], found.order[n]) << n;
  }
}

TEST(Levels, NoiseIsNone) {
  const FoundLevels flat = find_levels(matrix_of(
      48, [](unsigned, unsigned) { return 50; }, 0.3));
  EXPECT_EQ(flat.levels.size(), 1U);
  // A mesh: the farther, the longer, without a gap.
  const FoundLevels mesh = find_levels(matrix_of(
      32, [](unsigned a, unsigned b) { return 40 + 0.5 * (a > b ? a - b : b - a); }, 0.02));
  EXPECT_EQ(mesh.levels.size(), 1U);
  // One CPU that is slow for everybody is no group.
  const FoundLevels slow =
      find_levels(matrix_of(16, [](unsigned a, unsigned b) { return a == 5 || b == 5 ? 90 : 50; }));
  EXPECT_EQ(slow.levels.size(), 1U);
  EXPECT_EQ(find_levels(matrix_of(2, [](unsigned, unsigned) { return 50; })).levels.size(), 1U);
}

TEST(Levels, PairsWithoutATimeTellNothing) {
  sim::PairMatrix matrix = matrix_of(16, [](unsigned a, unsigned b) {
    return a / 4 == b / 4 ? 20 : a / 8 == b / 8 ? 60 : 150;
  });
  for (unsigned n = 0; n < 40; ++n) {
    const unsigned a = n * 7 % 16;
    const unsigned b = n * 3 % 16;
    matrix.ns[a * 16 + b] = matrix.ns[b * 16 + a] = std::numeric_limits<double>::quiet_NaN();
  }
  const FoundLevels found = find_levels(matrix);
  ASSERT_EQ(found.levels.size(), 3U);
  EXPECT_EQ(found.levels[0].sizes, std::vector<unsigned>(4, 4));
  EXPECT_EQ(found.levels[1].sizes, std::vector<unsigned>(2, 8));
}

TEST(Levels, AreComparedWithTheTopologys) {
  const Topology topology = Topology::from_synthetic("package:2 [numa] l3:2 core:4 pu:2");
  const std::vector<NamedLevel> named = levels_on(topology, counting(32));
  ASSERT_EQ(named.size(), 3U);
  EXPECT_NE(named[0].name.find("CORE"), std::string::npos);
  EXPECT_EQ(named[1].name, "L3");
  EXPECT_EQ(named[2].name, "NUMA, PACKAGE");
  EXPECT_EQ(agreement(named[1].groups, named[1].groups), 1);
  EXPECT_DOUBLE_EQ(agreement(named[1].groups, named[2].groups), 4 * 28.0 / (2 * 120));
  // On the CPUs of one package nothing that is above groups anything.
  EXPECT_EQ(levels_on(topology, counting(16)).back().name, "L3");
}

/// A machine of so many CPUs, with a clock of its own: a pair takes two milliseconds.
struct Simulated {
  std::int64_t now_ns = 0;
  std::vector<std::pair<unsigned, unsigned>> asked;
  PairMeter meter() {
    return {[this](unsigned a, unsigned b) {
              asked.emplace_back(a, b);
              now_ns += 2'000'000;
              return a / 32 == b / 32 ? 30.0 : 90.0;
            },
            [this] { return now_ns; }};
  }
};

TEST(MeasurePairs, OfAHundredAndTwentyEightCpusInTwoMinutes) {
  constexpr unsigned cpus = 128;
  constexpr std::size_t pairs = cpus * (cpus - 1) / 2;
  Simulated machine;
  double last = 0;
  std::vector<std::pair<double, double>> told;  // when, and how much is left
  const PairTimes times = measure_pairs(
      {counting(cpus)},
      [&](const Progress& progress) {
        EXPECT_GE(progress.share, last);
        last = progress.share;
        told.emplace_back(static_cast<double>(machine.now_ns) * 1e-9, progress.left_s);
      },
      machine.meter());
  EXPECT_EQ(times.rounds, 5U);
  EXPECT_LT(times.seconds, 120);
  EXPECT_EQ(last, 1);
  for (const auto& [when, left] : told) EXPECT_NEAR(when + left, times.seconds, 1) << when;
  ASSERT_EQ(machine.asked.size(), 5 * pairs);
  for (std::size_t round = 0; round < 5; ++round) {  // each pair once, in an order of its own
    const auto begin = machine.asked.begin() + static_cast<std::ptrdiff_t>(round * pairs);
    const std::set<std::pair<unsigned, unsigned>> each(begin, begin + pairs);
    EXPECT_EQ(each.size(), pairs);
    if (round == 0) continue;
    EXPECT_NE(*begin, *(begin - static_cast<std::ptrdiff_t>(pairs)));
  }
  EXPECT_EQ(times.ns.unmeasured, 0U);
  EXPECT_EQ(find_levels(times.ns).levels.size(), 2U);
}

TEST(MeasurePairs, OfTwoCpusAsOftenAsFitsIntoTwoSeconds) {
  Simulated machine;
  const PairTimes times = measure_pairs(
      {{0, 1}}, [](const Progress&) {}, machine.meter());
  EXPECT_EQ(times.rounds, 1000U);
  EXPECT_NEAR(times.seconds, 2, 0.01);
}

TEST(HeatMap, FitsATerminal) {
  for (const unsigned size : {2U, 18U, 19U, 36U, 37U, 128U, 200U, 512U}) {
    const sim::PairMatrix matrix =
        matrix_of(size, [&](unsigned a, unsigned b) { return a / 8 == b / 8 ? 30 : 400; });
    std::vector<unsigned> cpus = counting(size);
    for (unsigned& cpu : cpus) cpu += 1000;
    std::istringstream lines(heat_map(matrix, cpus, counting(size), false));
    unsigned count = 0;
    for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 79U) << size;
    EXPECT_LE(count, 40U) << size;
  }
}

TEST(HeatMap, TheFartherTheDenser) {
  const sim::PairMatrix matrix = matrix_of(
      32, [](unsigned a, unsigned b) { return a / 16 == b / 16 ? 30 : 300; }, 0);
  const std::string text = heat_map(matrix, counting(32), counting(32), false);
  std::istringstream lines(text);
  std::string line;
  for (int row = 0; row < 2; ++row) std::getline(lines, line);
  EXPECT_EQ(line, "    0 " + std::string("  ") + std::string(30, '.') + std::string(32, '@'));
  EXPECT_NE(text.find("..30"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(heat_map(matrix, counting(32), counting(32), true).find("\x1b[48;5;"),
            std::string::npos);
}

TEST(PairTimes, EachPairOfThisMachineHasATime) {
  const std::vector<unsigned> all = Topology::this_machine().pus().to_vector();
  if (all.size() < 2) GTEST_SKIP() << "one CPU";
  const std::vector<unsigned> cpus(all.begin(), all.begin() + std::min<long>(3, std::ssize(all)));
  double share = 0;
  const PairTimes times = measure_pairs({cpus, 2}, [&](const Progress& progress) {
    EXPECT_GE(progress.share, share);
    EXPECT_GE(progress.left_s, 0);
    share = progress.share;
  });
  EXPECT_EQ(share, 1);
  EXPECT_EQ(times.rounds, 2U);
  EXPECT_EQ(times.ns.unmeasured, 0U);
  for (unsigned a = 0; a < cpus.size(); ++a) {
    for (unsigned b = 0; b < a; ++b) {
      EXPECT_GT(times.ns.at(a, b), 0.5);
      EXPECT_LE(times.low_ns.at(a, b), times.ns.at(a, b));
      EXPECT_LE(times.ns.at(a, b), times.high_ns.at(a, b));
      EXPECT_EQ(times.ns.at(a, b), times.ns.at(b, a));
    }
  }
}

}  // namespace
}  // namespace muster::bench
