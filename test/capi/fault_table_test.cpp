// SPDX-License-Identifier: BSD-3-Clause
// The table of faults (doc/faults.md), those of its rows in which time is measured or every step
// is taken: nothing else runs beside them. See also faults_test.cpp and, for creation and
// attachment, fault_creation_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include "every.hpp"
#include "fault_rounds.hpp"
#include "stepped.hpp"

namespace muster::test {
namespace {

using std::chrono::steady_clock;
using testing::HasSubstr;

double ms_between(steady_clock::time_point from, steady_clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

/// Memory that all participants of a barrier share, and a test can look at.
struct Visible {
  explicit Visible(const muster_options& options) : memory(size_of(options)) {}
  static std::size_t size_of(const muster_options& options) {
    std::size_t bytes = 0;
    if (muster_barrier_memory(&options, &bytes, nullptr) != MUSTER_OK) std::abort();
    return bytes;
  }
  std::span<const std::byte> bytes() const { return {memory.data(), memory.size()}; }
  /// Until nothing has changed for two milliseconds: all who can have arrived.
  void wait_until_quiet() const {
    for (int same = 0; same < 2;) {
      const std::vector<std::byte> before(bytes().begin(), bytes().end());
      usleep(1000);
      same = std::equal(before.begin(), before.end(), bytes().begin()) ? same + 1 : 0;
    }
  }
  SharedMemory memory;
};

/// Of every death, those that are tried again too.
struct Silences {
  void add(double silence_ms) {
    ++deaths;
    late += silence_ms < limit_ms ? 0 : 1;
    longest_ms = std::max(longest_ms, silence_ms);
  }
  void print(const char* of) const {
    std::printf("%s: %u deaths, the longest wait %.1f ms; %u took %.0f ms or more\n", of, deaths,
                longest_ms, late, limit_ms);
  }

  static constexpr double limit_ms = 100;
  unsigned deaths = 0;
  unsigned late = 0;
  double longest_ms = 0;
};

class DeathInside : public testing::TestWithParam<std::string> {
 protected:
  static void TearDownTestSuite() { of_all.print("all algorithms"); }
  static inline Silences of_all;
};

struct Death {
  bool inside = false;    ///< else it had left before
  double silence_ms = 0;  ///< until the last of the others was told
};

/// Kills `victim` after the `step`-th change that is made to the barrier while it waits once, all
/// others being there already.
Death kill_at_step(const std::string& name, unsigned victim, const char* wait, unsigned step) {
  constexpr unsigned participants = 4;
  muster_options options = shared_options(participants, name.c_str(), wait);
  const Visible visible(options);
  options.memory = visible.memory.data();
  options.memory_bytes = visible.memory.size();
  const CapiSubject barrier(options);
  Stepped process([&] {
    if (muster_barrier_wait(barrier.handle(), victim) != MUSTER_OK) _exit(1);
    Stepped::mark();
    muster_barrier_wait(barrier.handle(), victim);
    Stepped::mark();
  });
  steady_clock::time_point told[participants];
  int statuses[participants] = {};
  std::string texts[participants];
  std::vector<std::thread> others;
  for (unsigned rank = 0; rank < participants; ++rank) {
    if (rank == victim) continue;
    others.emplace_back([&, rank] {
      while (statuses[rank] == MUSTER_OK) {
        statuses[rank] = muster_barrier_wait(barrier.handle(), rank);
      }
      told[rank] = steady_clock::now();
      texts[rank] = muster_last_error();
    });
  }
  EXPECT_TRUE(process.run_to_mark());
  visible.wait_until_quiet();
  Death death;
  death.inside = process.step(visible.bytes(), step);
  const steady_clock::time_point died = steady_clock::now();
  process.kill();
  for (std::thread& other : others) other.join();
  for (unsigned rank = 0; rank < participants; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(statuses[rank], MUSTER_EPEER)
        << name << ", rank " << victim << " dead at step " << step << ": rank " << rank << " got "
        << muster_strerror(statuses[rank]);
    EXPECT_THAT(texts[rank], HasSubstr("rank " + std::to_string(victim)));
    death.silence_ms = std::max(death.silence_ms, ms_between(died, told[rank]));
  }
  unsigned blamed = 99;
  EXPECT_EQ(muster_barrier_blame(barrier.handle(), &blamed), MUSTER_EPEER);
  EXPECT_EQ(blamed, victim);
  return death;
}

// "Step": each change of the shared memory, as the process runs instruction by instruction. A death
// of which somebody hears late is tried again: the others may have had no CPU meanwhile. Whoever
// never looks hears late each time.
TEST_P(DeathInside, AtEveryStepAllOthersAreToldWithinATenthOfASecond) {
  if (!Stepped::possible()) GTEST_SKIP() << "no ptrace here";
  const HangGuard guard(300);
  Silences silences;
  for (unsigned round = 0; round < fault_rounds() && !HasFailure(); ++round) {
    const unsigned victim = round % 4;
    unsigned step = 0;
    for (bool inside = true; inside; ++step) {
      ASSERT_LT(step, 100U) << "it never leaves";
      Death death;
      EXPECT_TRUE(in_a_quiet_moment([&] {
        death = kill_at_step(GetParam(), victim, policy(round), step);
        silences.add(death.silence_ms);
        of_all.add(death.silence_ms);
        return reduced || death.silence_ms < Silences::limit_ms;
      })) << "rank "
          << victim << " dead at step " << step;
      inside = death.inside;
    }
    EXPECT_GT(step, 3U) << "in, at least one arrival, and out";
  }
  silences.print(GetParam().c_str());
}

INSTANTIATE_TEST_SUITE_P(All, DeathInside, testing::ValuesIn(all_names()), identifier);

TEST(Row, AStoppedParticipantIsNotDeadAndTimedWaitsEnd) {
  const HangGuard guard(120);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const CapiSubject barrier(shared_options(3, algorithm(round), policy(round)));
    Shared<std::atomic<bool>> met;
    Child stopped([&] {
      if (muster_barrier_wait(barrier.handle(), 2) != MUSTER_OK) _exit(1);
      met->store(true);
      raise(SIGSTOP);
      if (muster_barrier_wait(barrier.handle(), 2) != MUSTER_EBROKEN) _exit(2);
      if (std::string(muster_last_error()).find("gave up waiting") == std::string::npos) _exit(3);
    });
    // One has a longer deadline than the other, which it is told of.
    EXPECT_EQ(run_processes(2,
                            [&](unsigned rank) {
                              muster_barrier* const mine = barrier.handle();
                              if (muster_barrier_wait(mine, rank) != MUSTER_OK) _exit(1);
                              while (!met->load()) sched_yield();
                              const bool first = rank == round % 2;
                              const int status = muster_barrier_timedwait(
                                  mine, rank, first ? 30 * ms : patience_ns);
                              _exit(status == (first ? MUSTER_ETIMEDOUT : MUSTER_EBROKEN) ? 0 : 2);
                            }),
              "")
        << algorithm(round);
    EXPECT_EQ(muster_barrier_blame(barrier.handle(), nullptr), MUSTER_ETIMEDOUT);
    kill(stopped.pid(), SIGCONT);
    EXPECT_EQ(stopped.wait(), "") << algorithm(round);
  }
}

TEST(Row, StormsOfSignalsEndNoWait) {
  const HangGuard guard(120);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const CapiSubject barrier(shared_options(4, algorithm(round), policy(round)));
    Shared<std::atomic<unsigned>> arrivals;
    EXPECT_EQ(run_processes(4,
                            [&](unsigned rank) {
                              static std::atomic<int> signals{0};
                              struct sigaction action {};
                              action.sa_handler = [](int) { signals.fetch_add(1); };
                              action.sa_flags = rank % 2 == 0 ? SA_RESTART : 0;
                              sigaction(SIGALRM, &action, nullptr);
                              const itimerval storm{{0, 200}, {0, 200}};
                              setitimer(ITIMER_REAL, &storm, nullptr);
                              for (unsigned i = 1; i <= 100; ++i) {
                                arrivals->fetch_add(1);
                                const int status =
                                    muster_barrier_timedwait(barrier.handle(), rank, patience_ns);
                                if (status != MUSTER_OK) _exit(10 + status);
                                if (arrivals->load() < 4 * i) _exit(9);  // it ended too early
                              }
                              while (signals < 10) pause();
                            }),
              "")
        << algorithm(round);
  }
}

// A wait is no cancellation point, not even when it looks after other processes.
TEST(Row, ACancelledThreadFinishesItsWait) {
  const HangGuard guard(120);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const CapiSubject barrier(shared_options(3, algorithm(round), policy(round)));
    Shared<std::atomic<bool>> cancelled;
    Child late([&] {
      if (muster_barrier_wait(barrier.handle(), 2) != MUSTER_OK) _exit(1);
      while (!cancelled->load()) usleep(1000);
      usleep(30'000);  // so that the others look after each other
      if (muster_barrier_wait(barrier.handle(), 2) != MUSTER_OK) _exit(2);
    });
    struct Thread {
      muster_barrier* barrier;
      unsigned rank;
      std::atomic<int> status{-1};
      std::atomic<bool> inside{false};
    };
    Thread threads[2] = {{barrier.handle(), 0}, {barrier.handle(), 1}};
    pthread_t ids[2];
    for (int i = 0; i < 2; ++i) {
      const auto run = [](void* argument) -> void* {
        auto& self = *static_cast<Thread*>(argument);
        muster_barrier_wait(self.barrier, self.rank);
        self.inside = true;
        self.status = muster_barrier_wait(self.barrier, self.rank);
        pthread_testcancel();
        return nullptr;
      };
      ASSERT_EQ(pthread_create(&ids[i], nullptr, run, &threads[i]), 0);
    }
    for (int i = 0; i < 2; ++i) {
      while (!threads[i].inside) std::this_thread::yield();
      usleep(1000);
      EXPECT_EQ(pthread_cancel(ids[i]), 0);
    }
    cancelled->store(true);
    for (int i = 0; i < 2; ++i) {
      void* result = nullptr;
      pthread_join(ids[i], &result);
      EXPECT_EQ(result, PTHREAD_CANCELED);
      EXPECT_EQ(threads[i].status.load(), MUSTER_OK) << algorithm(round);
    }
    EXPECT_EQ(late.wait(), "");
  }
}

// Nor where it reads the machine, to follow.
TEST(Row, ACancelledThreadFinishesItsFirstWait) {
  const HangGuard guard(120);
  const CapiSubject barrier(shared_options(2, "following", "auto"));
  std::atomic<int> status{-1};
  std::thread other([&] { muster_barrier_wait(barrier.handle(), 1); });
  std::thread cancelled([&] {
    pthread_cancel(pthread_self());
    status = muster_barrier_wait(barrier.handle(), 0);
    pthread_testcancel();
  });
  cancelled.join();
  other.join();
  EXPECT_EQ(status, MUSTER_OK);
}

/// A process that its parent's death does not end, and what it says.
struct Orphan {
  std::atomic<int> pid;
  std::atomic<int> status;         ///< + 1
  std::atomic<bool> knows_parent;  ///< all have met: before, nobody knows who is missing
};

TEST(Row, AParentsDeathIsAParticipantsAndNoMore) {
  const HangGuard guard(120);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const bool takes_part = round % 2 == 0;
    constexpr int episodes = 200;  // of those whom its death does not concern
    const CapiSubject barrier(shared_options(takes_part ? 3 : 2, algorithm(round), policy(round)));
    Shared<Orphan> orphan;
    Child parent([&] {
      Child child([&] {
        prctl(PR_SET_PDEATHSIG, 0);
        orphan->pid = getpid();
        int status = MUSTER_OK;
        for (int i = 0; (takes_part || i < episodes) && status == MUSTER_OK; ++i) {
          status = muster_barrier_wait(barrier.handle(), 1);
          if (!takes_part) usleep(200);
        }
        orphan->status = status + 1;
      });
      while (takes_part && muster_barrier_wait(barrier.handle(), 2) == MUSTER_OK) {
        orphan->knows_parent = true;
        usleep(100);
      }
      pause();
    });
    while (orphan->pid == 0) std::this_thread::yield();
    std::thread killer([&] {
      while (takes_part && !orphan->knows_parent) std::this_thread::yield();
      usleep(5'000);
      parent.kill();
    });
    int status = MUSTER_OK;
    for (int i = 0; (takes_part || i < episodes) && status == MUSTER_OK; ++i) {
      status = muster_barrier_wait(barrier.handle(), 0);
    }
    killer.join();
    EXPECT_EQ(status, takes_part ? MUSTER_EPEER : MUSTER_OK) << algorithm(round);
    while (orphan->status == 0) std::this_thread::yield();
    EXPECT_EQ(orphan->status - 1, status) << algorithm(round);
  }
}

// Each process has its own mapping, and waits for those inside before memory goes.
TEST(Row, WhoUnmapsEarlyDisturbsNobodyInsideAndIsMissedAfterwards) {
  const HangGuard guard(120);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const unsigned creator = round % 3;  // the rank of the process that owns the block
    auto barrier =
        std::make_unique<CapiSubject>(shared_options(3, algorithm(round), policy(round)));
    const int fd = muster_barrier_fd(barrier->handle());
    const auto attached = [&](unsigned rank) {
      return std::make_unique<Child>([&, rank] {
        muster_barrier* mine = nullptr;
        if (muster_barrier_attach(&mine, fd) != MUSTER_OK) _exit(1);
        for (int i = 0; i < 50; ++i) {
          if (muster_barrier_wait(mine, rank) != MUSTER_OK) _exit(2);
        }
        const bool leaves = rank == (creator + 1) % 3;
        if (!leaves && muster_barrier_wait(mine, rank) != MUSTER_EPEER) _exit(3);
        muster_barrier_destroy(mine);
        if (leaves) pause();  // alive, but it has unmapped the barrier
      });
    };
    const auto leaves = attached((creator + 1) % 3);
    const auto stays = attached((creator + 2) % 3);
    for (int i = 0; i < 50; ++i) {
      ASSERT_EQ(muster_barrier_wait(barrier->handle(), creator), MUSTER_OK)
          << algorithm(round) << ": " << muster_last_error();
    }
    if (round % 2 == 0) {  // the creator goes too
      barrier.reset();
    } else {
      EXPECT_EQ(muster_barrier_wait(barrier->handle(), creator), MUSTER_EPEER) << algorithm(round);
    }
    EXPECT_EQ(stays->wait(), "") << algorithm(round);
    EXPECT_FALSE(leaves->ended());
  }
}

}  // namespace
}  // namespace muster::test
