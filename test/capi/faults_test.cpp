// SPDX-License-Identifier: BSD-3-Clause
// What can go wrong while processes wait: dead ones, forks, the same rank twice. Threads: see
// timed_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "capi_subject.hpp"

namespace muster::test {
namespace {

using std::chrono::steady_clock;
using testing::HasSubstr;

std::int64_t ms_since(steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - start).count();
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const char* const* name = muster_barrier_names(); *name != nullptr; ++name) {
    names.emplace_back(*name);
  }
  return names;
}

TEST(SameRank, InTwoProcessesIsBusy) {
  const HangGuard guard(60);
  muster_options options = options_for(1);
  options.flags = MUSTER_SHARED;
  const CapiSubject barrier(options);
  ASSERT_EQ(muster_barrier_wait(barrier.handle(), 0), MUSTER_OK);
  Child attached([&] {
    muster_barrier* mine = nullptr;
    if (muster_barrier_attach(&mine, muster_barrier_fd(barrier.handle())) != MUSTER_OK) _exit(1);
    if (muster_barrier_wait(mine, 0) != MUSTER_EBUSY) _exit(2);
    muster_barrier_destroy(mine);
  });
  EXPECT_EQ(attached.wait(), "");
  Child forked([&] {  // its parent's ticket is not its own
    if (muster_barrier_wait(barrier.handle(), 0) != MUSTER_EBUSY) _exit(3);
    muster_barrier_destroy(barrier.handle());
  });
  EXPECT_EQ(forked.wait(), "");
  EXPECT_EQ(muster_barrier_wait(barrier.handle(), 0), MUSTER_OK);
}

TEST(Fork, LeavesAnUnsharedBarrierToTheParent) {
  const HangGuard guard(60);
  const CapiSubject barrier(options_for(2));
  run_threads(
      2, [&](unsigned rank) { EXPECT_EQ(muster_barrier_wait(barrier.handle(), rank), MUSTER_OK); });
  Child child([&] {
    if (muster_barrier_wait(barrier.handle(), 0) != MUSTER_EBUSY) _exit(1);
    if (std::string(muster_last_error()).find("MUSTER_SHARED") == std::string::npos) _exit(2);
    muster_barrier_destroy(barrier.handle());
  });
  EXPECT_EQ(child.wait(), "");
  run_threads(
      2, [&](unsigned rank) { EXPECT_EQ(muster_barrier_wait(barrier.handle(), rank), MUSTER_OK); });
}

TEST(Fork, OfAForksChildSharesABarrierToo) {
  const HangGuard guard(60);
  muster_options options = options_for(3);
  options.flags = MUSTER_SHARED;
  const CapiSubject barrier(options);
  const auto ten = [&](unsigned rank) {
    for (int i = 0; i < 10; ++i) {
      if (muster_barrier_timedwait(barrier.handle(), rank, patience_ns) != MUSTER_OK) _exit(8);
    }
  };
  Child child([&] {
    Child grandchild([&] { ten(2); });
    ten(1);
    if (!grandchild.wait().empty()) _exit(9);
    muster_barrier_destroy(barrier.handle());
  });
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(muster_barrier_timedwait(barrier.handle(), 0, patience_ns), MUSTER_OK);
  }
  EXPECT_EQ(child.wait(), "");
}

class Death : public testing::TestWithParam<std::tuple<std::string, const char*>> {};

/// Participants 0 and 1 wait in this process's threads; 2 in a child that dies.
TEST_P(Death, IsNoticedAndNamesTheRank) {
  const HangGuard guard(60);
  const auto& [name, wait] = GetParam();
  for (const bool inside : {false, true}) {
    muster_options options = options_for(inside ? 4 : 3, name.c_str());
    options.flags = MUSTER_SHARED;
    options.wait = wait;
    const CapiSubject barrier(options);
    // Inside: rank 3 never comes, so rank 2 is killed in its wait; else after its second episode.
    Child child([&] {
      while (muster_barrier_wait(barrier.handle(), 2) == MUSTER_OK) {
        static int episodes = 0;
        if (++episodes == 2) _exit(0);
      }
    });
    std::unique_ptr<Child> absent;
    if (inside) {
      absent = std::make_unique<Child>([&] {
        muster_barrier_wait(barrier.handle(), 3);
        pause();
      });
    }
    std::atomic<std::int64_t> died_at_ms{0};
    const auto start = steady_clock::now();
    std::int64_t told_after[2] = {};
    run_threads(inside ? 3 : 2, [&](unsigned rank) {
      if (rank == 2) {  // not a participant here: the killer
        usleep(60'000);
        died_at_ms = ms_since(start);
        return child.kill();
      }
      int status = MUSTER_OK;
      while (status == MUSTER_OK) status = muster_barrier_wait(barrier.handle(), rank);
      told_after[rank] = ms_since(start);
      EXPECT_EQ(status, MUSTER_EPEER) << muster_strerror(status);
      EXPECT_THAT(muster_last_error(), HasSubstr("rank 2"));
    });
    unsigned rank = 0;
    EXPECT_EQ(muster_barrier_blame(barrier.handle(), &rank), MUSTER_EPEER);
    EXPECT_EQ(rank, 2U);
    if (!inside) {
      child.wait();
      continue;
    }
    EXPECT_THAT(child.wait(), HasSubstr("KILL"));
    for (const std::int64_t told : told_after) {
      EXPECT_LT(told - died_at_ms, reduced ? 1000 : 250) << "ms";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Death,
                         testing::Combine(testing::ValuesIn(all_names()),
                                          testing::Values("auto", "sleep", "spin")));

TEST(Death, IsNoticedWithinATenthOfASecond) {
  const HangGuard guard(60);
  std::vector<std::int64_t> delays;
  for (int round = 0; round < 9; ++round) {
    muster_options options = options_for(2);
    options.flags = MUSTER_SHARED;
    const CapiSubject barrier(options);
    Shared<std::atomic<bool>> waiting;
    Child child([&] {
      muster_barrier_wait(barrier.handle(), 1);
      waiting->store(true);
      pause();
    });
    ASSERT_EQ(muster_barrier_wait(barrier.handle(), 0), MUSTER_OK);
    while (!waiting->load()) std::this_thread::yield();
    steady_clock::time_point died;
    std::thread killer([&] {
      usleep(10'000);
      died = steady_clock::now();
      child.kill();
    });
    EXPECT_EQ(muster_barrier_wait(barrier.handle(), 0), MUSTER_EPEER);
    const steady_clock::time_point told = steady_clock::now();
    killer.join();
    delays.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(told - died).count());
  }
  std::sort(delays.begin(), delays.end());  // the median: other tests run at the same time
  EXPECT_LT(delays[delays.size() / 2], 100);
}

TEST(NormalExit, OfOneThatHasLeftIsNoDeath) {
  const HangGuard guard(60);
  for (const std::string& name : all_names()) {
    muster_options options = options_for(3, name.c_str());
    options.flags = MUSTER_SHARED;
    const CapiSubject barrier(options);
    // Each in turn is the first to leave the last episode and to end, long before the others wake.
    EXPECT_EQ(run_processes(3,
                            [&](unsigned rank) {
                              for (int i = 0; i < 20; ++i) {
                                const int status = muster_barrier_wait(barrier.handle(), rank);
                                if (status == MUSTER_OK) continue;
                                throw std::runtime_error(muster_last_error());
                              }
                            }),
              "")
        << name;
    EXPECT_EQ(muster_barrier_blame(barrier.handle(), nullptr), MUSTER_OK) << name;
  }
}

TEST(NormalExit, WhileOthersAreStillInsideIsNoDeath) {
  const HangGuard guard(60);
  muster_options options = options_for(2);
  options.flags = MUSTER_SHARED;
  options.wait = "spin";
  const CapiSubject barrier(options);
  Child stopped([&] { _exit(muster_barrier_wait(barrier.handle(), 1)); });
  usleep(30'000);
  kill(stopped.pid(), SIGSTOP);  // inside, and not looking
  Child other([&] { _exit(muster_barrier_wait(barrier.handle(), 0)); });
  EXPECT_EQ(other.wait(), "");
  usleep(50'000);
  kill(stopped.pid(), SIGCONT);
  EXPECT_EQ(stopped.wait(), "");
}

TEST(Watchdog, NamesTheMissingRank) {
  const HangGuard guard(60);
  const int output = memfd_create("output", 0);
  Child child([&] {  // the variable is read once: it takes a fresh program
    dup2(output, STDERR_FILENO);
    setenv("MUSTER_WATCHDOG", "0.05", 1);
    execl(MUSTER_TEST_LATE, MUSTER_TEST_LATE, nullptr);
    _exit(1);
  });
  EXPECT_EQ(child.wait(), "");
  std::string text(4000, '\0');
  const ssize_t got = pread(output, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  close(output);
  EXPECT_THAT(text, HasSubstr("muster: rank 0 has waited"));
  EXPECT_THAT(text, testing::ContainsRegex("missing: 2 \\(pid [0-9]+\\)\n"));
}

}  // namespace
}  // namespace muster::test
