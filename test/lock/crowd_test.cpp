// SPDX-License-Identifier: BSD-3-Clause
// Whether more threads use locks than there are CPUs: who waits goes by it.
#include <dirent.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "delegation/cpus.hpp"
#include "delegation/port.hpp"
#include "delegation/station.hpp"
#include "delegation/thread.hpp"
#include "lock/steward.hpp"
#include "machine/usable_cpus.hpp"
#include "with_server.hpp"

namespace muster::test {
namespace {

/// What the calling thread's word says at each of its yields.
struct Yields {
  const Hardware::Cell& word;
  std::vector<Word> seen{};
};
thread_local Yields* yields = nullptr;
/// Looks at all threads of the process.
std::atomic<unsigned> counts{0};

}  // namespace
}  // namespace muster::test

/// The C library's, observed.
extern "C" int sched_yield() noexcept {
  if (auto* const mine = muster::test::yields) mine->seen.push_back(mine->word.value.load());
  static const auto real = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "sched_yield"));
  return real();
}
extern "C" DIR* opendir(const char* path) {
  ++muster::test::counts;
  static const auto real = reinterpret_cast<DIR* (*)(const char*)>(dlsym(RTLD_NEXT, "opendir"));
  return real(path);
}

namespace muster::test {
namespace {

using delegation::AnyLock;
using delegation::make_lock;
using delegation::Port;
using delegation::seated_threads;

/// Threads that have used the lock, and stay until they are sent away.
class Users {
 public:
  Users(AnyLock& lock, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      threads_.emplace_back([this, &lock] {
        execute_section(lock, nothing);
        std::unique_lock guard(mutex_);
        ++seated_;
        changed_.notify_all();
        changed_.wait(guard, [this] { return leave_; });
      });
    }
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return seated_ == count; });
  }
  ~Users() {
    {
      const std::scoped_lock guard(mutex_);
      leave_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Users(const Users&) = delete;
  Users& operator=(const Users&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned seated_ = 0;
  bool leave_ = false;
  std::vector<std::thread> threads_;
};

TEST(Crowd, AThreadCountsOnceHoweverManySeatsItHas) {
  const auto station = std::make_shared<delegation::Station>();
  unsigned seen = 0;
  station->employ(locks::Steward(), [&](locks::Steward::Look& look) { seen = look.clients; });
  const auto outer = make_lock({.kind = "auto", .station = station});
  const auto inner = make_lock({.kind = "auto", .station = station});
  auto around = [&] { execute_section(*inner, nothing); };
  execute(*outer, around);
  const unsigned before = seated_threads;
  run_threads(1, [&](unsigned) {
    execute(*outer, around);
    EXPECT_EQ(2U, delegation::this_thread.seats);
    EXPECT_EQ(before + 1, seated_threads);
    station->consider();
  });
  EXPECT_EQ(before, seated_threads) << "one that has ended counts no longer";
  EXPECT_EQ(2U, seen) << "this thread and the other one";
}

TEST(Crowd, AForksChildHasItsOwnThreadAtMost) {
  if (!children_make_threads) GTEST_SKIP() << "no process of threads is forked here";
  const auto lock = make_lock({.kind = "mcs", .station = nullptr});
  const Users users(*lock, 3);
  run_threads(1, [&](unsigned) {
    const auto end_of_child_with = [](unsigned seated) {
      return Child([=] { _exit(seated_threads == seated ? 0 : 3); }).wait();
    };
    EXPECT_EQ("", end_of_child_with(0)) << "its thread has used no lock";
    execute_section(*lock, nothing);
    EXPECT_EQ("", end_of_child_with(1));
  });
}

TEST(Crowd, IsMoreThreadsThanCpus) {
  if (!children_make_threads) GTEST_SKIP() << "no threads' child makes threads here";
  const std::vector<unsigned> allowed = allowed_cpus();
  for (unsigned cpus = 1; cpus <= std::min<std::size_t>(2, allowed.size()); ++cpus) {
    Child child([&] {
      PuSet few;
      for (unsigned i = 0; i < cpus; ++i) few.add(allowed[i]);
      if (delegation::bind_thread(pthread_self(), few) != 0) _exit(5);
      const unsigned expected = std::min(cpus, cpu_quota().value_or(cpus));
      while (delegation::cpus_of_process() != expected) sleep_ms(10);  // its parent's count ages
      const auto lock = make_lock({.kind = "mcs", .station = nullptr});
      const unsigned before = seated_threads;  // 1 if its parent's thread has used a lock
      for (int turn = 0; turn < 2; ++turn) {
        if (Port::is_crowded()) _exit(6);
        {
          const Users as_many(*lock, expected - before);
          if (Port::is_crowded()) _exit(7);
          const Users one_more(*lock, 1);
          if (!Port::is_crowded()) _exit(8);
        }
      }
      _exit(0);
    });
    EXPECT_EQ("", child.wait()) << cpus << " CPUs";
  }
}

/// Of a client whose lock is taken each time until it sleeps: what its lock's word said at each
/// yield, where it said this before.
std::vector<std::vector<Word>> yields_of_one_that_sleeps(const std::vector<Word>& said_before) {
  Hardware::Domain domain{};
  Port port(domain, 0);
  std::vector<std::vector<Word>> seen;
  for (const Word said : said_before) {
    Hardware::Cell own{};
    own.value = 1;
    Hardware::Cell held{};
    held.value = 1;
    Hardware::Cell wanted{};
    Hardware::Cell dozing{};
    wanted.value = said;
    Yields mine{wanted};
    std::thread waits([&] {
      yields = &mine;
      EXPECT_EQ(0, port.await_either(own, held, acquire, wanted, dozing, {true, true}));
      yields = nullptr;
    });
    while (own.sleepers.load() == 0) sleep_ms(1);
    Port(domain, 1).store(own, 0, release);
    waits.join();
    seen.push_back(mine.seen);
  }
  return seen;
}

TEST(Crowd, WhoWaitsYieldsBeforeItAsksAndBeforeItSleeps) {
  delegation::cpus_of_process();  // counts them
  if (delegation::is_time_limited()) GTEST_SKIP() << "it naps where a quota limits the CPUs' time";
  const auto lock = make_lock({.kind = "cas-spin", .station = nullptr});
  {
    const Users users(*lock, delegation::cpus_of_process() + 1);
    ASSERT_TRUE(Port::is_crowded());
    // Who has asked lets another one ask, the next time only.
    const std::vector<std::vector<Word>> said = yields_of_one_that_sleeps({0, 0, 1, 0});
    const std::vector<std::size_t> before_it_asks{1, 2, 0, 1};
    for (std::size_t time = 0; time < said.size(); ++time) {
      ASSERT_GE(said[time].size(), before_it_asks[time] + 16);
      for (std::size_t i = 0; i <= before_it_asks[time]; ++i) {
        EXPECT_EQ(i < before_it_asks[time] ? 0U : 1U, said[time][i])
            << "time " << time << ", yield " << i;
      }
    }
  }
  ASSERT_FALSE(Port::is_crowded());
  EXPECT_EQ(0U, yields_of_one_that_sleeps({0})[0].size());
}

TEST(Crowd, IsCountedByWhoWaitsOrComesNotByWhoHasALock) {
  const auto lock = make_lock({.kind = "cas-spin", .station = nullptr});
  const Users users(*lock, delegation::cpus_of_process() + 1);
  const auto counts_after = [](auto action) {
    sleep_ms(1100);  // the last count is old
    const unsigned before = counts;
    action();
    return counts - before;
  };
  EXPECT_EQ(0U, counts_after([] { EXPECT_TRUE(Port::is_crowded()); }));
  EXPECT_NE(0U, counts_after([] { yields_of_one_that_sleeps({0}); }));
  EXPECT_NE(0U, counts_after(
                    [&] { run_threads(1, [&](unsigned) { execute_section(*lock, nothing); }); }));
}

TEST(Crowd, WhoSpinsOnTheServersPuYieldsIt) {
  for (const Word elsewhere : {0, 1}) {
    Hardware::Domain domain{};
    Port port(domain, 0);
    port.set_policy({.spin_ns = 1'000'000, .yield_ns = 0, .name = "spins, then sleeps"});
    Hardware::Cell own{};
    own.value = 1;
    Hardware::Cell server{};
    Yields mine{server};
    std::thread waits([&] {
      delegation::bind_thread(pthread_self(), {allowed_cpus().front()});
      server.value = port.pu() + elsewhere;
      yields = &mine;
      EXPECT_EQ(0, port.await_either(own, server, acquire, Awaited::anyone));
      yields = nullptr;
    });
    while (own.sleepers.load() == 0) sleep_ms(1);
    Port(domain, 1).store(own, 0, release);
    waits.join();
    EXPECT_EQ(elsewhere == 0, !mine.seen.empty());
  }
}

TEST(CpusOfProcess, AreThoseOfAllItsThreads) {
  const std::vector<unsigned> cpus = allowed_cpus();
  const PuSet before = delegation::binding_of(0);
  EXPECT_EQ(cpus, delegation::binding_of_process().to_vector());
  std::atomic<bool> stop{false};
  std::thread free_one([&] {
    while (!stop) sleep_ms(1);
  });
  delegation::bind_thread(pthread_self(), {cpus.front()});  // the first thread
  std::thread([&] {
    delegation::bind_thread(pthread_self(), {cpus.front()});
    EXPECT_EQ(cpus, delegation::binding_of_process().to_vector());
    EXPECT_GE(delegation::cpus_of_process(), 1U);
    EXPECT_LE(delegation::cpus_of_process(), cpus.size());
  }).join();
  delegation::bind_thread(pthread_self(), before);
  stop = true;
  free_one.join();
}

}  // namespace
}  // namespace muster::test
