// SPDX-License-Identifier: BSD-3-Clause
// Every mechanism on and off: single operations against values calculated by hand, and whole
// barriers, which each of them makes slower or faster, or leaves alone. Those that engine_test.cpp
// and data_memory_test.cpp switch off among other things are not repeated here.
#include <gtest/gtest.h>

#include "sim/predict.hpp"
#include "small_machine.hpp"

namespace muster::sim {
namespace {

class MechanismTest : public SmallMachine {
 protected:
  /// What `measure` returns with the mechanism and without it.
  template <class Measure>
  std::pair<Time, Time> with_and_without(Mechanism mechanism, Measure measure) {
    mechanisms_ = base_;
    const Time with = measure();
    mechanisms_ = base_.without(mechanism);
    return {with, measure()};
  }
  Mechanisms base_ = Mechanisms::all().without(Mechanism::ll_sc);
  const Time later_ = from_ns(1000);  ///< when everything before is over
};

using Pair = std::pair<Time, Time>;

TEST_F(MechanismTest, DistanceClasses) {
  // A flag to the other die: ownership, the waiter's next look a hit later, its read, the test.
  const auto seen = [&] {
    Time end = 0;
    play({{2,
           [&](Modelled& m) {
             m.load(cell(0), acquire);
             m.await(cell(0), equals(1), acquire);
             end = clock(m);
           }},
          {0, [&](Modelled& m) { m.store(cell(0), 1, release); }, later_}});
    return end - later_ - from_ns(1 + 1 + 1);
  };
  EXPECT_EQ(with_and_without(Mechanism::distance_classes, seen), Pair(2 * across, 2 * within));
}

TEST_F(MechanismTest, LineOrder) {
  // Two additions at the same time to a line in memory: the second waits for the first, or goes
  // ahead as if the line were there.
  const auto second = [&] {
    Time ends[2] = {};
    const auto add = [&](Modelled& m) {
      m.fetch_add(cell(0), 1, acq_rel);
      ends[m.participant()] = clock(m);
    };
    play({{0, add}, {1, add}});
    EXPECT_EQ(ends[0], within + from_ns(50));
    return ends[1];
  };
  EXPECT_EQ(with_and_without(Mechanism::line_order, second),
            Pair(within + from_ns(50) + within, within));
}

TEST_F(MechanismTest, ReadQueues) {
  parameters_.read_occupancy_ns = 7;
  geometry_.die_of_ = {0, 0, 0, 0};
  const auto last = [&] {
    Time end = 0;
    const auto read = [&](Modelled& m) {
      m.load(cell(0), acquire);
      end = std::max(end, clock(m));
    };
    play({{0, [&](Modelled& m) { m.store(cell(0), 1, release); }},
          {1, read, later_},
          {2, read, later_},
          {3, read, later_}});
    return end - later_;
  };
  EXPECT_EQ(with_and_without(Mechanism::read_queues, last), Pair(from_ns(2 * 7) + within, within));
}

TEST_F(MechanismTest, DieAgent) {
  parameters_.agent_occupancy_ns = 5;
  const auto last = [&] {
    Time end = 0;
    const auto read = [&](Modelled& m) {
      m.load(cell(m.participant()), acquire);
      end = std::max(end, clock(m));
    };
    play({{0, read}, {1, read}});
    return end;
  };
  EXPECT_EQ(with_and_without(Mechanism::die_agent, last),
            Pair(from_ns(5) + within + from_ns(50), within + from_ns(50)));
}

TEST_F(MechanismTest, DieSharing) {
  // The second reader of a die takes the line from the first, or from the writer's die again.
  const auto second = [&] {
    Time took = 0;
    play({{0, [&](Modelled& m) { m.store(cell(0), 1, release); }},
          {2, [&](Modelled& m) { m.load(cell(0), acquire); }, later_},
          {3,
           [&](Modelled& m) {
             m.load(cell(0), acquire);
             took = clock(m) - 2 * later_;
           },
           2 * later_}});
    return took;
  };
  EXPECT_EQ(with_and_without(Mechanism::die_sharing, second), Pair(within, across));
}

TEST_F(MechanismTest, StoreBuffer) {
  // A store takes its core a gap, or until everybody can see it.
  const auto store = [&] {
    Time took = 0;
    play({{0, [&](Modelled& m) {
             m.store(cell(0), 1, release);
             took = clock(m);
           }}});
    return took;
  };
  EXPECT_EQ(with_and_without(Mechanism::store_buffer, store),
            Pair(from_ns(1), from_ns(1) + within + from_ns(50)));
}

TEST_F(MechanismTest, SetConflicts) {
  // Flags that are all there: each look hits the core's own cache, or the die's if they are more
  // than its ways.
  parameters_.poll_ways = 2;
  parameters_.poll_overlap = 1;
  for (const unsigned flags : {2U, 3U}) {
    const auto poll = [&] {
      Time took = 0;
      play({{0, [&](Modelled& m) {
               std::vector<Line*> set;
               for (unsigned n = 0; n < flags; ++n) {
                 m.load(cell(n), acquire);
                 set.push_back(&cell(n));
               }
               const Time begin = clock(m);
               EXPECT_TRUE(m.await_all(set, equals(0), acquire));
               took = clock(m) - begin;
             }}});
      return took;
    };
    EXPECT_EQ(with_and_without(Mechanism::set_conflicts, poll),
              flags == 2 ? Pair(from_ns(2), from_ns(2)) : Pair(3 * within, from_ns(3)));
  }
}

TEST_F(MechanismTest, LlSc) {
  // An addition reads the line and then asks for it, or asks for it at once.
  base_ = Mechanisms::all();
  const auto add = [&] {
    Time took = 0;
    play({{2, [&](Modelled& m) { m.store(cell(0), 1, release); }},
          {0,
           [&](Modelled& m) {
             EXPECT_EQ(m.fetch_add(cell(0), 1, acq_rel), 1U);
             took = clock(m) - later_;
           },
           later_}});
    return took;
  };
  EXPECT_EQ(with_and_without(Mechanism::ll_sc, add), Pair(2 * across, across));
}

TEST_F(MechanismTest, PollTurn) {
  parameters_.poll_turn_ns = 40;
  constexpr Word rounds = 50;
  const auto waits = [&] {
    Time late = 0;
    play({{0,
           [&](Modelled& m) {
             for (Word n = 1; n <= rounds; ++n) {
               m.engine().delay(0, n * later_ - clock(m));
               m.store(cell(0), n, release);
             }
           }},
          {1, [&](Modelled& m) {
             m.load(cell(0), acquire);
             for (Word n = 1; n <= rounds; ++n) {
               m.await(cell(0), equals(n), acquire);
               // The store's issue and ownership, the look, the read, the test.
               const Time at_once =
                   n * later_ + from_ns(1) + within + from_ns(1) + within + from_ns(1);
               EXPECT_GE(clock(m), at_once);
               EXPECT_LT(clock(m), at_once + from_ns(40));
               late += clock(m) - at_once;
             }
           }}});
    return late / rounds;
  };
  const auto [with, without] = with_and_without(Mechanism::poll_turn, waits);
  EXPECT_NEAR(to_ns(with), 20, 6);  // half a turn on average
  EXPECT_EQ(without, 0);
}

TEST_F(MechanismTest, CallCost) {
  parameters_.message_ns = 30;
  const auto message = [&] {
    Time took = 0;
    play({{0, [&](Modelled& m) {
             m.message();
             took = clock(m);
           }}});
    return took;
  };
  EXPECT_EQ(with_and_without(Mechanism::call_cost, message), Pair(from_ns(30), 0));
}

// Whole barriers ----------------------------------------------------------------------------------

/// A barrier's latency [us], with parameters changed and mechanisms off.
struct Case {
  std::string algorithm;
  Sample changes = {};
  std::string machine = "kunpeng920-2s";
  unsigned ranks = 64;
};
double latency_us(const Case& of, unsigned ranks, std::optional<Mechanism> off = {}) {
  MachineModel machine = load_machine(of.machine);
  for (const auto& [key, value] : of.changes) machine.set(key, value, "assumed: a test");
  if (off) machine.mechanisms = machine.mechanisms.without(*off);
  StackPool pool;
  return latency_us_of(machine, {of.algorithm, ranks, Mapping::core}, {4, 12, 0, 2}, 1, pool);
}

/// What a mechanism is for, and whether the barrier gets slower (+1) or faster (-1) without it; and
/// a barrier in which nothing happens that it is about.
struct Effect {
  Mechanism mechanism;
  Case where;
  int without;
  std::string nowhere = "";  ///< empty: every barrier has it
};
const std::vector<Effect>& effects() {
  static const std::vector<Effect> all = {
      {Mechanism::distance_classes, {"mcs"}, -1},
      {Mechanism::line_order, {"sense-reversing", {}, "epyc-7763-2s"}, -1, "sense-reversing-gr"},
      {Mechanism::read_queues, {"sense-reversing"}, -1},
      {Mechanism::die_agent, {"dissemination"}, -1},
      {Mechanism::die_sharing, {"sense-reversing"}, +1, "sense-reversing-gr"},
      {Mechanism::store_buffer, {"sense-reversing-gr"}, +1},
      {Mechanism::store_overlap, {"sense-reversing-gr"}, +1},
      {Mechanism::poll_overlap, {"sense-reversing-counter"}, +1, "dissemination"},
      {Mechanism::set_conflicts, {"sense-reversing-counter"}, -1, "mcs"},
      {Mechanism::set_fill, {"sense-reversing-counter"}, -1, "mcs"},
      {Mechanism::ll_sc, {"sense-reversing"}, -1, "tournament"},
      {Mechanism::poll_turn, {"tournament"}, -1},
      {Mechanism::call_cost, {"tournament"}, -1},
      {Mechanism::message_slots, {"base-double-ring"}, -1, "dissemination"},
      {Mechanism::line_data, {"mcs", {{"line-data", 100}}}, -1},
      {Mechanism::owner_hold,
       {"sense-reversing", {{"owner-hold", 1}}, "xeon-8375c"},
       -1,
       "sense-reversing-gr"},
      {Mechanism::run_ahead,
       {"combining-tree", {{"run-ahead", 8}, {"poll-turn", 0}}},
       +1,
       "sense-reversing-gr"},
      // Its counter's home is the first rank's: far from all of the other package.
      {Mechanism::home_way,
       {"sense-reversing", {{"home-way", 1}}, "epyc-7763-2s", 128},
       -1,
       "dissemination"},
  };
  return all;
}

TEST(Mechanisms, EachMakesTheDifferenceItIsFor) {
  for (const Effect& effect : effects()) {
    const double with = latency_us(effect.where, effect.where.ranks);
    const double without = latency_us(effect.where, effect.where.ranks, effect.mechanism);
    const std::string_view what = mechanism_name(effect.mechanism);
    if (effect.without > 0) {
      EXPECT_GT(without, 1.01 * with) << what;
    } else {
      EXPECT_LT(without, 0.99 * with) << what;
    }
  }
}

TEST(Mechanisms, EachLeavesAloneWhatItIsNotAbout) {
  for (const Effect& effect : effects()) {
    if (effect.nowhere.empty()) continue;
    Case nowhere = effect.where;
    nowhere.algorithm = effect.nowhere;
    EXPECT_EQ(latency_us(nowhere, nowhere.ranks, effect.mechanism),
              latency_us(nowhere, nowhere.ranks))
        << mechanism_name(effect.mechanism);
  }
}

TEST(Mechanisms, OfCellsAllAreTriedHere) {
  std::vector<Mechanism> tried;
  for (const Effect& effect : effects()) tried.push_back(effect.mechanism);
  for (int m = 0; m < static_cast<int>(Mechanism::data_caches); ++m) {
    EXPECT_EQ(std::count(tried.begin(), tried.end(), static_cast<Mechanism>(m)), 1)
        << mechanism_name(static_cast<Mechanism>(m));
  }
}

/// What 32 flags more, of cores of the other package, cost whoever polls them.
double far_flags_us(const Sample& changes, std::optional<Mechanism> off = {}) {
  const Case flat{"sense-reversing-counter", changes};
  return latency_us(flat, 128, off) - latency_us(flat, 96, off);
}

TEST(Mechanisms, AFullSetFillsAtARateThatDoesNotDependOnDistance) {
  const double fills = far_flags_us({{"latency-MACHINE", 400}}) / far_flags_us({});
  EXPECT_GT(fills, 0.6);
  EXPECT_LT(fills, 1.4);
  const Sample few{{"poll-overlap", 3.5}};
  const Sample far{{"poll-overlap", 3.5}, {"latency-MACHINE", 400}};
  EXPECT_GT(far_flags_us(far, Mechanism::set_fill) / far_flags_us(few, Mechanism::set_fill), 1.4);
}

TEST(Mechanisms, OffIsAParameterThatSaysNothing) {
  const std::vector<std::tuple<Mechanism, std::string, Sample>> same = {
      {Mechanism::distance_classes, "mcs", {{"latency-PACKAGE", 35}, {"latency-MACHINE", 35}}},
      {Mechanism::read_queues, "sense-reversing", {{"read-occupancy", 0}}},
      {Mechanism::die_agent, "dissemination", {{"agent-occupancy", 0}}},
      {Mechanism::store_overlap, "sense-reversing-gr", {{"store-overlap", 1}}},
      {Mechanism::poll_overlap, "sense-reversing-gr", {{"poll-overlap", 1}}},
      {Mechanism::set_conflicts, "sense-reversing-counter", {{"poll-ways", 65536}}},
      {Mechanism::set_fill, "sense-reversing-counter", {{"set-fill", 0}}},
      {Mechanism::poll_turn, "combining-tree", {{"poll-turn", 0}}},
      {Mechanism::call_cost, "base-tree", {{"call", 0}, {"message", 0}}},
  };
  for (const auto& [mechanism, algorithm, nothing] : same) {
    EXPECT_EQ(latency_us({algorithm}, 128, mechanism), latency_us({algorithm, nothing}, 128))
        << mechanism_name(mechanism);
  }
}

}  // namespace
}  // namespace muster::sim
