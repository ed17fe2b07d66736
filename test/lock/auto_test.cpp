// SPDX-License-Identifier: BSD-3-Clause
// What `auto` decides, what it says and counts of that, and how its server comes and goes.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "delegation/condition.hpp"
#include "delegation/cpus.hpp"
#include "delegation/station.hpp"
#include "lock/habit.hpp"
#include "lock/registry.hpp"
#include "muster/lock.h"
#include "trial.hpp"
#include "with_server.hpp"

namespace muster::test {
namespace {

using delegation::AnyLock;
using delegation::make_lock;

class Auto : public WithServer {};

/// What an `auto` lock says of itself, beside what it has counted.
void expect_told(const AnyLock& lock, const char* server, const char* way) {
  const delegation::Counters counters = lock.counters();
  const std::string text = lock.explain();
  const auto expect_line = [&](const std::string& line) {
    EXPECT_NE(std::string::npos, text.find(line)) << line << " is not in\n" << text;
  };
  expect_line(std::string("server: ") + server);
  expect_line(std::string("sections: ") + way);
  expect_line("executed by the client: " + std::to_string(counters.inlined) + "\n");
  expect_line("executed by others: " + std::to_string(counters.delegated) + "\n");
  expect_line("of these by clients: " + std::to_string(counters.combined) + "\n");
  expect_line("changes of way: " + std::to_string(counters.switches) + "\n");
}

/// Another thread comes while this one is in a section; what it does `then` follows its own one.
void meet(
    AnyLock& lock, const std::function<void()>& then = [] {}) {
  std::atomic<bool> comes{false};
  std::thread other;
  execute(lock, [&] {
    other = std::thread([&] {
      comes = true;
      lock.execute(nothing);
      then();
    });
    while (!comes) sched_yield();
    sleep_ms(2);  // its request is pending, unless it had no CPU
  });
  other.join();
}

TEST_F(Auto, ExecutesInlineWhileItIsAlone) {
  const auto lock = make("auto");
  expect_told(*lock, "on CPU", "none yet\n");
  std::uint64_t count = 0;
  for (int i = 0; i < 10'000; ++i) execute(*lock, [&] { ++count; });
  EXPECT_EQ(10'000U, count);
  const delegation::Counters counters = lock->counters();
  EXPECT_EQ(10'000U, counters.inlined);
  EXPECT_EQ(0U, counters.delegated + counters.combined + counters.switches);
  expect_told(*lock, "on CPU", "executed by their own clients: no contention so far\n");
}

TEST_F(Auto, RemembersWhoHasTakenItItself) {
  const auto lock = make("auto");
  ASSERT_TRUE(lock->acquire(WaitPolicy::forever));
  EXPECT_EQ(0U, delegation::this_thread.quick) << "the short way is for threads without a lock";
  lock->release();
  EXPECT_EQ(lock->number_ever(), delegation::this_thread.quick);
}

TEST_F(Auto, CombinesWithoutAServer) {
  station_->stop();
  const auto lock = make("auto");
  delegation::Counters counters = lock->counters();
  std::uint64_t meetings = 0;
  for (; counters.delegated * 10 <= counters.inlined + counters.delegated; ++meetings) {
    meet(*lock);
    counters = lock->counters();
  }
  EXPECT_EQ(2 * meetings, counters.inlined + counters.delegated);
  EXPECT_GT(counters.combined, 0U);
  EXPECT_EQ(counters.delegated, counters.combined) << "nobody else is there";
  expect_told(*lock, "none",
              "combined: clients meet at the lock, and whoever has it executes for the others\n");
  for (std::uint64_t i = 0; i < 10 * counters.delegated; ++i) lock->execute(nothing);
  expect_told(*lock, "none", "executed by their own clients: they seldom meet at the lock\n");
}

// And goes on to, though nobody else comes: after some 1000 sections it tries the lock again.
TEST_F(Auto, SendsItsSectionsToTheServerOnceClientsMeet) {
  const auto lock = make("auto");
  constexpr unsigned more = locks::Habit::trial / 2;
  std::uint64_t meetings = 0;
  for (bool met = false; !met; ++meetings) {
    meet(*lock, [&] {
      met = lock->counters().delegated != 0;
      for (unsigned i = 0; i < more && met; ++i) lock->execute(nothing);
    });
  }
  const delegation::Counters counters = lock->counters();
  EXPECT_EQ(2 * meetings + more, counters.inlined + counters.delegated);
  EXPECT_EQ(1 + more, counters.delegated) << "it has changed its mind";
  EXPECT_LE(counters.switches, 2U);
  expect_told(*lock, "on CPU", "mostly sent to a server: clients meet at the lock\n");
  // It counts when the client has its answer already.
  const std::uint64_t by_server = counters.delegated - counters.combined;
  while (station_->counters().executed < by_server) sched_yield();
  EXPECT_EQ(by_server, station_->counters().executed);
  // The next one to have the same seat goes on.
  run_threads(1, [&](unsigned) {
    const std::int64_t give_up_ms = now_ms() + patience_ms;
    while (lock->counters().inlined == counters.inlined && now_ms() < give_up_ms)
      lock->execute(nothing);
  });
  EXPECT_GT(lock->counters().inlined, counters.inlined) << "it never tries the lock again";
}

// What is told of it is what has happened, not what the kind is for.
TEST_F(Auto, TellsOfWaitsForTheLock) {
  station_->stop();
  const auto lock = make("auto");
  const delegation::Condition changed(*lock);
  meet(*lock);
  delegation::Counters counters = lock->counters();
  while (counters.waited * 10 <= counters.inlined) {
    meet(*lock);
    counters = lock->counters();
  }
  EXPECT_EQ(0U, counters.delegated + counters.switches);
  expect_told(*lock, "none", "executed by their own clients, who wait for each other");
}

TEST_F(Auto, NoSignalIsForAWaitThatWasRefused) {
  station_->stop();
  const auto lock = make("auto");
  delegation::Condition condition(*lock);
  execute(*lock, [&] {
    // As if another client executed it, which one may if the condition was made too late.
    delegation::this_thread.for_another = true;
    EXPECT_THROW(condition.wait(0), Error);
    delegation::this_thread.for_another = false;
  });
  std::atomic<bool> waits{false};
  bool signalled = false;
  std::thread waiter([&] {
    execute(*lock, [&] {
      waits = true;
      signalled = condition.wait(patience_ns);
    });
  });
  while (!waits) sched_yield();
  execute(*lock, [&] { condition.signal(); });
  waiter.join();
  EXPECT_TRUE(signalled);
}

TEST_F(Auto, TellsOfRcl) {
  const auto lock = make("rcl");
  lock->execute(nothing);
  expect_told(*lock, "on CPU", "sent to the server");
  station_->stop();
  lock->execute(nothing);
  expect_told(*lock, "none", "executed by their own clients: it has no server now\n");
}

#ifdef MUSTER_LIBRARY
/// A lock of which something is counted.
class Counted final : public AnyLock {
 public:
  Counted() : AnyLock(locks::traits_of("mcs")) {}
  void execute(delegation::Section, unsigned) override {}
  delegation::Counters counters() const override {
    return {.inlined = 11, .delegated = 22, .combined = 33, .waited = 44, .switches = 55};
  }
};

TEST(LockAbi, EachCounterIsWhatItsNameSays) {
  void* const library = dlopen(MUSTER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(nullptr, library) << dlerror();
  const auto get_counters = reinterpret_cast<decltype(&muster_lock_get_counters)>(
      dlsym(library, "muster_lock_get_counters"));
  const Counted lock;
  const AnyLock* const handle = &lock;
  muster_lock_counters counters{};
  ASSERT_EQ(MUSTER_OK,
            get_counters(reinterpret_cast<const muster_lock*>(handle), &counters, sizeof counters));
  EXPECT_EQ(11U, counters.by_client);
  EXPECT_EQ(22U, counters.by_others);
  EXPECT_EQ(33U, counters.by_combiners);
  EXPECT_EQ(55U, counters.switches);
  EXPECT_EQ(0, dlclose(library));
}
#endif

// Where all come at once: a client that has changed its way stays with it.
TEST_F(Auto, HasHysteresis) {
  for (const bool served : {true, false}) {
    if (!served) station_->stop();
    const auto lock = make("auto");
    auto brief = [] {
      for (int i = 0; i < (under_tsan ? 1000 : 100); ++i) relax();
    };
    // Under ThreadSanitizer a lock that is given back is free for long enough to be found so.
    const std::uint64_t sections_a_switch = under_tsan ? 5 : 20;
    // Until it can be told: all may have had one CPU.
    const std::uint64_t enough = served ? 3000 : 1;
    const std::int64_t give_up_ms = now_ms() + patience_ms;
    while (lock->counters().delegated < enough && now_ms() < give_up_ms) {
      run_threads(3, [&](unsigned) {
        for (unsigned i = 0; i < 2000; ++i) execute(*lock, brief);
      });
    }
    const delegation::Counters counters = lock->counters();
    EXPECT_GE(counters.delegated, enough) << served;
    EXPECT_GE(counters.switches, 1U) << served;
    EXPECT_LT(sections_a_switch * counters.switches, counters.inlined + counters.delegated)
        << served;
    if (served) {
      EXPECT_LT(sections_a_switch * counters.switches, counters.delegated);
    }
  }
}

TEST_F(ByItself, ComesAndGoesUnderLoad) {
  const auto lock = make();
  Protected data(3);
  std::atomic<bool> stop{false};
  std::uint64_t sections[3] = {};
  std::thread changes([&] {
    const auto await_server = [&](bool wanted) {
      const std::int64_t until_ms = now_ms() + patience_ms;
      while (station_->has_server() != wanted && now_ms() < until_ms) sleep_ms(1);
      EXPECT_EQ(wanted, station_->has_server()) << station_->reason();
    };
    for (int turn = 0; turn < 3; ++turn) {
      usable_cpus_ = 8;
      await_server(true);
      sleep_ms(10);
      EXPECT_NE(std::string::npos, lock->explain().find("a CPU is free")) << lock->explain();
      usable_cpus_ = 2;
      await_server(false);
      EXPECT_NE(std::string::npos, lock->explain().find("no")) << lock->explain();
    }
    stop = true;
  });
  run_threads(3, [&](unsigned client) {
    Random random(case_seed() + client);
    while (!stop) {
      Numbered section{&data, client, ++sections[client], 0, random.below(20)};
      lock->execute({Numbered::execute, &section});
    }
  });
  changes.join();
  EXPECT_STREQ("", data.wrong);
  EXPECT_EQ(sections[0] + sections[1] + sections[2], data.count) << replay_command();
  EXPECT_GT(station_->counters().executed, 0U) << "its servers have done something";
}

// Where clients wait for each other instead of executing each other's sections.
TEST_F(ByItself, WhereSectionsMayWaitForConditionsToo) {
  counts_meets_ = true;
  const auto lock = make();
  const delegation::Condition changed(*lock);
  const std::int64_t give_up_ms = now_ms() + patience_ms;
  run_threads(3, [&](unsigned) {
    auto section = [] { sched_yield(); };  // so that others find it taken
    while (!station_->has_server() && now_ms() < give_up_ms) execute(*lock, section);
  });
  EXPECT_TRUE(station_->has_server()) << station_->reason();
  const delegation::Counters counters = lock->counters();
  EXPECT_GT(counters.waited, 0U);
  EXPECT_LE(counters.waited, counters.inlined);
}

TEST(WhatAStewardSays, IsHeardByWhoStandsBack) {
  using locks::StandBack;
  const HangGuard guard(120);
  const auto station = std::make_shared<delegation::Station>();
  station->employ({}, [](locks::Steward::Look& look) {
    look.meets = static_cast<std::uint64_t>(look.now_ns) / 1000;
    look.clients = 3;
    look.usable_cpus = 8;
    look.threads_cpus = 3;
    look.combiner = locks::Steward::Executor{.place = 5, .sections_per_s = 1e6};
  });
  const auto lock = make_lock({.kind = "auto", .station = station});
  const auto heard = [&] { return station->back_cell().value.load(); };
  EXPECT_EQ(0U, heard());
  for (const std::int64_t give_up_ms = now_ms() + patience_ms; heard() == 0;) {
    ASSERT_LT(now_ms(), give_up_ms) << station->reason();
    sleep_ms(1);
    station->consider();
  }
  const StandBack who{.place = 5, .who = StandBack::who_is_near};
  EXPECT_EQ(who.word(), heard()) << "before a server starts";
  // This thread is near where it is.
  const StandBack all{.place = static_cast<unsigned>(sched_getcpu()),
                      .who = StandBack::who_is_near};
  station->back_cell().value = all.word();
  locks::StandingBack<delegation::RingPort> standing_back(station->lock(0).wanted().back);
  EXPECT_TRUE(standing_back.did(station->seat(0).port));
}

TEST(WhatAStewardSees, IsWhatThreadsHaveDoneThatHaveEnded) {
  const auto station = std::make_shared<delegation::Station>();
  unsigned looks = 0;
  locks::Steward::Look seen{};
  station->employ({}, [&](const locks::Steward::Look& look) {
    ++looks;
    seen = look;
  });
  const auto look = [&] {
    for (const unsigned before = looks; looks == before; sleep_ms(1)) station->consider();
  };
  for (unsigned turn = 0; turn < 3; ++turn) {
    // A thread's first section of a lock is told of at once.
    const auto first = make_lock({.kind = "auto", .station = station});
    const auto second = make_lock({.kind = "auto", .station = station});
    run_threads(1, [&](unsigned) {  // in the same seat
      execute_section(*first, nothing);
      look();
      EXPECT_EQ(2 * turn + 1, seen.sections);
      execute_section(*second, nothing);
    });
    look();
    EXPECT_EQ(2 * turn + 2, seen.sections) << "and those since it was last looked at";
    EXPECT_EQ(1U, seen.clients);
    look();
    EXPECT_EQ(2 * turn + 2, seen.sections);
    EXPECT_EQ(0U, seen.clients);
  }
}

// Also where its server executes sections in sections, and sends what they have posted.
TEST(WhatAStewardSees, IsClientsAndAllTheirSections) {
  const HangGuard guard(120);
  std::atomic<std::uint64_t> looks{0};
  std::atomic<std::uint64_t> sections{0};
  std::atomic<unsigned> most_clients{0};
  const auto station = std::make_shared<delegation::Station>();
  station->employ({}, [&](locks::Steward::Look& look) {
    sections = look.sections;
    most_clients = std::max<unsigned>(most_clients, look.clients);
    ++looks;
    // So that the server comes and stays.
    look.meets = static_cast<std::uint64_t>(look.now_ns) / 1000;
    look.clients = 3;
    look.usable_cpus = 8;
    look.threads_cpus = 3;
    look.server_cpus = 1;
  });
  const std::int64_t give_up_ms = now_ms() + patience_ms;
  while (!station->has_server() && now_ms() < give_up_ms) {
    sleep_ms(1);
    station->consider();
  }
  ASSERT_TRUE(station->has_server()) << station->reason();
  const auto outer = make_lock({.kind = "rcl", .station = station});
  const auto inner = make_lock({.kind = "auto", .station = station});
  const auto posted = make_lock({.kind = "auto", .station = station});
  constexpr unsigned many = 4096;
  for (unsigned i = 0; i < many; ++i) {
    execute(*outer, [&] {
      inner->execute(nothing);
      posted->post(nothing);
    });
  }
  for (const std::uint64_t last = looks; looks < last + 2 && now_ms() < give_up_ms;) sleep_ms(1);
  EXPECT_EQ(1U, most_clients);
  EXPECT_GT(sections, 3 * many - 1000) << "some are told later";
}

// What the decision goes by, as it is. (Who has server_cpus as 1 may have slept.)
TEST(WhatAStewardSees, IsWhoseTimeItWas) {
  using Look = locks::Steward::Look;
  const HangGuard guard(120);
  std::atomic<bool> server_worked{false};
  std::atomic<bool> threads_worked{false};
  std::atomic<unsigned> usable_cpus{0};
  std::atomic<bool> posts{false};
  std::atomic<bool> burns{false};
  double server_s = 0;  // while it worked, and so the threads'
  double threads_s = 0;
  double beside_s = 0;  // the threads' while it slept and they computed
  std::int64_t last_ns = 0;
  const auto station = std::make_shared<delegation::Station>();
  station->employ({}, [&](Look& look) {
    usable_cpus = look.usable_cpus;
    const double passed_s =
        static_cast<double>(look.now_ns - std::exchange(last_ns, look.now_ns)) / 1e9;
    const bool slept = look.server_cpus == 1;
    if (posts && !slept) {
      server_s += look.server_cpus * passed_s;
      threads_s += look.threads_cpus * passed_s;
      server_worked = server_s > 0.02 && threads_s < server_s / 2;
    } else if (burns && slept) {
      beside_s += look.threads_cpus * passed_s;
      threads_worked = beside_s > 0.02;
    }
    // So that it comes and stays.
    look.meets = static_cast<std::uint64_t>(look.now_ns) / 1000;
    look.clients = 3;
    look.usable_cpus = 8;
    look.threads_cpus = 3;
    look.server_cpus = 1;
  });
  const auto lock = make_lock({.kind = "auto", .station = station});
  const std::int64_t give_up_ms = now_ms() + patience_ms;
  const auto goes_on = [&](const std::atomic<bool>& seen) {
    return !seen && now_ms() < give_up_ms;
  };
  while (!station->has_server() && now_ms() < give_up_ms) {
    sleep_ms(1);
    station->consider();
  }
  ASSERT_TRUE(station->has_server()) << station->reason();
  EXPECT_EQ(delegation::cpus_of_process(), usable_cpus);
  // The server computes, and who posts sleeps until it has room for more.
  auto computes = [] {
    const std::int64_t until_ns = thread_cpu_ns() + 2'000'000;
    while (thread_cpu_ns() < until_ns) {
    }
  };
  posts = true;
  while (goes_on(server_worked)) lock->post(section_of(computes));
  EXPECT_TRUE(server_worked);
  lock->execute(nothing);
  // The server sleeps, and this thread computes.
  burns = true;
  while (goes_on(threads_worked)) computes();
  EXPECT_TRUE(threads_worked);
}

}  // namespace
}  // namespace muster::test
