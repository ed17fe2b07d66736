// SPDX-License-Identifier: BSD-3-Clause
// Sections that block, and the server's other locks meanwhile.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "delegation/condition.hpp"
#include "delegation/station.hpp"
#include "trial.hpp"
#include "with_server.hpp"

namespace muster::test {
namespace {

using delegation::AnyLock;
using delegation::Station;

class Blocking : public WithServer {};

TEST_F(Blocking, ASectionThatBlocksStopsNoOtherLock) {
  const auto slow = make();
  const auto quick = make();
  BlockedSection blocked(*slow);
  std::uint64_t count = 0;
  auto increment = [&] { ++count; };
  for (int i = 0; i < 1000; ++i) quick->execute(section_of(increment));
  EXPECT_EQ(1000U, count);
  blocked.end();
  EXPECT_GE(station_->counters().by_watchdog, 1U);
}

// Posted, so that the server executes them and not their clients.
TEST_F(Blocking, ASectionOfAnAutoLockThatBlocksStopsNoOtherLock) {
  std::atomic<bool> inside{false};
  std::atomic<bool> go_on{false};
  auto blocks = [&] {
    inside = true;
    while (!go_on) sleep_ms(1);
  };
  const auto slow = make("auto");  // whose end awaits its section
  std::thread client([&] { slow->post(section_of(blocks)); });
  while (!inside) sched_yield();
  for (const char* const kind : {"auto", "rcl"}) {
    const auto quick = make(kind);
    const std::uint64_t before = station_->counters().executed;
    std::atomic<unsigned> count{0};
    auto increment = [&] { ++count; };
    for (int i = 0; i < 1000; ++i) quick->post(section_of(increment));
    while (count < 1000) sched_yield();
    while (station_->counters().executed < before + 1000) sched_yield();  // by whom they were
  }
  go_on = true;
  client.join();
}

/// `block` is a section that waits for `let_go`.
template <class Block, class LetGo>
void others_go_on_while(const Station& station, AnyLock& slow, AnyLock& quick, const Block& block,
                        const LetGo& let_go) {
  const std::uint64_t before = station.counters().by_watchdog;
  std::atomic<bool> inside{false};
  auto blocks = [&] {
    inside = true;
    block();
  };
  std::thread client([&] { slow.execute(section_of(blocks)); });
  while (!inside) sched_yield();
  std::uint64_t count = 0;
  auto increment = [&] { ++count; };
  for (int i = 0; i < 1000; ++i) quick.execute(section_of(increment));
  EXPECT_EQ(1000U, count);
  let_go();
  client.join();
  EXPECT_GT(station.counters().by_watchdog, before);
}

TEST_F(Blocking, ASectionThatReadsFromAPipeStopsNoOtherLock) {
  int ends[2];
  ASSERT_EQ(0, pipe(ends));
  char sent = 'x';
  char received = 0;
  const auto reads = [&] { EXPECT_EQ(1, read(ends[0], &received, 1)); };
  const auto writes = [&] { EXPECT_EQ(1, write(ends[1], &sent, 1)); };
  others_go_on_while(*station_, *make(), *make(), reads, writes);
  EXPECT_EQ(sent, received);
  for (const int end : ends) close(end);
}

TEST_F(Blocking, ASectionThatWaitsForAMutexStopsNoOtherLock) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  bool had_it = false;
  const auto locks = [&] {
    EXPECT_EQ(0, pthread_mutex_lock(&mutex));
    had_it = true;
    pthread_mutex_unlock(&mutex);
  };
  const auto unlocks = [&] {
    EXPECT_FALSE(had_it);
    pthread_mutex_unlock(&mutex);
  };
  pthread_mutex_lock(&mutex);
  others_go_on_while(*station_, *make(), *make(), locks, unlocks);
  EXPECT_TRUE(had_it);
  pthread_mutex_destroy(&mutex);
}

TEST_F(Blocking, ManySectionsBlockAtOnce) {
  constexpr unsigned blockers = 6;
  std::vector<std::unique_ptr<AnyLock>> locks;
  for (unsigned i = 0; i < blockers; ++i) locks.push_back(make());
  std::atomic<unsigned> inside{0};
  run_threads(blockers, [&](unsigned client) {
    auto section = [&] {
      ++inside;
      while (inside < blockers) sleep_ms(1);  // all are inside at the same time
    };
    locks[client]->execute(section_of(section));
  });
  EXPECT_EQ(blockers, inside);
  EXPECT_GE(station_->counters().threads, blockers);
}

TEST_F(Blocking, ALockWhoseSectionsBlockHasTheNextOnesBesideTheOthers) {
  const auto slow = make();
  auto blocks = [] { sleep_ms(12); };
  auto nothing = [] {};
  // A busy machine's watchdog may be late for some.
  bool were_beside = false;
  for (int attempt = 0; attempt < 100 && !were_beside; ++attempt) {
    const delegation::ServerCounters first = station_->counters();
    for (int i = 0; i < 20; ++i) slow->execute(section_of(blocks));
    const delegation::ServerCounters now = station_->counters();
    were_beside = now.by_watchdog - first.by_watchdog <= 6 && now.ahead - first.ahead >= 14;
  }
  EXPECT_TRUE(were_beside) << station_->describe();
  // Until they have not blocked for some time. On a busy machine it may look as if one had.
  std::uint64_t before = 0;
  do {
    before = station_->counters().handovers;
    for (int i = 0; i < 40; ++i) slow->execute(section_of(nothing));
  } while (station_->counters().handovers != before);
}

// What is nested in such a section does not make its thread the one at work before it ends.
TEST_F(Blocking, ASectionThatMayBlockStaysBesideTheOthersAfterAWaitInIt) {
  const auto slow = make();
  const auto inner = make();
  const auto quick = make();
  delegation::Condition condition(*inner);
  auto blocks = [] { sleep_ms(12); };
  auto nothing = [] {};
  bool stayed = false;
  // On a busy machine it may look as if a section of the quick lock had blocked.
  for (int turn = 0; turn < 50 && !stayed; ++turn) {
    for (int i = 0; i < 2; ++i) slow->execute(section_of(blocks));
    std::atomic<bool> inside{false};
    std::atomic<bool> go_on{false};
    auto waits = [&] { condition.wait(1'000'000); };
    auto around = [&] {
      inner->execute(section_of(waits));
      inside = true;
      while (!go_on) sleep_ms(1);
    };
    std::thread client([&] { slow->execute(section_of(around)); });
    while (!inside) sched_yield();
    const std::uint64_t seen = station_->counters().by_watchdog;
    for (int i = 0; i < 20; ++i) quick->execute(section_of(nothing));
    stayed = station_->counters().by_watchdog == seen;
    go_on = true;
    client.join();
  }
  EXPECT_TRUE(stayed) << station_->describe();
}

// Each takes over from the one before, and is blocked as soon.
TEST_F(Blocking, ManySectionsBlockOneAfterTheOtherForTheFirstTime) {
  constexpr unsigned blockers = 12;
  // A period of the watchdog for each is what it must not take.
  EXPECT_TRUE(in_a_quiet_moment([&] {
    std::vector<std::unique_ptr<AnyLock>> locks;
    for (unsigned i = 0; i < blockers; ++i) locks.push_back(make());
    std::atomic<unsigned> inside{0};
    std::atomic<std::int64_t> first_ms{0};
    std::atomic<std::int64_t> last_ms{0};
    run_threads(blockers, [&](unsigned client) {
      auto section = [&] {
        const unsigned before = inside++;
        if (before == 0) first_ms = now_ms();
        if (before == blockers - 1) last_ms = now_ms();
        while (inside < blockers) sleep_ms(1);
      };
      locks[client]->execute(section_of(section));
    });
    return last_ms - first_ms < 3 * blockers;
  }));
}

}  // namespace
}  // namespace muster::test
