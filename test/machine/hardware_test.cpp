// SPDX-License-Identifier: BSD-3-Clause
// The hardware machine's waits: they spin, yield and sleep as told, wake at once, and give up when
// they have to.
#include "machine/hardware.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "harness.hpp"

namespace muster::test {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t far_away_ns = 60'000 * ms;

struct World {
  Hardware::Domain domain{};
  std::array<Hardware::Cell, 8> cells{};
};

/// Two ports on one world: one waits, the other stores.
class Waits : public testing::TestWithParam<const char*> {
 protected:
  Hardware port(unsigned rank) { return {world->domain, rank, policy, false}; }

  HangGuard guard{60};
  Shared<World> world;
  WaitPolicy policy = WaitPolicy::by_name(GetParam(), 1, 1);
};

TEST_P(Waits, EndWithTheStore) {
  for (unsigned round = 0; round < rounds(200); ++round) {
    Hardware waiter = port(0);
    Hardware storer = port(1);
    waiter.set_deadline(now_ns() + far_away_ns);
    Random random(case_seed() + round);
    Hardware::Cell& cell = world->cells[0];
    cell.value = 0;
    Hardware::Plain<Word> data{};
    std::thread other([&] {
      usleep(random.below(300));
      storer.write(data, Word{7});
      switch (round % 4) {
        case 0:
          storer.store(cell, 3, release);
          break;
        case 1:
          storer.fetch_add(cell, 3, acq_rel);
          break;
        case 2:
          storer.exchange(cell, 3, acq_rel);
          break;
        default: {
          Word expected = 0;
          EXPECT_TRUE(storer.compare_exchange(cell, expected, 3, acq_rel));
        }
      }
    });
    EXPECT_TRUE(waiter.await(cell, equals(3), acquire));
    EXPECT_EQ(waiter.read(data), 7U);
    other.join();
  }
  EXPECT_EQ(world->domain.announcements.sleepers.load() & sleepers_counted, 0U);
  EXPECT_EQ(world->cells[0].sleepers.load(), 0U);
}

TEST_P(Waits, ForASetEndWhenAllAreReady) {
  for (unsigned round = 0; round < rounds(100); ++round) {
    Random random(case_seed() + round);
    Hardware waiter = port(0);
    waiter.set_deadline(now_ns() + far_away_ns);
    std::vector<Hardware::Cell*> set;
    for (Hardware::Cell& cell : world->cells) {
      cell.value = 0xfffffff0;
      set.push_back(&cell);
    }
    std::array<Hardware::Plain<Word>, 8> data{};
    const std::vector<unsigned> order = shuffled(8, random);
    std::thread other([&] {
      Hardware storer = port(1);
      for (const unsigned i : order) {
        if (random.one_in(3)) usleep(random.below(200));
        storer.write(data[i], Word{i + 1});
        storer.store(world->cells[i], i, release);  // past the wrap
      }
    });
    EXPECT_TRUE(waiter.await_all(set, at_least(0), acquire));
    for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(waiter.read(data[i]), i + 1);
    other.join();
  }
  EXPECT_EQ(world->domain.announcements.sleepers.load() & sleepers_counted, 0U);
}

TEST_P(Waits, ForWhicheverReturnTheReadyOne) {
  Random random(case_seed());
  std::vector<Hardware::Cell*> set;
  for (Hardware::Cell& cell : world->cells) set.push_back(&cell);
  Shared<std::atomic<unsigned>> served;
  const unsigned requests = rounds(400);
  std::thread other([&] {
    Hardware storer = port(1);
    for (unsigned request = 0; request < requests; ++request) {
      if (random.one_in(8)) usleep(random.below(300));
      const unsigned i = random.below(8);
      storer.store(world->cells[i], request + 1, release);
      while (served->load(std::memory_order_acquire) != request + 1) std::this_thread::yield();
    }
  });
  Hardware server = port(0);
  server.set_deadline(now_ns() + far_away_ns);
  struct NonZero {
    bool operator()(Word seen) const noexcept { return seen != 0; }
  };
  std::size_t from = 0;
  for (unsigned request = 0; request < requests; ++request) {
    const std::size_t i = server.await_any(set, NonZero{}, acquire, from);
    if (i == no_cell) {
      ADD_FAILURE() << "gave up\nreplay: " << replay_command();
      break;
    }
    EXPECT_EQ(set[i]->value.load(), request + 1);
    server.store(*set[i], 0, relaxed);
    from = (i + 1) % set.size();
    served->store(request + 1, std::memory_order_release);
  }
  other.join();
  EXPECT_EQ(world->domain.announcements.any_sleepers.load(), 0U);
}

TEST_P(Waits, GiveUpAtTheDeadlineAndBreakTheDomain) {
  Hardware waiter = port(3);
  const std::int64_t start = now_ns();
  waiter.set_deadline(start + 30 * ms);
  EXPECT_FALSE(waiter.await(world->cells[0], equals(1), acquire));
  EXPECT_GE(now_ns() - start, 30 * ms);
  EXPECT_EQ(waiter.breakage().cause, Status::timeout);
  EXPECT_EQ(waiter.breakage().rank, 3U);
}

TEST_P(Waits, GiveUpWhenAnotherBreaksTheDomain) {
  for (unsigned kind = 0; kind < 3; ++kind) {
    world->domain.broken = 0;
    Hardware waiter = port(0);
    waiter.set_deadline(now_ns() + far_away_ns);
    std::thread other([&] {
      usleep(5'000);
      Hardware breaker = port(1);
      breaker.break_domain({Status::peer, 9});
      breaker.break_domain({Status::timeout, 2});  // too late: the first cause stays
    });
    const std::vector<Hardware::Cell*> set = {&world->cells[0], &world->cells[1]};
    switch (kind) {
      case 0:
        EXPECT_FALSE(waiter.await(world->cells[0], equals(1), acquire));
        break;
      case 1:
        EXPECT_FALSE(waiter.await_all(set, equals(1), acquire));
        break;
      default:
        EXPECT_EQ(waiter.await_any(set, equals(1), acquire), no_cell);
    }
    other.join();
    EXPECT_EQ(waiter.breakage().cause, Status::peer);
    EXPECT_EQ(waiter.breakage().rank, 9U);
  }
}

TEST_P(Waits, EndEvenInABrokenDomainIfWhatTheyWaitForIsThere) {
  world->domain.broken = Breakage{Status::broken, 1}.encode();
  world->cells[0].value = 5;
  EXPECT_TRUE(port(0).await(world->cells[0], equals(5), acquire));
}

// The hook ends the wait itself, after so long that whoever may sleep does.
TEST_P(Waits, CallTheProgressHookAllTheWhile) {
  Hardware waiter = port(0);
  struct Work {
    Hardware::Cell* cell;
    std::int64_t end_ns;
  } work{&world->cells[0], now_ns() + 50 * ms};
  Hooks hooks;
  hooks.progress = [](void* context) {
    const Work& its = *static_cast<Work*>(context);
    if (now_ns() >= its.end_ns) its.cell->value = 1;
    return false;
  };
  hooks.context = &work;
  waiter.set_hooks(hooks);
  waiter.set_deadline(now_ns() + far_away_ns);
  EXPECT_TRUE(waiter.await(world->cells[0], equals(1), acquire));
}

// The hook ends the wait itself.
TEST_P(Waits, DoNotSleepWhileThereIsMoreToDo) {
  Hardware waiter = port(0);
  struct Work {
    Hardware::Cell* cell;
    unsigned left = 500;
  } work{&world->cells[0]};
  Hooks hooks;
  hooks.progress = [](void* context) {
    Work& its = *static_cast<Work*>(context);
    if (--its.left == 0) its.cell->value = 1;
    return its.left > 0;
  };
  hooks.context = &work;
  waiter.set_hooks(hooks);
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_THREAD, &before);
  EXPECT_TRUE(waiter.await(world->cells[0], equals(1), acquire));
  getrusage(RUSAGE_THREAD, &after);
  EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 100);
}

TEST_P(Waits, EndWhenInspectionSaysSo) {
  Hardware waiter = port(0);
  Hooks hooks;
  hooks.inspect = [](void*, std::int64_t began_ns, std::int64_t now) {
    return now - began_ns > 10 * ms ? Breakage{Status::peer, 5}.encode() : Word{0};
  };
  waiter.set_hooks(hooks);
  waiter.set_deadline(now_ns() + far_away_ns);
  EXPECT_FALSE(waiter.await(world->cells[0], equals(1), acquire));
  EXPECT_EQ(waiter.breakage().cause, Status::peer);
  EXPECT_EQ(waiter.breakage().rank, 5U);
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, Waits,
                         testing::Values("auto", "spin", "yield", "sleep", "spin-yield",
                                         "spin-yield-sleep", "yield-sleep"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// What a wait costs when the store comes `late_ns` after it began.
struct Lateness {
  std::int64_t cpu_ns = 0;      // of the waiter, all rounds
  std::int64_t wall_ns = 0;     // of the waits
  std::int64_t wake_up_ns = 0;  // median, from the store to the end of the wait
};

enum class Kind : std::uint8_t { one, all, any };

Lateness measure(const WaitPolicy& policy, Kind kind, std::int64_t late_ns) {
  constexpr unsigned times = 9;
  Shared<World> world;
  std::vector<Hardware::Cell*> set = {&world->cells[0], &world->cells[1], &world->cells[2]};
  Lateness result;
  std::vector<std::int64_t> wake_ups;
  Hardware waiter(world->domain, 0, policy, false);
  waiter.set_deadline(now_ns() + far_away_ns);
  for (unsigned round = 1; round <= times; ++round) {
    std::atomic<std::int64_t> stored_at{0};
    std::atomic<bool> go{false};
    std::thread other([&] {
      Hardware storer(world->domain, 1, policy, false);
      while (!go.load()) std::this_thread::yield();
      usleep(static_cast<useconds_t>(late_ns / 1000));
      stored_at = now_ns();
      if (kind == Kind::all) {
        for (Hardware::Cell* cell : set) storer.store(*cell, round, release);
      } else {
        storer.store(*set[round % set.size()], round, release);
      }
    });
    const std::int64_t start = now_ns();
    const std::int64_t cpu = thread_cpu_ns();
    go = true;
    switch (kind) {
      case Kind::one:
        EXPECT_TRUE(waiter.await(*set[round % set.size()], equals(round), acquire));
        break;
      case Kind::all:
        EXPECT_TRUE(waiter.await_all(set, equals(round), acquire));
        break;
      case Kind::any:
        EXPECT_EQ(waiter.await_any(set, equals(round), acquire), round % set.size());
    }
    const std::int64_t end = now_ns();
    result.cpu_ns += thread_cpu_ns() - cpu;
    result.wall_ns += end - start;
    other.join();
    wake_ups.push_back(end - stored_at);
  }
  std::sort(wake_ups.begin(), wake_ups.end());
  result.wake_up_ns = wake_ups[times / 2];
  return result;
}

class Sleep : public testing::TestWithParam<std::tuple<const char*, Kind>> {};

TEST_P(Sleep, IsSleepWhenTheStoreIsMillisecondsLateAndEndsAtOnce) {
  const HangGuard guard(60);
  const Kind kind = std::get<1>(GetParam());
  const WaitPolicy policy = WaitPolicy::by_name(std::get<0>(GetParam()), 1, 1);
  // Without a wake-up it would sleep on to the end of its time slice, 15 ms later or more.
  std::string result;
  EXPECT_TRUE(in_a_quiet_moment([&] {
    const Lateness lateness = measure(policy, kind, 25 * ms);
    result.clear();
    if (lateness.cpu_ns > lateness.wall_ns / 4) result += "it was awake; ";
    if (lateness.wake_up_ns > 8 * ms) result += "it woke late; ";
    return result.empty();
  })) << result;
}

INSTANTIATE_TEST_SUITE_P(All, Sleep,
                         testing::Combine(testing::Values("auto", "sleep", "spin-yield-sleep",
                                                          "yield-sleep"),
                                          testing::Values(Kind::one, Kind::all, Kind::any)));

TEST(Spin, KeepsItsCpu) {
  // Shown to differ from sleeping, or the test above would prove nothing.
  const Lateness lateness = measure(WaitPolicy::sleep(), Kind::one, 5 * ms);
  Shared<World> world;
  Hardware waiter(world->domain, 0, WaitPolicy::spin(), false);
  const std::int64_t cpu = thread_cpu_ns();
  waiter.set_deadline(now_ns() + 60 * ms);
  EXPECT_FALSE(waiter.await(world->cells[0], equals(1), acquire));
  EXPECT_GT(thread_cpu_ns() - cpu, lateness.cpu_ns);
}

TEST(SpinYield, NeverSleeps) {
  const WaitPolicy policy = WaitPolicy::by_name("spin-yield", 1, 1);
  EXPECT_EQ(policy, WaitPolicy::attentive());
  EXPECT_LT(policy.spin_ns, 1 * ms);
  EXPECT_EQ(policy.yield_ns, WaitPolicy::forever);
  const Shared<World> world;
  Hardware waiter(world->domain, 0, policy, false);
  std::atomic<bool> over{false};
  std::atomic<bool> asleep{false};
  std::thread other([&] {
    while (!over) {
      if (world->cells[0].sleepers.load() != 0) asleep = true;
      std::this_thread::yield();
    }
  });
  waiter.set_deadline(now_ns() + 30 * ms);
  EXPECT_FALSE(waiter.await(world->cells[0], equals(1), acquire));
  over = true;
  other.join();
  EXPECT_FALSE(asleep);
}

// Who sleeps first asks the storers for full fences; a storer that meets nobody for long ends them.
TEST(FullFences, AreAskedForAndEnd) {
  if (register_heavy_fence(false) == HeavyFence::none) GTEST_SKIP() << "no membarrier";
  for (const bool asks : {true, false}) {
    const Shared<World> world;
    Hardware waiter(world->domain, 0, WaitPolicy::sleep(), false, asks);
    Hardware storer(world->domain, 1, WaitPolicy::sleep(), false, asks);
    waiter.set_deadline(now_ns() + 5 * ms);
    EXPECT_FALSE(waiter.await(world->cells[0], equals(1), acquire));
    const std::atomic<Word>& sleepers = world->domain.announcements.sleepers;
    EXPECT_EQ(sleepers.load(), asks ? fences_asked | fences_promised : 0U);
    for (unsigned n = 0; n < 1'024; ++n) storer.store(world->cells[1], n, release);
    EXPECT_EQ(sleepers.load(), 0U);
  }
}

TEST(Predicates, AreModular) {
  EXPECT_TRUE(at_least(5)(5));
  EXPECT_TRUE(at_least(5)(6));
  EXPECT_FALSE(at_least(5)(4));
  EXPECT_TRUE(at_least(0xffffffff)(0));
  EXPECT_TRUE(at_least(0xfffffff0)(0x7fffffef));
  EXPECT_FALSE(at_least(0)(0xffffffff));
  EXPECT_TRUE(equals(3)(3));
  EXPECT_FALSE(equals(3)(4));
}

TEST(BreakageWord, SurvivesEncoding) {
  for (const Status cause : {Status::timeout, Status::broken, Status::peer}) {
    for (const unsigned rank : {0U, 1U, 65535U, 0xffffffU}) {
      const Breakage decoded = Breakage::decode(Breakage{cause, rank}.encode());
      EXPECT_EQ(decoded.cause, cause);
      EXPECT_EQ(decoded.rank, rank);
    }
  }
  EXPECT_EQ(Breakage::decode(0).cause, Status::ok);
}

TEST(PuCount, TellsTheLastOfThoseWhoWereThereBefore) {
  PuCount count(0);
  const auto episode = [&](Word number, unsigned participants) {
    std::vector<bool> last;
    for (unsigned i = 0; i < participants; ++i) last.push_back(count.count_in(number));
    return last;
  };
  using Answers = std::vector<bool>;
  EXPECT_EQ(episode(1, 3), (Answers{false, false, false})) << "nobody was there before";
  for (Word number = 2; number < 12; ++number) {  // wraps
    EXPECT_EQ(episode(number, 3), (Answers{false, false, true})) << number;
  }
  EXPECT_EQ(episode(12, 4), (Answers{false, false, true, false})) << "one has come: too early";
  EXPECT_EQ(episode(13, 4), (Answers{false, false, false, true}));
  EXPECT_EQ(episode(14, 2), (Answers{false, false})) << "two have gone: never";
  EXPECT_EQ(episode(15, 2), (Answers{false, true}));
  EXPECT_EQ(PuCount(count.word()).count_in(16), false);
}

// Where waits spin first nobody asks who shares a PU.
TEST(PuCount, IsTakenOnlyWhereWaitsDoNotSpin) {
  struct {
    Hardware::Cell& of(unsigned, unsigned) const { return world->cells[0]; }
    Shared<World> world;
  } counts;
  Hardware port(counts.world->domain, 0, WaitPolicy::dedicated(), false);
  EXPECT_EQ(port.count_in_on_pu(counts, 2, 1), Awaited::anyone);
  EXPECT_EQ(counts.of(0, 0).value.load(), 0U);
  port.set_policy(WaitPolicy::oversubscribed());
  for (Word episode = 1; episode <= 2; ++episode) {
    EXPECT_EQ(port.count_in_on_pu(counts, 2, episode),
              episode == 2 ? Awaited::other_pus : Awaited::anyone);
  }
  EXPECT_NE(counts.of(0, 0).value.load(), 0U);
}

}  // namespace
}  // namespace muster::test
