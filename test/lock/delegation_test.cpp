// SPDX-License-Identifier: BSD-3-Clause
// The server's runtime: what programs do inside critical sections.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "delegation/condition.hpp"
#include "delegation/cpus.hpp"
#include "delegation/station.hpp"
#include "trial.hpp"
#include "with_server.hpp"

namespace muster::test {
namespace {

using delegation::AnyLock;
using delegation::make_lock;
using delegation::Station;

class Delegation : public WithServer {};

TEST_F(Delegation, ClientsRequestsAreOnLinesOfTheirOwn) {
  const delegation::RingBoard board = station_->board();
  const auto line_of = [](const void* at) {
    return reinterpret_cast<std::uintptr_t>(at) / delegation::line_bytes;
  };
  for (unsigned client = 0; client < 100; ++client) {
    const unsigned first = client * Station::depth;
    const unsigned last = first + Station::depth - 1;
    EXPECT_GT(line_of(&board.at(last + 1)), line_of(&board.at(last) + 1));
    EXPECT_GT(line_of(&board.at(last + 1)), line_of(&board.error(last) + 1));
    // What sections leave in errno is read with each answer, and seldom written.
    EXPECT_GT(line_of(&board.error(first)), line_of(&board.at(last) + 1));
  }
}

TEST_F(Delegation, NestedAcrossServersBothWays) {
  const auto other = std::make_shared<Station>();
  other->start({});
  const auto a = make();
  const auto d = make();
  const auto b = make_lock({.kind = "rcl", .station = other});
  const auto c = make_lock({.kind = "rcl", .station = other});
  std::uint64_t in_b = 0;
  std::uint64_t in_d = 0;
  const unsigned sections = rounds(1000);
  run_threads(4, [&](unsigned client) {
    for (unsigned i = 0; i < sections; ++i) {
      if (client % 2 == 0) {
        execute(*a, [&] { execute(*b, [&] { ++in_b; }); });
      } else {
        execute(*c, [&] { execute(*d, [&] { ++in_d; }); });
      }
    }
  });
  EXPECT_EQ(2 * sections, in_b);
  EXPECT_EQ(2 * sections, in_d);
  for (const AnyLock* const lock : {a.get(), b.get(), c.get(), d.get()}) {
    const delegation::Counters counters = lock->counters();
    EXPECT_EQ(2 * sections, counters.inlined + counters.delegated);
  }
}

TEST_F(Delegation, NestedInTheSameServerWhileTheInnerOneIsTaken) {
  const auto outer = make();
  const auto inner = make();
  std::uint64_t count = 0;
  std::uint64_t in_the_same_thread = 0;
  const unsigned sections = rounds(200);
  run_threads(3, [&](unsigned client) {
    auto increment = [&] {
      ++count;
      if (count % 64 == 0) sleep_ms(6);  // long enough for the watchdog
    };
    for (unsigned i = 0; i < sections; ++i) {
      if (client == 0) {
        execute(*inner, increment);
      } else {
        execute(*outer, [&] {
          const int thread_id = gettid();
          execute(*inner, [&] {
            increment();
            if (gettid() == thread_id) ++in_the_same_thread;
          });
        });
      }
    }
  });
  EXPECT_EQ(3 * sections, count);
  EXPECT_EQ(2 * sections, in_the_same_thread);
}

TEST_F(Delegation, StopsAndStartsUnderLoad) {
  for (const char* const kind : {"rcl", "auto"}) {
    const auto lock = make(kind);
    std::atomic<bool> over{false};
    std::thread stopper([&] {
      while (!over) {
        sleep_ms(2);
        station_->stop();
        sleep_ms(1);
        station_->start({});
      }
    });
    const LockTrial trial{
        .seed = case_seed(), .clients = 3, .sections = rounds(20'000), .posts = 1};
    EXPECT_EQ("", run_lock_trial(*lock, trial)) << kind << "; " << replay_command();
    over = true;
    stopper.join();
  }
}

// A server that nobody wakes comes back by itself 20 ms after it has gone to sleep.
TEST_F(Delegation, WakesAtOnce) {
  const auto lock = make();
  const auto wakes_in_ns = [&] {
    const std::uint64_t sleeps = station_->counters().sleeps;
    while (station_->counters().sleeps == sleeps) sleep_ms(1);
    const std::int64_t before_ns = now_ns();
    lock->execute(nothing);
    return now_ns() - before_ns;
  };
  EXPECT_TRUE(in_a_quiet_moment([&] {
    std::vector<std::int64_t> times(5);
    for (std::int64_t& time : times) time = wakes_in_ns();
    std::sort(times.begin(), times.end());
    return times[times.size() / 2] < 5'000'000;
  }));
}

TEST_F(Delegation, WakesSeldomWhereNobodyComes) {
  const auto lock = make();
  lock->execute(nothing);
  const std::int64_t start_ns = now_ns();
  const std::uint64_t slept = station_->counters().sleeps;
  sleep_ms(200);
  const std::uint64_t sleeps = station_->counters().sleeps - slept;
  const std::int64_t passed_ns = now_ns() - start_ns;
  EXPECT_LE(sleeps, passed_ns / FutexLot(false).longest_slice_ns() + 1);
}

TEST_F(Delegation, ServesManyLocks) {
  std::vector<std::unique_ptr<AnyLock>> locks;
  std::vector<std::uint64_t> counts(300);
  for (std::size_t i = 0; i < counts.size(); ++i) locks.push_back(make());
  run_threads(3, [&](unsigned) {
    for (unsigned round = 0; round < rounds(8); ++round) {
      for (std::size_t i = 0; i < locks.size(); ++i) {
        execute(*locks[i], [&] { ++counts[i]; });
      }
    }
  });
  for (const std::uint64_t count : counts) EXPECT_EQ(3 * rounds(8), count);
}

TEST_F(Delegation, IsPlacedWhereItIsTold) {
  const std::vector<unsigned> cpus = allowed_cpus();
  const auto lock = make();
  int cpu = -1;
  auto where = [&] { cpu = sched_getcpu(); };
  for (const unsigned target : {cpus.front(), cpus.back()}) {
    station_->place({.cpus = {target}});
    execute(*lock, where);
    EXPECT_EQ(static_cast<int>(target), cpu);
    EXPECT_TRUE(in_a_quiet_moment([&] {
      execute(*lock, where);
      return station_->server_cell().value.load() == target + 1;
    })) << target
        << ": clients are told " << station_->server_cell().value.load();
  }
  EXPECT_THROW(station_->place({.cpus = {cpus.back() + 100}}), Error);
  EXPECT_THROW(station_->place({.cpus = {cpus.front(), cpus.back() + 100}}), Error) << "nor partly";
  execute(*lock, where);
  EXPECT_EQ(static_cast<int>(cpus.back()), cpu);
}

// Of CPUs that the process may not use it does not know.
TEST(DelegationWithoutServer, AServerStartsOnACpuThatTheProcessMayUse) {
  if (!children_make_threads) GTEST_SKIP() << "no threads' child makes threads here";
  const std::vector<unsigned> cpus = allowed_cpus();
  for (const unsigned allowed : {cpus.front(), cpus.back()}) {
    Child child([&] {
      bind_to_cpu(allowed);
      const auto station = std::make_shared<Station>();
      station->start({});
      const auto lock = make_lock({.kind = "rcl", .station = station});
      const int client = gettid();
      int executor = client;
      int cpu = -1;
      for (int i = 0; i < 20; ++i) {
        execute(*lock, [&] {
          executor = gettid();
          cpu = sched_getcpu();
        });
        if (executor == client) _exit(5);
        if (cpu != static_cast<int>(allowed)) _exit(6);
      }
      station->stop();
      _exit(0);
    });
    EXPECT_EQ("", child.wait()) << "CPU " << allowed;
  }
}

/// How long a section takes when nothing else does, of a client that comes back.
std::int64_t shortest_section_ns(AnyLock& lock) {
  std::int64_t shortest_ns = INT64_MAX;
  for (int turn = 0; turn < 200; ++turn) {
    const std::int64_t before_ns = now_ns();
    for (int i = 0; i < 10; ++i) lock.execute(nothing);
    shortest_ns = std::min(shortest_ns, (now_ns() - before_ns) / 10);
  }
  return shortest_ns;
}

TEST_F(Delegation, ThreadsThatWereThereOnceCostNothing) {
  for (const char* const kind : {"flat-combining", "rcl"}) {
    const auto lock =
        make_lock({.kind = kind, .station = *kind == 'f' ? std::shared_ptr<Station>() : station_});
    const std::int64_t before_ns = shortest_section_ns(*lock);
    // As if there were so many.
    std::thread([&] {
      delegation::take_seat(1499);
      delegation::Thread& t = delegation::this_thread;
      std::swap(t.first, t.others[1498]);
      lock->execute(nothing);
      std::swap(t.first, t.others[1498]);
    }).join();
    EXPECT_TRUE(in_a_quiet_moment([&] {
      return shortest_section_ns(*lock) <= 4 * before_ns + 500;
    })) << kind;
  }
}

// Whoever comes next may not be given its seat.
TEST_F(Delegation, WhatEndedThreadsHavePostedIsExecuted) {
  const auto lock = make();
  const auto used = [] {
    unsigned count = 0;
    unsigned at = delegation::Port::next_client(0, delegation::seats_max);
    for (; at < delegation::seats_max; ++count) {
      at = delegation::Port::next_client(at + 1, delegation::seats_max);
    }
    return count;
  };
  constexpr unsigned posters = 70;  // more than a word has bits
  std::atomic<unsigned> executed{0};
  auto increment = [&] { ++executed; };
  const unsigned before = used();
  {
    BlockedSection blocked(*lock);
    std::vector<std::thread> threads;
    std::atomic<unsigned> posted{0};
    for (unsigned i = 0; i < posters; ++i) {
      threads.emplace_back([&] {
        lock->post(section_of(increment));
        ++posted;
        while (posted < posters) sched_yield();  // each has a seat of its own
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_GE(used(), before + posters) << "their requests are pending";
  }
  while (executed < posters) lock->execute(nothing);
  std::thread([&] { lock->execute(nothing); }).join();
  EXPECT_EQ(posters, executed);
  EXPECT_LE(used(), before + 1) << "with this thread's";
}

// On two CPUs a server that stays costs `auto` locks a third of their throughput.
TEST(DefaultStations, AnRclLockBringsAutoLocksNoServer) {
  using locks::Style;
  const auto always = make_lock({.kind = "rcl", .station = nullptr});
  const auto by_itself = make_lock({.kind = "auto", .station = nullptr});
  const auto another = make_lock({.kind = "rcl", .station = nullptr});
  EXPECT_TRUE(delegation::default_station(Style::server)->has_server());
  EXPECT_FALSE(delegation::default_station(Style::adaptive)->has_server());
  EXPECT_NE(std::string::npos, by_itself->explain().find("server: none")) << by_itself->explain();
  EXPECT_EQ(always->station(), another->station()) << "one server for all";
  unsigned count = 0;
  auto increment = [&] { ++count; };
  by_itself->post(section_of(increment));
  EXPECT_EQ(1U, count) << "there is nobody else to execute it";
  execute(*by_itself, increment);
  execute(*always, increment);
  EXPECT_EQ(0U, by_itself->counters().delegated);
  EXPECT_EQ(1U, always->counters().delegated);
  EXPECT_EQ("", always->station()->reason()) << "its server does not come and go";
  delegation::default_station(Style::server)->stop();
}

TEST(Placement, ServersAndThreadsAreWhereTheRulesSay) {
  using delegation::Places;
  Places& places = Places::instance();
  const auto pus = [&](unsigned core) {
    PuSet all;
    for (const unsigned pu : places.topology().cores()[core].pus) all.add(pu);
    return all;
  };
  delegation::default_station(locks::Style::server)->stop();
  EXPECT_THROW(places.place_thread({}), Error) << "there is no server to be near";
  Station station;
  station.start({});
  const unsigned core = station.core().value();
  EXPECT_EQ(0U, core);
  Occupancy now(places.tree().cores());
  now.servers[core] = 1;
  const unsigned expected = choose_thread_core(places.tree(), now).value();
  run_threads(1, [&](unsigned) {
    const PuSet before = delegation::binding_of(0);
    EXPECT_EQ(expected, places.place_thread({}));
    EXPECT_EQ(pus(expected), delegation::binding_of(0));
    Places::unplace_thread();
    EXPECT_EQ(before, delegation::binding_of(0));
  });
}

TEST(DelegationWithoutServer, AServerThatCannotStartLeavesNothing) {
  const auto station = std::make_shared<Station>();
  const unsigned last = allowed_cpus().back();
  for (const PuSet& cpus : {PuSet{last + 100}, PuSet{last, last + 100}}) {
    EXPECT_THROW(station->start({.cpus = cpus}), Error) << cpus.to_string();
    EXPECT_FALSE(station->has_server());
  }
  station->start({});
  EXPECT_TRUE(station->has_server());
  EXPECT_THROW(station->start({}), Error) << "it runs already";
}

}  // namespace
}  // namespace muster::test
