// SPDX-License-Identifier: BSD-3-Clause
// The critical path of an episode, in words, of one that is written here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/episode.hpp"

namespace muster::sim {
namespace {

using testing::HasSubstr;
using Kind = Operation::Kind;

Operation operation(Kind kind, unsigned participant, double begin_ns, double end_ns) {
  Operation o{kind, participant};
  o.begin = from_ns(begin_ns);
  o.end = from_ns(end_ns);
  return o;
}

Operation on(std::uint32_t line, Operation o) {
  o.line = line;
  return o;
}

Operation seen(std::uint32_t writer, double committed_ns, Operation o) {
  o.writer = writer;
  o.committed_at = from_ns(committed_ns);
  return o;
}

Operation of(std::size_t set_size, Operation o) {
  o.set_size = set_size;
  return o;
}

/// Three ranks on two dies, a global cell and two of each rank.
Episode episode_of(std::vector<Operation> operations) {
  Episode episode;
  episode.operations = std::move(operations);
  episode.geometry.dies_ = 2;
  episode.geometry.die_of_ = {0, 0, 1};
  episode.layout = {1, 2};
  episode.machine = "a machine";
  episode.barrier = "a barrier";
  episode.latency_us = 0.25;
  episode.distance = [](unsigned a, unsigned b) {
    return std::string(a / 2 == b / 2 ? "NUMA" : "MACHINE");
  };
  return episode;
}

TEST(Why, FollowsEachWaitToTheStoreThatEndedIt) {
  const std::string text = why(episode_of({
      operation(Kind::enter, 0, 0, 0),
      operation(Kind::enter, 1, 5, 5),
      operation(Kind::enter, 2, 20, 20),
      on(4, operation(Kind::store, 0, 10, 10)),                            // cell 1 of rank 1
      on(4, seen(0, 60, operation(Kind::await, 1, 5, 120))),               // in the die
      on(0, seen(0, 15, operation(Kind::await, 1, 120, 121))),             // was there already
      on(6, operation(Kind::store, 1, 130, 130)),                          // cell 1 of rank 2
      of(3, on(6, seen(1, 200, operation(Kind::await_set, 2, 20, 300)))),  // across
      operation(Kind::leave, 0, 140, 140),
      operation(Kind::leave, 1, 131, 131),
      operation(Kind::leave, 2, 305, 305),
  }));
  EXPECT_THAT(text, HasSubstr("a barrier on a machine: 0.25 us an episode"));
  EXPECT_THAT(
      text,
      HasSubstr("        0 ns  rank 0 arrives\n"
                "       10 ns  rank 0 stores to cell 1 of rank 1\n"
                "      120 ns  rank 1 sees cell 1 of rank 1 from rank 0 (same NUMA: visible after "
                "50 ns, seen 60 ns later)\n"
                "      121 ns  rank 1 sees global cell 0, which was there already\n"
                "      130 ns  rank 1 stores to cell 1 of rank 2\n"
                "      300 ns  rank 2 sees the last of 3 cells, cell 1 of rank 2 from rank 1 (same "
                "MACHINE: visible after 70 ns, seen 100 ns later)\n"
                "      305 ns  rank 2 leaves, the last one\n"));
  EXPECT_THAT(text, HasSubstr("       19 ns  2 stores\n"));  // 10 and 9: until they are issued
  EXPECT_THAT(text, HasSubstr("      110 ns  1 stores from the same NUMA, until seen\n"));
  EXPECT_THAT(text, HasSubstr("      170 ns  1 stores from the same MACHINE, until seen\n"));
  EXPECT_THAT(text, HasSubstr("        1 ns  1 reads of what was there already\n"));
}

TEST(Why, FollowsUpdatesThatWaitedForEachOther) {
  const std::string text = why(episode_of({
      operation(Kind::enter, 0, 0, 0),
      operation(Kind::enter, 1, 30, 30),
      on(0, operation(Kind::update, 0, 0, 50)),
      on(0, seen(0, 50, operation(Kind::update, 1, 30, 90))),
      operation(Kind::leave, 0, 60, 60),
      operation(Kind::leave, 1, 95, 95),
  }));
  EXPECT_THAT(text, HasSubstr("        0 ns  rank 0 arrives\n"
                              "       50 ns  rank 0 has updated global cell 0\n"
                              "       90 ns  rank 1 has updated global cell 0, after rank 0 (same "
                              "NUMA)\n"
                              "       95 ns  rank 1 leaves, the last one\n"));
  EXPECT_THAT(text, HasSubstr("       50 ns  1 updates\n"));
  EXPECT_THAT(text, HasSubstr("       40 ns  1 updates that waited for another\n"));
}

TEST(Why, AWaitThatWasOverBeforeItBeganHasNoCause) {
  const std::string text = why(episode_of({
      operation(Kind::enter, 0, 0, 0),
      operation(Kind::enter, 1, 100, 100),
      on(4, operation(Kind::store, 0, 10, 10)),
      on(4, seen(0, 60, operation(Kind::await, 1, 100, 101))),
      operation(Kind::leave, 0, 20, 20),
      operation(Kind::leave, 1, 103, 103),
  }));
  EXPECT_THAT(text, HasSubstr("\n\n        0 ns  rank 1 arrives\n"
                              "        1 ns  rank 1 sees cell 1 of rank 1, which was there already"
                              "\n"
                              "        3 ns  rank 1 leaves, the last one\n"));
}

TEST(Why, OneRankIsNotRanks) {
  const Query alone{"mcs", 1, Mapping::core};
  EXPECT_THAT(why(record_episode(load_machine("oak"), alone, {})),
              HasSubstr("mcs, 1 rank by core on oak"));
}

TEST(Why, OfNothingSaysSo) { EXPECT_EQ(why(episode_of({})), "no episode was recorded\n"); }

}  // namespace
}  // namespace muster::sim
