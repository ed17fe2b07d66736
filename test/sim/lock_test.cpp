// SPDX-License-Identifier: BSD-3-Clause
// Locks on the modelled machine: each keeps its promise on random machines, placements are counted
// by hand, and what the model says moves as the machine does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "machine/error.hpp"
#include "sim/lock_placements.hpp"
#include "sim/lock_predict.hpp"
#include "sim/lock_run.hpp"
#include "sim/lock_waits.hpp"

namespace muster::sim {
namespace {

using testing::HasSubstr;

class LockTest : public testing::Test {
 protected:
  LockTest() : oak_(load_machine("oak")), jet_(load_machine("jet")) {
    effort_.warm_up = 500;
    effort_.window = 1500;
  }

  LockOutcome run(const MachineModel& machine, LockQuery query) {
    return predict_locks(machine, CoreTree(*machine.shape), {std::move(query)}, effort_, {})
        .front();
  }
  LockQuery apart(const std::string& lock, Pattern pattern, unsigned threads) {
    LockQuery query{lock, pattern, 500'000'000, 20, apart_placement(oak_tree(), threads)};
    if (!may_have_server(lock)) query.placement.server.reset();
    return query;
  }
  CoreTree oak_tree() const { return CoreTree(*oak_.shape); }

  MachineModel oak_;
  MachineModel jet_;
  LockEffort effort_;
};

// run_lock() throws where a section runs twice, never, or beside another one.
TEST_F(LockTest, EachLockKeepsItsPromiseForEachNumberOfThreads) {
  for (const std::string& lock : modelled_locks()) {
    for (const unsigned threads : {1U, 2U, 5U, 7U}) {
      SCOPED_TRACE(lock + " " + std::to_string(threads));
      const LockOutcome outcome = run(oak_, apart(lock, Pattern::random, threads));
      EXPECT_GT(outcome.throughput_ops_s, 1e5);
      EXPECT_LT(outcome.throughput_ops_s, 1e8);
      EXPECT_GT(outcome.cache_misses_percent, 90);  // 2 GB do not fit
    }
  }
}

// So far apart that they rather meet in long sections than at the lock's words.
TEST_F(LockTest, ReadersAreSideBySideWhereTheLockHasSome) {
  const auto rate = [&](const std::string& lock, double readers) {
    LockQuery query = apart(lock, Pattern::random, 7);
    query.sections = Sections{.held_ns = 5000};
    query.readers = readers;
    return run(oak_, query).throughput_ops_s;
  };
  EXPECT_GT(rate("phase-fair", 0.9), 1.5 * rate("phase-fair", 0));
  EXPECT_GT(rate("phase-fair", 1), 5 * rate("phase-fair", 0));
  for (const char* const lock : {"mcs", "rcl", "cc-synch"}) {
    EXPECT_LT(rate(lock, 1), 1.1 * rate(lock, 0)) << lock;
  }
}

/// Millions of sections a second on a server of 128 cores, sequential access; atomic operations are
/// one request each, as today's compilers make them.
double rate_of(const std::string& lock, unsigned clients, bool spare_core) {
  const MachineModel epyc = load_machine("epyc-7763-2s");
  const CoreTree tree(*epyc.shape);
  LockQuery query{lock, Pattern::sequential, 500'000'000, 20,
                  hierarchical_placement(tree, clients, 64, tree.numa_of(0))};
  if (!spare_core) query.placement.server.reset();
  LockEffort effort;
  effort.warm_up = 200'000;
  effort.window = 10'000;
  return predict_locks(epyc, tree, {query}, effort, {}).front().throughput_ops_s / 1e6;
}

TEST(AutoWithServer, HasOneWhereThatPays) {
  for (const unsigned clients : {16U, 63U}) {
    const double with = rate_of("auto", clients, true);
    EXPECT_GT(with, 0.9 * rate_of("rcl", clients, true)) << clients;
    EXPECT_GT(with, 0.9 * rate_of("auto", clients, false)) << clients;
  }
}

// One of 16 clients is near the data, a spare core beside it; the server starts far from both.
TEST(AutoWithServer, ItMovesNearTheData) {
  const MachineModel power9 = load_machine("power9-2s");
  const CoreTree tree(*power9.shape);
  const auto rate = [&](const std::string& lock, unsigned server) {
    const LockPlacement placement = hierarchical_placement(tree, 16, server, tree.numa_of(0));
    LockEffort effort;
    effort.warm_up = 200'000;  // so that the steward looks each 8 ms or so, as on hardware
    effort.window = 10'000;
    return predict_locks(power9, tree, {{lock, Pattern::random, 500'000'000, 20, placement}},
                         effort, {})
        .front()
        .throughput_ops_s;
  };
  EXPECT_GT(rate("auto", 16), 2 * rate("rcl", 16));
}

// Everybody but a core far from the data is a client. One far away combines first, and would go on.
TEST(AutoWithServer, WhoCombinesFarFromTheDataStandsBack) {
  const MachineModel epyc = load_machine("epyc-7763-2s");
  const CoreTree tree(*epyc.shape);
  const LockQuery query{"auto", Pattern::random, 500'000'000, 20, apart_placement(tree, 127)};
  LockEffort effort;
  effort.warm_up = 200'000;
  effort.window = 20'000;
  const LockOutcome outcome = predict_locks(epyc, tree, {query}, effort, {}).front();
  EXPECT_GT(outcome.throughput_ops_s, 6e6);  // 2.7e6, if it goes on
}

// With LL/SC a client that has the lock's line goes on: who only tries never finds it free.
TEST(AutoWithServer, OneThatFindsTheLockTakenSaysThatItWaits) {
  const MachineModel kunpeng = load_machine("kunpeng920-2s");
  const CoreTree tree(*kunpeng.shape);
  const LockPlacement placement = hierarchical_placement(tree, 2, 2, tree.numa_of(0));
  const LockQuery query{"auto", Pattern::sequential, 500'000'000, 20, placement};
  LockEffort effort;
  effort.warm_up = 200'000;
  effort.window = 500'000;
  const LockOutcome outcome = predict_locks(kunpeng, tree, {query}, effort, {}).front();
  EXPECT_LT(outcome.waits.longest_ns, 1e6);
}

TEST(AutoWithServer, WithoutOneItsHolderGoesOnWithOthersSections) {
  EXPECT_GT(rate_of("auto", 31, false), 0.9 * rate_of("flat-combining", 31, false));
}

// Who executes for others has one section for many of theirs, so that it must not go on for ever.
TEST(AutoWithServer, WhoExecutesForOthersChanges) {
  const MachineModel epyc = load_machine("epyc-7763-2s");
  const CoreTree tree(*epyc.shape);
  const LockQuery query{"auto", Pattern::random, 500'000'000, 20, apart_placement(tree, 2)};
  const LockOutcome outcome = predict_locks(epyc, tree, {query}, {}, {}).front();
  EXPECT_LT(outcome.waits.most_to_fewest, 2);  // 99, if it goes on
}

// What overwrote the model's heap, and what it took for a deadlock.
TEST_F(LockTest, AServerOfManyClientsServesThemAll) {
  const MachineModel kunpeng = load_machine("kunpeng920-2s");
  const CoreTree tree(*kunpeng.shape);
  effort_.window = 20'000;
  effort_.seed = 2;
  LockQuery query{"rcl", Pattern::strided, 500'000'000, 20, apart_placement(tree, 64)};
  EXPECT_GT(run(kunpeng, query).throughput_ops_s, 1e6);
  effort_.seed = 1;
  query.pattern = Pattern::sequential;
  query.placement = hierarchical_placement(tree, 64, 0, tree.numa_of(0));
  EXPECT_GT(run(kunpeng, query).throughput_ops_s, 1e6);
}

TEST_F(LockTest, TheSameRunTwiceIsTheSameToTheBit) {
  for (const char* lock : {"rcl", "cas-spin", "oyama"}) {
    const LockOutcome first = run(oak_, apart(lock, Pattern::random, 4));
    const LockOutcome second = run(oak_, apart(lock, Pattern::random, 4));
    EXPECT_EQ(first.throughput_ops_s, second.throughput_ops_s);
    EXPECT_EQ(first.events, second.events);
    effort_.seed = 2;
    EXPECT_NE(run(oak_, apart(lock, Pattern::random, 4)).events, first.events);
    effort_.seed = 1;
  }
}

// A run of twice the length goes the same way for as long: its first half is the other's whole.
TEST_F(LockTest, WhatDoublingChangesIsWhatALongerRunSays) {
  for (const char* lock : {"rcl", "mcs"}) {
    const LockOutcome shorter = run(oak_, apart(lock, Pattern::random, 3));
    LockEffort longer = effort_;
    longer.window *= 2;
    std::swap(effort_, longer);
    const LockOutcome twice = run(oak_, apart(lock, Pattern::random, 3));
    std::swap(effort_, longer);
    EXPECT_NE(twice.change, 0);
    EXPECT_NEAR(shorter.throughput_ops_s / twice.throughput_ops_s, 1 + twice.change, 1e-9) << lock;
  }
}

TEST_F(LockTest, WhoComesFirstIsServedFirstOrNot) {
  const LockOutcome ticket = run(oak_, apart("ticket", Pattern::random, 7));
  const double round_ns = 7 * 1e9 / ticket.throughput_ops_s;  // each of the seven once
  EXPECT_LT(ticket.waits.most_to_fewest, 1.02);
  EXPECT_NEAR(ticket.waits.longest_ns, round_ns, 0.1 * round_ns);
  EXPECT_NEAR(ticket.waits.p99_ns, round_ns, 0.1 * round_ns);
  EXPECT_NEAR(ticket.waits.mean_ns, round_ns, 0.05 * round_ns);
  EXPECT_LE(ticket.waits.p99_ns, ticket.waits.longest_ns);

  const LockOutcome spin = run(oak_, apart("cas-spin", Pattern::random, 7));
  EXPECT_GT(spin.waits.longest_ns, 10 * ticket.waits.longest_ns);
  EXPECT_GT(spin.waits.most_to_fewest, 10);
  EXPECT_LT(spin.waits.p99_ns, ticket.waits.p99_ns);  // of its few favourites
}

// Little's law: seven threads are each in a call or between two.
TEST_F(LockTest, MeanWaitAndThroughputTellTheSameTime) {
  for (const std::string& lock : modelled_locks()) {
    LockQuery query = apart(lock, Pattern::random, 7);
    query.sections = Sections{.held_ns = 500, .apart_ns = 3000};
    const LockOutcome outcome = run(oak_, query);
    const double between_ns = 3000 + oak_.parameters.lock_call_ns;
    EXPECT_NEAR(outcome.waits.mean_ns + between_ns, 7 * 1e9 / outcome.throughput_ops_s, 400)
        << lock;
  }
}

// What doc/model.md says of `muster sim reproduce`, at the points where twice the length changes
// the most: many threads that share cores, and some that do not.
TEST_F(LockTest, ThePapersWindowIsLongEnough) {
  const CoreTree oak = oak_tree();
  const CoreTree jet(*jet_.shape);
  const LockEffort full;
  EXPECT_EQ(full.window, 100'000U);
  const auto change = [&](const MachineModel& machine, const CoreTree& tree, Pattern pattern,
                          LockPlacement placement) {
    const LockQuery query{"rcl", pattern, 500'000'000, 20, std::move(placement)};
    return 100 * predict_locks(machine, tree, {query}, full, {}).front().change;
  };
  constexpr double bound_percent = 4;
  EXPECT_THAT(
      change(oak_, oak, Pattern::strided, apart_placement(oak, 100)),
      testing::AllOf(testing::Ne(0), testing::Ge(-bound_percent), testing::Le(bound_percent)));
  EXPECT_LE(std::abs(change(oak_, oak, Pattern::strided, apart_placement(oak, 70))), bound_percent);
  EXPECT_LE(std::abs(change(oak_, oak, Pattern::random, apart_placement(oak, 7))), bound_percent);
  EXPECT_LE(std::abs(change(jet_, jet, Pattern::strided, hierarchical_placement(jet, 5, 0, 0))),
            bound_percent);
}

TEST_F(LockTest, AServerNearItsMemoryIsFaster) {
  LockQuery far = apart("rcl", Pattern::random, 3);
  LockQuery near = far;
  near.placement.memory = oak_tree().numa_of(*near.placement.server);
  const LockOutcome slow = run(oak_, far);
  const LockOutcome fast = run(oak_, near);
  EXPECT_GT(fast.throughput_ops_s, 1.05 * slow.throughput_ops_s);
  EXPECT_EQ(slow.far_memory_percent, 100);
  EXPECT_EQ(fast.far_memory_percent, 0);
  // and by the difference between the two memories, for a thread that waits for it each time
  LockQuery alone = apart("rcl", Pattern::random, 1);
  LockQuery alone_near = alone;
  alone_near.placement.memory = near.placement.memory;
  const double period_ns = 1e9 / run(oak_, alone).throughput_ops_s;
  const double near_ns = 1e9 / run(oak_, alone_near).throughput_ops_s;
  EXPECT_NEAR(period_ns - near_ns, 176 - (53 + 31), 5);
}

TEST_F(LockTest, ThreadsThatShareACoreTakeTurns) {
  effort_.slice_ns = 20'000;
  const double alone = run(oak_, apart("rcl", Pattern::random, 7)).throughput_ops_s;
  const double shared = run(oak_, apart("rcl", Pattern::random, 21)).throughput_ops_s;
  EXPECT_GT(shared, 0.7 * alone);
  EXPECT_LT(shared, 1.05 * alone);
  try {
    run(oak_, apart("mcs", Pattern::random, 21));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::invalid);
    EXPECT_THAT(error.what(), HasSubstr("mcs with 21 threads on 7 cores: one that is preempted"));
  }
}

TEST_F(LockTest, PlacementsAreCountedUpToSymmetry) {
  const CoreTree oak = oak_tree();
  // Beside the server 0 to 3 of the threads, the rest in the other package; the array in either.
  const std::size_t oaks[] = {2 * 2, 2 * 3, 2 * 4, 2 * 4, 2 * 3, 2 * 2, 2 * 1};
  for (unsigned threads = 1; threads <= 7; ++threads) {
    const auto all = all_placements(oak, threads);
    EXPECT_EQ(all.size(), oaks[threads - 1]) << threads;
    double sum = 0;
    std::set<std::string> texts;
    for (const WeightedPlacement& each : all) {
      sum += each.weight;
      texts.insert(placement_text(oak, each.placement));
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    EXPECT_EQ(texts.size(), all.size());
  }
  // One thread on Jet: with the server in a cache, beside it in the package, or in the other one.
  EXPECT_EQ(all_placements(CoreTree(*jet_.shape), 1).size(), 3U);
  // Two: (1,1), (1,2), (0,2) of two caches, ...: by hand
  //   mate taken: the other one in the package's other cache, or in the other package: 2
  //   mate free: both in the other cache; one there, one in the other package; both in the other
  //   package, in one cache or in two: 4
  EXPECT_EQ(all_placements(CoreTree(*jet_.shape), 2).size(), 6U);
  // Two of the seven cores left, by lot: 3 in 21 for both in the server's package.
  for (const WeightedPlacement& each : all_placements(oak, 2, 0U, 0U)) {
    if (placement_text(oak, each.placement) == "Sww.m|....") {
      EXPECT_NEAR(each.weight, 3.0 / 21, 1e-9);
    }
  }
  EXPECT_THROW(all_placements(oak, 8), Error);
}

TEST_F(LockTest, PlacementsAreCountedBeforeTheyAreTried) {
  const Topology uneven = Topology::from_synthetic("package:3 numa:2 l3:2 core:2 pu:1");
  for (const CoreTree& tree : {oak_tree(), CoreTree(*jet_.shape), CoreTree(uneven)}) {
    for (const std::optional<unsigned> server : {std::optional<unsigned>(), std::optional(1U)}) {
      const std::vector<double> counts = count_placements(tree, 4, server);
      for (unsigned threads = 0; threads <= 4; ++threads) {
        EXPECT_EQ(counts[threads], all_placements(tree, threads, server).size()) << threads;
      }
    }
  }
  const MachineModel epyc = load_machine("epyc-7763-2s");
  try {
    all_placements(CoreTree(*epyc.shape), 64, 0U, 0U);  // minutes, thread by thread
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::invalid);
    EXPECT_THAT(error.what(), testing::ContainsRegex("ask for [0-9]+ threads at most, or for one"));
  }
}

TEST_F(LockTest, PlacementsAreWhatThePapersSay) {
  const CoreTree tree = oak_tree();
  EXPECT_EQ(placement_text(tree, apart_placement(tree, 3)), "www.m|S...");
  EXPECT_EQ(placement_text(tree, apart_placement(tree, 7)), "wwwwm|Swww");
  EXPECT_EQ(placement_text(tree, apart_placement(tree, 8)), "2wwwm|Swww");
  EXPECT_EQ(placement_text(tree, hierarchical_placement(tree, 2, 0, 1)), "Sww.|....m");
  EXPECT_EQ(placement_text(tree, hierarchical_placement(tree, 4, 5, 1)), "w...|wSwwm");
  const CoreTree jet(*jet_.shape);
  EXPECT_EQ(placement_text(jet, hierarchical_placement(jet, 2, 0, 0)), "Sw w.|.. ..");
  EXPECT_EQ(placement_text(jet, apart_placement(jet, 2)), "ww ..|S. ..");
}

TEST_F(LockTest, SeveralMachinesAreAskedAtOnceAndProgressIsOfAll) {
  const CoreTree oak = oak_tree();
  const CoreTree jet(*jet_.shape);
  const LockQuery query = apart("rcl", Pattern::random, 2);
  std::size_t calls = 0;
  const auto outcomes = predict_locks({{oak_, oak, {query, query}}, {jet_, jet, {query}}}, effort_,
                                      [&](std::size_t done, std::size_t of) {
                                        EXPECT_EQ(done, ++calls);
                                        EXPECT_EQ(of, 2U);  // the same question runs once
                                        return true;
                                      });
  EXPECT_EQ(calls, 2U);
  ASSERT_EQ(outcomes.size(), 2U);
  ASSERT_EQ(outcomes[0].size(), 2U);
  EXPECT_EQ(outcomes[0][1].throughput_ops_s, run(oak_, query).throughput_ops_s);
  ASSERT_EQ(outcomes[1].size(), 1U);
  EXPECT_EQ(outcomes[1][0].throughput_ops_s, run(jet_, query).throughput_ops_s);
}

TEST_F(LockTest, MemoryGoesWhereThePlacerSays) {
  const CoreTree tree = oak_tree();
  const LockPlacement apart = apart_placement(tree, 2);
  const unsigned far = tree.numa_of(*apart.server);
  ASSERT_NE(apart.memory, far);
  for (const LockPlacement& moved :
       {with_bound_memory(tree, apart), with_aware_memory(tree, apart)}) {
    EXPECT_EQ(moved.memory, far);
    EXPECT_EQ(moved.server, apart.server);
    EXPECT_EQ(moved.threads, apart.threads);
  }
  // Alone, RCLLockInitNUMA takes the first core, where a thread was.
  const LockPlacement chosen = with_chosen_server(tree, apart);
  EXPECT_EQ(chosen.server, 0U);
  EXPECT_EQ(chosen.memory, tree.numa_of(0));
  EXPECT_EQ(chosen.threads, (std::vector<unsigned>{*apart.server, apart.threads[1]}));
}

TEST_F(LockTest, OneCoreIsAMistake) {
  try {
    apart_placement(CoreTree(Topology::from_synthetic("core:1 pu:1")), 1);
    ADD_FAILURE() << "it has a server and a thread";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::invalid);
  }
}

TEST_F(LockTest, AFilePlaces) {
  const CoreTree tree = oak_tree();
  const std::string text = "# mine\nserver 4\nallocator 0\nthreads 1,5\n";
  EXPECT_EQ(placement_text(tree, parse_placement(text, "f", tree, 3)), ".2..m|Sw..");
  const auto error = [&](const std::string& wrong) {
    try {
      parse_placement(wrong, "f", tree, 1);
    } catch (const Error& caught) {
      EXPECT_EQ(caught.code(), Status::invalid);
      return std::string(caught.what());
    }
    return std::string();
  };
  EXPECT_THAT(error("server 8\n"), HasSubstr("f:1: \"8\" is no core"));
  EXPECT_THAT(error("server 1\nclient 2\n"), HasSubstr("f:2: \"client\" is none of"));
  EXPECT_THAT(error("server\n"), HasSubstr("f:1: a line is"));
  EXPECT_THAT(error("server 1\n"), HasSubstr("has to say"));
  for (const char* key : {"server", "allocator", "threads"}) {
    const std::string line = std::string(key) + " 1\n";
    EXPECT_THAT(error(line + "# again\n" + line), HasSubstr("f:3: a second line with"));
  }
}

TEST_F(LockTest, AServerHasACoreOfItsOwn) {
  LockQuery query = apart("rcl", Pattern::random, 2);
  query.placement.threads[0] = *query.placement.server;
  EXPECT_THROW(run(oak_, query), Error);
  query = apart("rcl", Pattern::random, 2);
  query.placement.server.reset();
  EXPECT_THROW(run(oak_, query), Error);
}

TEST(LockNames, ThoseThatAreModelledAreNamed) {
  const auto said = [](const char* name) -> std::string {
    try {
      wants_server(name);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Status::unknown_name);
      return error.what();
    }
    return "";
  };
  for (const char* name : {"no-such-lock", "mutex-none", "pthread-mutex"}) {
    for (const std::string& known : modelled_locks()) {
      EXPECT_THAT(said(name), testing::ContainsRegex("[:,] " + known + "(,|$)")) << name;
    }
  }
  EXPECT_THAT(said("mutex-none"), HasSubstr("no lock \"mutex-none\" in the model"));
  EXPECT_THAT(said("pthread-mutex"), HasSubstr("has pthread-mutex as mutex-pthread"));
}

// A lock that goes to the first of three, then to the second, the first, the second...; the third
// gets it before the window and once within. A section takes 100 ns, and who is done calls at once.
TEST(LockWaits, OfAnUnfairLock) {
  LockWaitsRecorder recorder(3);
  for (const unsigned client : {0U, 1U, 2U}) recorder.call(client, 0);
  Time now = 0;
  const auto section = [&](unsigned client) {
    recorder.done(client, now += from_ns(100));
    recorder.call(client, now);
  };
  for (const unsigned client : {2U, 0U, 1U}) section(client);  // warms up
  recorder.open();
  for (int n = 0; n < 300; ++n) section(n % 2);
  section(2);  // has waited for 303 sections
  for (int n = 0; n < 99; ++n) section(n % 2);
  recorder.close(now);
  section(2);  // after the window: does not count
  const LockWaits waits = recorder.result();
  EXPECT_EQ(waits.most_to_fewest, 200);
  EXPECT_EQ(waits.longest_ns, 30'300);
  EXPECT_LE(waits.p99_ns, 200);  // 396 waits of 403
  EXPECT_GE(waits.p99_ns, 198);
  // All of them but the 99 sections that the third one waits for again, and the call in progress.
  EXPECT_NEAR(waits.mean_ns, (397 * 200 + 2 * 300 + 30'300 + 9'900 + 100) / 403.0, 2);
}

TEST(LockWaits, WhoStarvesThroughoutTheWindowIsSeen) {
  LockWaitsRecorder recorder(3);
  recorder.call(0, from_ns(50));
  recorder.call(1, from_ns(100));
  recorder.open();
  for (Time now = from_ns(200); now <= from_ns(2000); now += from_ns(100)) {
    recorder.done(1, now);
    recorder.call(1, now + from_ns(60));
  }
  recorder.call(2, from_ns(2001));  // its core is ahead of the others': it does not wait yet
  recorder.close(from_ns(2000));
  const LockWaits waits = recorder.result();
  EXPECT_EQ(waits.longest_ns, 1950);
  EXPECT_TRUE(std::isinf(waits.most_to_fewest));
  EXPECT_EQ(waits.mean_ns, (100 + 18 * 40 + 1950) / 20.0);
}

}  // namespace
}  // namespace muster::sim
