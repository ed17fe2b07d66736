// SPDX-License-Identifier: BSD-3-Clause
// Servers with SCHED_FIFO: where the system allows it they have it, and keep the CPU from nobody
// who has to go on; where it does not they say so, and serve.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "delegation/station.hpp"
#include "with_server.hpp"

namespace muster::test {
namespace {

using delegation::AnyLock;
using delegation::make_lock;
using delegation::Station;

struct Scheduling {
  int policy;
  int priority;
  bool operator==(const Scheduling&) const = default;
};

Scheduling scheduling_of(int thread) {
  sched_param priority{};
  sched_getparam(thread, &priority);
  return {sched_getscheduler(thread), priority.sched_priority};
}

Scheduling fifo(int above_lowest) {
  return {SCHED_FIFO, sched_get_priority_min(SCHED_FIFO) + above_lowest};
}

unsigned count_threads_with(const Scheduling& wanted) {
  unsigned count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (scheduling_of(std::stoi(task.path().filename())) == wanted) ++count;
  }
  return count;
}

/// How often they have left their CPU to others of their own accord.
std::uint64_t count_rests_of_threads_with(const Scheduling& wanted) {
  std::uint64_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (scheduling_of(std::stoi(task.path().filename())) != wanted) continue;
    std::ifstream status(task.path() / "status");
    std::string word;
    while (status >> word && word != "voluntary_ctxt_switches:") continue;
    std::uint64_t rests = 0;
    if (status >> rests) count += rests;
  }
  return count;
}

/// Once it is so: threads that have been joined may still be there.
void expect_threads(unsigned expected, const Scheduling& wanted, const char* which) {
  const std::int64_t until_ns = now_ns() + patience_ns;
  while (count_threads_with(wanted) != expected && now_ns() < until_ns) sleep_ms(1);
  EXPECT_EQ(expected, count_threads_with(wanted)) << which;
}

/// Whether the calling thread may have it.
bool is_allowed() {
  bool allowed = false;
  std::thread([&] {
    const Scheduling wanted = fifo(1);
    sched_param priority{};
    priority.sched_priority = wanted.priority;
    allowed = pthread_setschedparam(pthread_self(), wanted.policy, &priority) == 0;
  }).join();
  return allowed;
}

class Realtime : public testing::Test {
 protected:
  void SetUp() override {
    if (!is_allowed()) GTEST_SKIP() << "SCHED_FIFO is not allowed here";
  }
  std::unique_ptr<AnyLock> make(const char* kind = "rcl") const {
    return make_lock({.kind = kind, .station = station_});
  }
  /// Everybody on one CPU, the server too.
  template <class Body>
  void on_one_cpu(Body body) {
    std::thread([&] {
      const unsigned cpu = allowed_cpus().front();
      bind_to_cpu(cpu);
      station_->start({.cpus = {cpu}, .realtime = true});
      body();
      station_->stop();
    }).join();
  }

  HangGuard guard_{60};
  std::shared_ptr<Station> station_ = std::make_shared<Station>();
};

TEST_F(Realtime, AllThreadsOfTheServerHaveIt) {
  station_->start({.realtime = true});
  const auto slow = make();
  const auto quick = make();
  const Scheduling own = scheduling_of(0);
  Scheduling servers{};
  auto section = [&] { servers = scheduling_of(0); };
  quick->execute(section_of(section));
  EXPECT_EQ(fifo(0), servers);
  EXPECT_EQ(own, scheduling_of(0));
  expect_threads(1, fifo(1), "its watchdog");
  const std::string text = station_->describe();
  EXPECT_NE(std::string::npos, text.find("; SCHED_FIFO")) << text;
  EXPECT_EQ(std::string::npos, text.find("refused")) << text;
  BlockedSection blocked(*slow);
  servers = {};
  quick->execute(section_of(section));
  EXPECT_EQ(fifo(0), servers) << "the spare";
  blocked.end();
  expect_threads(2, fifo(0), "who comes back has it again");
}

TEST_F(Realtime, ASectionThatTakesLongKeepsTheCpuFromNobody) {
  std::uint64_t count = 0;
  on_one_cpu([&] {
    const auto slow = make();
    const auto quick = make();
    std::atomic<bool> inside{false};
    std::atomic<bool> go_on{false};
    std::thread client([&] {
      auto spins = [&] {
        inside = true;
        while (!go_on) relax();
      };
      slow->execute(section_of(spins));
    });
    while (!inside) sleep_ms(1);
    auto increment = [&] { ++count; };
    for (int i = 0; i < 100; ++i) quick->execute(section_of(increment));
    EXPECT_GE(station_->counters().by_watchdog, 1U);
    go_on = true;
    client.join();
    expect_threads(2, fifo(0), "who comes back has it again");
  });
  EXPECT_EQ(100U, count);
}

// Where all wait for a section that is executed on the server's CPU, but not by the server, looking
// for what to do would keep that CPU from it, but for the twentieth that the kernel saves for all.
TEST_F(Realtime, WhoHasTheLockThatTheServerAwaitsGoesOn) {
  constexpr std::uint64_t enough = 20;
  const auto lock = make("auto");
  std::uint64_t rests = 0;
  unsigned executed = 0;
  auto increment = [&] { ++executed; };
  on_one_cpu([&] {
    auto works = [&] {
      std::thread([&] { lock->post(section_of(increment)); }).join();
      const std::uint64_t before = count_rests_of_threads_with(fifo(0));
      const std::int64_t until_ns = now_ns() + patience_ns;
      while (rests < enough && now_ns() < until_ns) {
        rests = count_rests_of_threads_with(fifo(0)) - before;
      }
    };
    lock->execute(section_of(works));
    EXPECT_EQ(1U, lock->counters().inlined) << "not by the server";
  });
  EXPECT_GE(rests, enough) << "the server keeps its CPU while it has nothing to do";
  EXPECT_EQ(1U, executed);
}

/// The calling thread, and those that it makes, may not have it.
void give_up_realtime() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  ASSERT_EQ(0, syscall(SYS_capget, &header, data));
  data[CAP_TO_INDEX(CAP_SYS_NICE)].effective &= ~CAP_TO_MASK(CAP_SYS_NICE);
  data[CAP_TO_INDEX(CAP_SYS_NICE)].permitted &= ~CAP_TO_MASK(CAP_SYS_NICE);
  ASSERT_EQ(0, syscall(SYS_capset, &header, data));
  ASSERT_FALSE(is_allowed());
}

TEST(RealtimeRefused, IsToldAndItServesAllTheSame) {
  const HangGuard guard(60);
  rlimit before{};
  ASSERT_EQ(0, getrlimit(RLIMIT_RTPRIO, &before));
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(0, setrlimit(RLIMIT_RTPRIO, &none));
  std::thread([] {
    ASSERT_NO_FATAL_FAILURE(give_up_realtime());
    const auto station = std::make_shared<Station>();
    station->start({.realtime = true});
    const std::string text = station->describe();
    EXPECT_NE(std::string::npos, text.find("; SCHED_FIFO refused by the system")) << text;
    const auto slow = make_lock({.kind = "rcl", .station = station});
    const auto quick = make_lock({.kind = "rcl", .station = station});
    BlockedSection blocked(*slow);
    std::uint64_t count = 0;
    Scheduling servers{};
    auto section = [&] {
      ++count;
      servers = scheduling_of(0);
    };
    for (int i = 0; i < 100; ++i) quick->execute(section_of(section));
    EXPECT_EQ(100U, count);
    EXPECT_EQ(scheduling_of(0), servers);
    expect_threads(0, fifo(0), "its servicing threads");
    expect_threads(0, fifo(1), "its watchdog");
  }).join();
  EXPECT_EQ(0, setrlimit(RLIMIT_RTPRIO, &before));
}

}  // namespace
}  // namespace muster::test
