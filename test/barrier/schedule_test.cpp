// SPDX-License-Identifier: BSD-3-Clause
// What is composed is a barrier, over many trees and recipes; and what check_schedule() says of
// schedules that are none. Whether they run is every_barrier_test's and the checker's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "barrier/compose.hpp"
#include "machine/error.hpp"

namespace muster::test {
namespace {

using testing::HasSubstr;

/// Groups of `size` neighbours, then one of their leaders; with size 0, one of all.
GroupTree tree_of(unsigned participants, unsigned size) {
  if (size == 0) return groups_or_one(nullptr, participants);
  GroupTree tree{participants, {{"NUMA", {}}, {"MACHINE", {{}}}}};
  for (unsigned first = 0; first < participants; first += size) {
    Group& group = tree.levels[0].groups.emplace_back();
    for (unsigned r = first; r < std::min(first + size, participants); ++r) {
      group.members.push_back(r);
    }
    tree.levels[1].groups[0].members.push_back(first);
  }
  return tree;
}

constexpr const char* recipes[] = {
    "tree8+line16/all",         "count4+direct",
    "count4+line2/rounds",      "flat+line",
    "tree2+line1x2/tree2+line", "count2+line1/count2+line1/count+line",
    "count4+line/flat+direct3", "tree3+line4x1/count2+direct5x2"};

TEST(Schedule, WhatIsComposedIsABarrier) {
  for (const char* recipe : recipes) {
    for (unsigned participants = 1; participants <= 17; ++participants) {
      for (unsigned size = 0; size <= participants; ++size) {
        const Schedule made = compose(tree_of(participants, size), parse_recipe(recipe));
        EXPECT_EQ(check_schedule(made), "") << recipe << ", " << participants << " in " << size;
        EXPECT_EQ(made.participants(), participants);
      }
    }
    EXPECT_EQ(check_schedule(compose(tree_of(130, 33), parse_recipe(recipe))), "") << recipe;
  }
}

// Rank 0 tells rank 1 that it has come before it counts itself in: rank 1 could leave by that and
// by its own flag, and count once more before rank 0 has counted at all.
TEST(Schedule, WhoCountsTellsNobodyBefore) {
  const CellAt from_0{1, 0};
  const CellAt from_1{0, 0};
  const CellAt counter{0, 1};
  const CellAt all{0, 2};
  Schedule schedule;
  schedule.cells_per_rank = 3;
  for (const unsigned rank : {0U, 1U}) {
    const auto first = static_cast<unsigned>(schedule.cells.size());
    const auto step = static_cast<unsigned>(schedule.steps.size());
    for (const CellAt at : {rank == 0 ? from_0 : from_1, counter, all})
      schedule.cells.push_back(at);
    schedule.cells.push_back(rank == 0 ? from_1 : from_0);
    schedule.cells.push_back(all);
    schedule.steps.push_back({first, 0, 1, 2});
    schedule.steps.push_back({first + 2, 0, 1, 0});
    schedule.steps.push_back({first + 3, rank == 0 ? 1U : 2U, 0, 0});
    schedule.programs.push_back({step, step + 2, step + 3});
  }
  EXPECT_THAT(check_schedule(schedule), HasSubstr("after a store"));
}

// Each wait and each store of a composed schedule is there for a reason.
TEST(Schedule, NothingCanBeLeftOut) {
  for (const char* recipe : recipes) {
    for (const unsigned participants : {2U, 5U, 9U, 70U}) {
      const Schedule whole = compose(tree_of(participants, 4), parse_recipe(recipe));
      for (std::size_t i = 0; i < whole.steps.size(); ++i) {
        Schedule without = whole;
        Step& step = without.steps[i];
        if (step.awaits > 0) {
          ++step.first_cell;
          --step.awaits;
        } else if (step.stores > 0 && step.adders == 0) {
          --step.stores;
        } else {
          step.adders += 1;
        }
        EXPECT_NE(check_schedule(without), "") << recipe << ", " << participants << ", step " << i;
      }
    }
  }
}

template <class F>
double cpu_seconds(const F& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

// Whoever attaches checks, and another process says what. With a pass for each 64 participants
// that took half a minute, fifty times as long as to compose it.
TEST(Schedule, ManyParticipantsAreCheckedAsSoonAsTheyAreComposed) {
  for (const char* recipe : {"count2+line1x1", "tree2+line1/rounds", "tree8+line16"}) {
    Schedule many;
    const double to_compose =
        cpu_seconds([&] { many = compose(tree_of(65536, 2), parse_recipe(recipe)); });
    EXPECT_LE(cpu_seconds([&] { EXPECT_EQ(check_schedule(many), ""); }), 8 * to_compose) << recipe;
  }
}

// A rank's memory is as large as that of the one who has most. It was 64 MiB for 1,024 of which one
// polls all others' flags.
TEST(Schedule, OneRanksManyFlagsAreSpread) {
  for (const unsigned participants : {1024U, 5000U, 65536U}) {
    for (const unsigned size : {0U, 3U, 300U}) {
      const Schedule made = compose(tree_of(participants, size), parse_recipe("flat+line"));
      EXPECT_EQ(check_schedule(made), "") << participants << " in " << size;
      EXPECT_LE(made.cells_per_rank * participants, std::max(65536U, 6 * participants));
    }
  }
  // What few lines take lies where it is polled.
  EXPECT_EQ(compose(tree_of(256, 0), parse_recipe("flat+line")).cells_per_rank, 255U);
}

/// Two participants that tell each other.
Schedule exchange() {
  return {.cells_per_rank = 1,
          .programs = {{0, 2, 2}, {2, 4, 4}},
          .steps = {{0, 0, 1, 0}, {1, 1, 0, 0}, {2, 0, 1, 0}, {3, 1, 0, 0}},
          .cells = {{1, 0}, {0, 0}, {0, 0}, {1, 0}}};
}

TEST(Schedule, FaultsAreNamed) {
  ASSERT_EQ(check_schedule(exchange()), "");
  const auto fault = [](auto&& change) {
    Schedule schedule = exchange();
    change(schedule);
    return check_schedule(schedule);
  };
  EXPECT_THAT(check_schedule({}), HasSubstr("nobody's"));
  EXPECT_THAT(fault([](Schedule& s) { s.programs[1].end = 5; }), HasSubstr("follow each other"));
  EXPECT_THAT(fault([](Schedule& s) { s.programs[1].departures = 1; }), HasSubstr("follow"));
  EXPECT_THAT(fault([](Schedule& s) { s.steps.push_back({}); }), HasSubstr("nobody's"));
  EXPECT_THAT(fault([](Schedule& s) { s.cells[0].rank = 2; }), HasSubstr("not there"));
  EXPECT_THAT(fault([](Schedule& s) { s.steps[3].first_cell = ~0U; }), HasSubstr("not there"));
  EXPECT_THAT(fault([](Schedule& s) { s.cells[0] = {0, 0}; }), HasSubstr("stored twice"));
  EXPECT_THAT(fault([](Schedule& s) { s.steps[0].stores = 0; }), HasSubstr("nobody stores it"));
  EXPECT_THAT(fault([](Schedule& s) {
                std::swap(s.steps[0], s.steps[1]);
                std::swap(s.steps[2], s.steps[3]);
              }),
              HasSubstr("in a circle"));
  EXPECT_THAT(fault([](Schedule& s) { s.steps[1].awaits = 0; }),
              HasSubstr("rank 0 may leave before rank 1 has arrived"));
}

TEST(Schedule, FaultsOfCountersAreNamed) {
  const Schedule whole = compose(tree_of(4, 2), parse_recipe("count+line/count+direct"));
  ASSERT_EQ(check_schedule(whole), "");
  const auto fault = [&](auto&& change) {
    Schedule schedule = whole;
    change(schedule);
    return check_schedule(schedule);
  };
  // Rank 0: counts with rank 1, then with the other pair's last, then stores the line.
  EXPECT_THAT(fault([](Schedule& s) { s.steps[0].adders = 3; }), HasSubstr("different numbers"));
  EXPECT_THAT(fault([](Schedule& s) { s.steps[1].adders = 0; }), HasSubstr("different steps"));
  EXPECT_THAT(fault([](Schedule& s) { s.cells[s.steps[2].first_cell] = s.cells[0]; }),
              HasSubstr("a flag and a counter"));
  EXPECT_THAT(fault([](Schedule& s) {
                for (Step& step : s.steps) step.adders = step.adders == 0 ? 0 : 3;
              }),
              HasSubstr("fewer adders"));
  EXPECT_THAT(fault([](Schedule& s) { --s.programs[0].departures; }), HasSubstr("different steps"));
  EXPECT_THAT(fault([](Schedule& s) { s.programs[3].departures = s.programs[3].arrivals; }),
              HasSubstr("counts departures"));
}

TEST(Recipe, IsReadAndWritten) {
  for (const char* text : recipes) EXPECT_EQ(format_recipe(parse_recipe(text)), text);
  for (const char* text : {"", "tree", "tree0", "tree8+", "tree8/", "all+line", "all/tree2",
                           "flat3", "tree99999999999", "line16", "tree8+line0", "tree2+direct4x"}) {
    try {
      static_cast<void>(parse_recipe(text));
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("a recipe is levels")) << text;
    }
  }
}

}  // namespace
}  // namespace muster::test
