// SPDX-License-Identifier: BSD-3-Clause
// Servers, threads and clusters on the tree that MUSTER_TOPOLOGY imposes, 2 packages x 2 NUMA nodes
// x 32 cores: all is decided as if they sat there, and nothing is bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "delegation/cpus.hpp"
#include "delegation/places.hpp"
#include "delegation/station.hpp"
#include "trial.hpp"
#include "with_server.hpp"

namespace muster::test {
namespace {

using delegation::make_lock;
using delegation::Places;
using delegation::Station;
using testing::HasSubstr;

class Imposed : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(std::getenv("MUSTER_TOPOLOGY"), nullptr) << "ctest sets it";
    ASSERT_EQ(128U, Places::instance().tree().cores());
  }
};

TEST_F(Imposed, ServersArePackedOrSpread) {
  Station packed[2];
  Station spread;
  for (Station& station : packed) station.start({});
  spread.start({.policy = ServerPolicy::spread});
  EXPECT_EQ(0U, packed[0].core());
  EXPECT_EQ(1U, packed[1].core());
  EXPECT_EQ(32U, spread.core());
  EXPECT_THAT(spread.describe(), HasSubstr("not bound, counted on core 32 of"));
  EXPECT_THAT(spread.describe(), HasSubstr("NUMA node 1;"));
  spread.place({});
  EXPECT_EQ(2U, spread.core());
}

// The process's CPUs are what they are: a server bound to one counts where the tree has it.
TEST_F(Imposed, ServersAreBoundWhereTheyAreTold) {
  const unsigned cpu = allowed_cpus().back();
  Station station;
  station.start({.cpus = {cpu}});
  EXPECT_EQ(cpu, station.core());
  EXPECT_THAT(station.describe(), HasSubstr("on CPU " + std::to_string(cpu)));
}

TEST_F(Imposed, AServerOfItsOwnAccordAvoidsItsClientsCores) {
  const unsigned cpu = allowed_cpus().front();
  ASSERT_LT(cpu, 127U);
  Places& places = Places::instance();
  std::vector<Places::Server> before;
  for (unsigned core = 0; core < cpu; ++core)
    before.push_back(places.add_server(ServerPolicy::pack, {core}));
  const auto core_beside = [&](const std::vector<int>& clients) {
    const auto server = places.add_spare_server(clients);
    if (server) places.remove_server(*server);
    return server ? server->core : std::nullopt;
  };
  EXPECT_EQ(cpu, core_beside({}));
  std::thread([&] {
    ASSERT_EQ(0, delegation::bind_thread(pthread_self(), {cpu}));
    EXPECT_EQ(cpu + 1, core_beside({gettid()}));
  }).join();
  for (const Places::Server& server : before) places.remove_server(server);
}

TEST_F(Imposed, AServerOfItsOwnAccordStartsNearAClient) {
  Places& places = Places::instance();
  const auto first = places.add_spare_server({});
  const auto near = places.add_spare_server({}, 40);
  ASSERT_TRUE(first && near);
  EXPECT_EQ(0U, first->core);
  EXPECT_EQ(32U, near->core);
  EXPECT_TRUE(places.is_near(near->core, 63));
  EXPECT_FALSE(places.is_near(first->core, 63));
  // As clients see it who may have to stand back, here one on core 40.
  delegation::Port::Domain domain{};
  EXPECT_TRUE(delegation::Port(domain, 40).is_near(63));
  EXPECT_FALSE(delegation::Port(domain, 40).is_near(5));
  EXPECT_FALSE(delegation::Port(domain, 40).is_near(64));
  std::vector<Places::Server> others;
  for (unsigned core = 33; core < 64; ++core)
    others.push_back(places.add_server(ServerPolicy::pack, {core}));
  EXPECT_FALSE(places.add_spare_server({}, 40)) << "none is free there";
  for (const Places::Server& server : others) places.remove_server(server);
  places.remove_server(*near);
  places.remove_server(*first);
}

// With clients that are imposed: their sections are fastest with a server on the third NUMA node.
TEST_F(Imposed, AServerOfItsOwnAccordFindsTheNumaNodeWhereItIsFastest) {
  const HangGuard guard(120);
  Station station;
  std::uint64_t sections = 0;
  std::int64_t last_ns = now_ns();
  station.employ({}, [&](locks::Steward::Look& look) {
    const auto passed_us =
        static_cast<std::uint64_t>(look.now_ns - std::exchange(last_ns, look.now_ns)) / 1000;
    sections += passed_us * (look.server && *look.server / 32 == 2 ? 3 : 1);
    look.sections = look.meets = sections;
    look.clients = 3;
    look.usable_cpus = 8;
    look.threads_cpus = 3;
    look.server_cpus = 1;
  });
  std::vector<unsigned> seen;
  while (!HasFailure() && (seen.size() < 5 || station.core() != seen.back())) {
    station.consider();
    if (const auto core = station.core(); core && (seen.empty() || *core != seen.back())) {
      seen.push_back(*core);
    }
    sleep_ms(1);
  }
  EXPECT_THAT(seen, testing::ElementsAre(0, 32, 64, 96, 64)) << station.reason();
  for (const std::int64_t end_ms = now_ms() + 300; now_ms() < end_ms; sleep_ms(1)) {
    station.consider();
    EXPECT_EQ(64U, station.core()) << station.reason();
  }
}

TEST_F(Imposed, ThreadsGoWhereTheRuleSays) {
  Station servers[2];
  for (Station& server : servers) server.start({.policy = ServerPolicy::spread});
  Occupancy now(128);
  now.servers[0] = now.servers[32] = 1;
  const CoreTree& tree = Places::instance().tree();
  for (unsigned thread = 0; thread < 200; ++thread) {
    const unsigned near = thread % 3 == 0 ? 0 : 32;
    const unsigned expected = choose_thread_core(tree, now, near).value();
    unsigned core = 0;
    std::thread placed([&] { core = Places::instance().place_thread(near); });
    placed.join();
    ASSERT_EQ(expected, core) << "what a thread had is free again";
  }
  // Those that stay are counted.
  run_threads(1, [&](unsigned) {
    for (int turn = 0; turn < 2; ++turn) {
      EXPECT_EQ(choose_thread_core(tree, now, 0).value(), Places::instance().place_thread(0));
      ++now.threads[1];
      std::thread([&] {
        EXPECT_EQ(choose_thread_core(tree, now, 0).value(), Places::instance().place_thread(0));
      }).join();
      --now.threads[1];
      if (turn == 0) Places::unplace_thread();
    }
  });
}

/// Places its thread when that ends.
struct PlacedLate {
  bool is_wanted = false;
  ~PlacedLate() {
    if (is_wanted) Places::instance().place_thread(std::nullopt);
  }
};
thread_local PlacedLate placed_late;

TEST_F(Imposed, APlaceThatAThreadsDestructorTakesIsFreeAgain) {
  Station station;
  station.start({});
  for (int threads = 0; threads < 3; ++threads) {
    std::thread([] {
      placed_late.is_wanted = true;
      EXPECT_EQ(1U, Places::instance().place_thread(std::nullopt));
    }).join();
  }
}

TEST_F(Imposed, HSynchHasAClusterForEachNumaNode) {
  Station servers[4];
  for (Station& server : servers) server.start({.policy = ServerPolicy::spread});
  const auto lock = make_lock({.kind = "h-synch", .station = nullptr});
  constexpr unsigned clients = 8;
  std::atomic<unsigned> placed{0};
  const auto execute = [&](delegation::Section section) {
    const auto& numbered = *static_cast<Numbered*>(section.argument);
    const bool first = numbered.number == 1;
    if (first) {
      Places::instance().place_thread(servers[numbered.client % 4].core());
      const Places& places = Places::instance();
      EXPECT_EQ(numbered.client % 4, places.tree().numa_of(places.core_of_this_thread(0)));
    }
    lock->execute(section);
    if (!first) return;
    ++placed;
    while (placed < clients) sched_yield();  // no thread gets the seat of one that has ended
  };
  EXPECT_EQ("", run_lock_trial(execute,
                               {.seed = case_seed(), .clients = clients, .sections = rounds(500)}));
}

}  // namespace
}  // namespace muster::test
