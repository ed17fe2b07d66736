// SPDX-License-Identifier: BSD-3-Clause
// What other locks and places would make of a program's mutex.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "machine/error.hpp"
#include "sim/pair_matrix.hpp"
#include "sim/remedies.hpp"

namespace muster::sim {
namespace {

Remedies remedies_on(const char* machine, const Contention& seen) {
  return predict_remedies(load_machine(machine), seen, {}, {});
}

double ratio(const Remedies& of, const char* lock, bool near) {
  for (const Remedy& each : of.all) {
    if (each.lock == lock && each.near == near) return each.sections_s / of.now().sections_s;
  }
  ADD_FAILURE() << lock << " was not modelled";
  return 0;
}

TEST(Remedies, ShortSectionsOnManyCores) {
  const Remedies found = remedies_on(
      "kunpeng920-2s", {.threads = 64, .held_ns = 40, .apart_ns = 200, .moved_ns = 400});
  EXPECT_EQ(found.threads, 64U);
  EXPECT_GE(found.lines, 2U);
  EXPECT_GT(ratio(found, "mutex-cna", false), 1.1);
  EXPECT_GT(ratio(found, "mutex-pthread", true), 1.1);  // on one package instead of two
  EXPECT_GT(ratio(found, "rcl", false), ratio(found, "mutex-cna", false));
}

TEST(Remedies, NothingHelpsWhereSectionsAreLongOrSeldom) {
  for (const Contention& seen :
       {Contention{.threads = 8, .held_ns = 1e6, .apart_ns = 1e5, .moved_ns = 0},
        Contention{.threads = 8, .held_ns = 100, .apart_ns = 1e6, .moved_ns = 0}}) {
    const Remedies found = remedies_on("kunpeng920-2s", seen);
    for (const Remedy& each : found.all) {
      EXPECT_NEAR(each.sections_s / found.now().sections_s, 1, 0.1) << each.lock;
    }
  }
}

TEST(Remedies, MoreThreadsThanCoresComeAsOften) {
  const Contention seen{.threads = 40, .held_ns = 50, .apart_ns = 40e6, .moved_ns = 0};
  const Remedies found = remedies_on("oak", seen);
  EXPECT_LT(found.threads, 40U);
  EXPECT_NEAR(found.now().sections_s, 40 / 40e-3, 100);
}

TEST(Remedies, OfAMachineOfWhichOnlyTheTopologyIsKnown) {
  for (const char* shape : {"core:2 pu:1", "package:2 numa:2 core:4 pu:2", "core:1 pu:1"}) {
    const MachineModel machine = assumed_machine(Topology::from_synthetic(shape), shape);
    const Remedies found = predict_remedies(
        machine, {.threads = 2, .held_ns = 50, .apart_ns = 50, .moved_ns = 50}, {}, {});
    EXPECT_GT(found.now().sections_s, 0) << shape;
  }
  const double not_a_time = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(remedies_on("oak", {.threads = 2, .held_ns = not_a_time, .apart_ns = 1}), Error);
  EXPECT_THROW(remedies_on("oak", {}), Error);
}

// One client beside a free core is not what four threads on two cores are.
TEST(Remedies, AServerHasACoreThatNoThreadTakes) {
  const MachineModel two = assumed_machine(Topology::from_synthetic("core:2 pu:1"), "core:2 pu:1");
  for (const unsigned threads : {1U, 2U, 4U}) {
    const Remedies found =
        predict_remedies(two, {.threads = threads, .held_ns = 50, .apart_ns = 50}, {}, {});
    const bool serves = std::ranges::any_of(
        found.all, [](const Remedy& each) { return each.lock == "rcl" && each.sections_s > 0; });
    EXPECT_EQ(serves, threads == 1) << threads;
  }
}

}  // namespace
}  // namespace muster::sim
