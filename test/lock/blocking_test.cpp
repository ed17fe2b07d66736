// SPDX-License-Identifier: BSD-3-Clause
// Sections that block, and the server's other locks meanwhile.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "delegation/condition.hpp"
#include "with_server.hpp"

namespace muster::test {
namespace {

using delegation::AnyLock;
using delegation::make_lock;

class Blocking : public WithServer {};

TEST_F(Blocking, ASectionThatBlocksStopsNoOtherLock) {
  std::atomic<bool> go_on{false};
  int ends[2];
  ASSERT_EQ(0, pipe(ends));
  char byte = 'x';
  std::mutex mutex;
  mutex.lock();
  const struct {
    const char* what;
    std::function<void()> blocks;
    std::function<void()> let_go;
  } ways[] = {
      {"sleeps",
       [&] {
         while (!go_on) sleep_ms(1);
       },
       [&] { go_on = true; }},
      {"reads from a pipe", [&] { EXPECT_EQ(1, read(ends[0], &byte, 1)); },
       [&] { EXPECT_EQ(1, write(ends[1], "y", 1)); }},
      {"waits for a mutex", [&] { const std::scoped_lock mine(mutex); }, [&] { mutex.unlock(); }}};
  for (const auto& way : ways) {
    SCOPED_TRACE(way.what);
    const auto slow = make();
    const auto quick = make();
    const std::uint64_t before = station_->counters().by_watchdog;
    std::atomic<bool> inside{false};
    std::atomic<bool> over{false};
    std::thread client([&] {
      execute(*slow, [&] {
        inside = true;
        way.blocks();
        over = true;
      });
    });
    while (!inside) sched_yield();
    std::uint64_t count = 0;
    for (int i = 0; i < 1000; ++i) execute(*quick, [&] { ++count; });
    EXPECT_EQ(1000U, count);
    EXPECT_FALSE(over);
    way.let_go();
    client.join();
    EXPECT_GT(station_->counters().by_watchdog, before);
  }
  EXPECT_EQ('y', byte);
  for (const int end : ends) close(end);
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

TEST_F(Blocking, ALockWhoseSectionsBlockHasTheNextOnesBesideTheOthers) {
  const auto slow = make();
  // A busy machine's watchdog may be late for some.
  bool were_beside = false;
  for (int attempt = 0; attempt < 100 && !were_beside; ++attempt) {
    const delegation::ServerCounters first = station_->counters();
    for (int i = 0; i < 20; ++i) execute(*slow, [] { sleep_ms(12); });
    const delegation::ServerCounters now = station_->counters();
    were_beside = now.by_watchdog - first.by_watchdog <= 6 && now.ahead - first.ahead >= 14;
  }
  EXPECT_TRUE(were_beside) << station_->describe();
  // Until they have not blocked for some time. On a busy machine it may look as if one had.
  std::uint64_t before = 0;
  do {
    before = station_->counters().handovers;
    for (int i = 0; i < 40; ++i) slow->execute(nothing);
  } while (station_->counters().handovers != before);
}

// What is nested in such a section does not make its thread the one at work before it ends.
TEST_F(Blocking, ASectionThatMayBlockStaysBesideTheOthersAfterAWaitInIt) {
  const auto slow = make();
  const auto inner = make();
  const auto quick = make();
  delegation::Condition condition(*inner);
  bool stayed = false;
  // On a busy machine it may look as if a section of the quick lock had blocked.
  for (int turn = 0; turn < 50 && !stayed; ++turn) {
    for (int i = 0; i < 2; ++i) execute(*slow, [] { sleep_ms(12); });
    std::atomic<bool> inside{false};
    std::atomic<bool> go_on{false};
    std::thread client([&] {
      execute(*slow, [&] {
        execute(*inner, [&] { condition.wait(1'000'000); });
        inside = true;
        while (!go_on) sleep_ms(1);
      });
    });
    while (!inside) sched_yield();
    const std::uint64_t seen = station_->counters().by_watchdog;
    for (int i = 0; i < 20; ++i) quick->execute(nothing);
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
      execute(*locks[client], [&] {
        const unsigned before = inside++;
        if (before == 0) first_ms = now_ms();
        if (before == blockers - 1) last_ms = now_ms();
        while (inside < blockers) sleep_ms(1);
      });
    });
    EXPECT_GE(station_->counters().threads, blockers);
    return last_ms - first_ms < 3 * blockers;
  }));
}

/// How often a thread has waited.
std::int64_t waits_of(int thread_id) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread_id) + "/status");
  std::string word;
  while (status >> word && word != "voluntary_ctxt_switches:") continue;
  std::int64_t waits = 0;
  status >> waits;
  return waits;
}

// After a handover it looks each 50 us at first. A server that leaves right then awaits what has
// blocked, however long that takes, while what was posted before may keep another thread at work.
TEST_F(Blocking, WhoTriesALockInASectionNeedsNoSpare) {
  const auto lock = make();
  const auto other = make();
  std::atomic<bool> has_it{false};
  std::atomic<bool> go_on{false};
  std::thread holder([&] {
    EXPECT_TRUE(other->acquire(WaitPolicy::forever));
    has_it = true;
    while (!go_on) sleep_ms(1);
    other->release();
  });
  while (!has_it) sched_yield();
  execute(*lock, [&] {
    for (int tries = 0; tries < 10; ++tries) EXPECT_FALSE(other->acquire(0));
  });
  go_on = true;
  holder.join();
  const delegation::ServerCounters counters = station_->counters();
  EXPECT_EQ(counters.by_watchdog, counters.handovers);
}

TEST(BlockingAtTheEnd, TheWatchdogOfAServerThatLeavesLooksSeldom) {
  std::atomic<bool> may_leave{false};
  std::atomic<int> watchdog{0};
  std::uint64_t handovers = 0;
  const auto station = std::make_shared<delegation::Station>();
  station->employ({}, [&](locks::Steward::Look& look) {
    look.meets = static_cast<std::uint64_t>(look.now_ns) / 1000;
    look.clients = 3;
    look.threads_cpus = 3;
    look.server_cpus = 1;
    const std::uint64_t seen = std::exchange(handovers, station->counters().by_watchdog);
    const bool leaves = may_leave && handovers != seen;
    look.usable_cpus = leaves ? 1 : 8;
    if (leaves) watchdog = gettid();
  });
  std::atomic<bool> inside{false};
  std::atomic<bool> over{false};
  auto sleeps = [&] {
    inside = true;
    while (!over) sleep_ms(1);
  };
  auto computes = [&] {
    may_leave = true;
    while (!over) relax();
  };
  while (!station->has_server()) station->consider();  // who starts one is to be the steward
  const auto slow = make_lock({.kind = "rcl", .station = station});
  const auto busy = make_lock({.kind = "rcl", .station = station});
  std::thread client([&] { slow->execute(section_of(sleeps)); });
  while (!inside) sched_yield();
  busy->post(section_of(computes));
  while (station->has_server()) sched_yield();
  const std::int64_t start_ms = now_ms();
  const std::int64_t waits = waits_of(watchdog);
  sleep_ms(100);
  const std::int64_t looks = waits_of(watchdog) - waits;
  const std::int64_t passed_ms = now_ms() - start_ms;
  over = true;
  client.join();
  EXPECT_GT(waits, 0);
  EXPECT_LE(looks, passed_ms / 4 + 10) << "in " << passed_ms << " ms";
}

}  // namespace
}  // namespace muster::test
