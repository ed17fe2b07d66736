// SPDX-License-Identifier: BSD-3-Clause
// The table of faults (doc/faults.md), those of its rows in which no time is measured: others may
// run beside them. Threads that are late: timed_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <thread>

#include "every.hpp"
#include "fault_rounds.hpp"

namespace muster::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

TEST(SameRank, InTwoProcessesIsBusy) {
  const HangGuard guard(60);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const CapiSubject barrier(shared_options(1, algorithm(round)));
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
}

TEST(Fork, LeavesAnUnsharedBarrierToTheParent) {
  const HangGuard guard(60);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const CapiSubject barrier(options_for(2, algorithm(round)));
    const auto meet = [&] {
      run_threads(2, [&](unsigned rank) {
        EXPECT_EQ(muster_barrier_wait(barrier.handle(), rank), MUSTER_OK);
      });
    };
    meet();
    Child child([&] {
      if (muster_barrier_wait(barrier.handle(), 0) != MUSTER_EBUSY) _exit(1);
      if (std::string(muster_last_error()).find("MUSTER_SHARED") == std::string::npos) _exit(2);
      muster_barrier_destroy(barrier.handle());
    });
    EXPECT_EQ(child.wait(), "");
    meet();
  }
}

TEST(Fork, OfAForksChildSharesABarrierToo) {
  const HangGuard guard(60);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const CapiSubject barrier(shared_options(3, algorithm(round)));
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
}

class Death : public testing::TestWithParam<std::tuple<std::string, const char*>> {
 protected:
  // The row's rounds are shared out over the instances, each of which has one at least.
  static unsigned rounds_each() { return (fault_rounds() + 19) / 20; }

  /// Participants 0 and 1 wait in this process's threads until they are told of rank 2's death.
  static void expect_told(const CapiSubject& barrier, const std::function<void()>& kill) {
    std::thread killer(kill);
    run_threads(2, [&](unsigned rank) {
      int status = MUSTER_OK;
      while (status == MUSTER_OK) status = muster_barrier_wait(barrier.handle(), rank);
      EXPECT_EQ(status, MUSTER_EPEER) << muster_strerror(status);
      EXPECT_THAT(muster_last_error(), HasSubstr("rank 2"));
    });
    killer.join();
    unsigned rank = 0;
    EXPECT_EQ(muster_barrier_blame(barrier.handle(), &rank), MUSTER_EPEER);
    EXPECT_EQ(rank, 2U);
  }
};

TEST_P(Death, OutsideAWaitIsToldToWhoeverWaits) {
  const HangGuard guard(60);
  const auto& [name, wait] = GetParam();
  for (unsigned round = 0; round < rounds_each(); ++round) {
    const bool killed = (round + std::strlen(wait)) % 2 == 0;  // else it ends by itself
    const CapiSubject barrier(shared_options(3, name.c_str(), wait));
    Child child([&] {
      for (int i = 0; i < 2; ++i) {
        if (muster_barrier_wait(barrier.handle(), 2) != MUSTER_OK) _exit(1);
      }
      if (killed) raise(SIGKILL);
    });
    expect_told(barrier, [] {});
    const std::string end = child.wait();
    EXPECT_EQ(end.empty(), !killed) << end;
    EXPECT_THAT(end, HasSubstr(killed ? "KILL" : ""));
  }
}

// Asleep, too: rank 3 does not come.
TEST_P(Death, InAWaitIsToldToTheOthers) {
  const HangGuard guard(60);
  const auto& [name, wait] = GetParam();
  for (unsigned round = 0; round < rounds_each(); ++round) {
    const CapiSubject barrier(shared_options(4, name.c_str(), wait));
    Shared<std::atomic<bool>> inside;
    Child child([&] {
      if (muster_barrier_wait(barrier.handle(), 2) != MUSTER_OK) _exit(1);
      inside->store(true);
      muster_barrier_wait(barrier.handle(), 2);
    });
    Child absent([&] {
      if (muster_barrier_wait(barrier.handle(), 3) != MUSTER_OK) _exit(1);
      pause();
    });
    expect_told(barrier, [&] {
      while (!inside->load()) usleep(1'000);
      usleep(10'000);
      child.kill();
    });
    EXPECT_THAT(child.wait(), HasSubstr("KILL"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Death,
                         testing::Combine(testing::ValuesIn(all_names()),
                                          testing::Values("auto", "sleep", "spin")));

// Whoever waits looks up those behind it, up to others that wait. Here these are stopped.
TEST(StoppedRanks, HideNoDeath) {
  const HangGuard guard(60);
  constexpr unsigned dead = 12;
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const CapiSubject barrier(shared_options(dead + 1, algorithm(round), policy(round)));
    std::vector<std::unique_ptr<Child>> others;
    Shared<std::atomic<unsigned>> inside;
    for (unsigned rank = 1; rank < dead; ++rank) {
      others.push_back(std::make_unique<Child>([&, rank] {
        if (muster_barrier_wait(barrier.handle(), rank) != MUSTER_OK) _exit(1);
        inside->fetch_add(1);
        muster_barrier_wait(barrier.handle(), rank);
      }));
    }
    Child child([&] { _exit(muster_barrier_wait(barrier.handle(), dead) == MUSTER_OK ? 0 : 1); });
    ASSERT_EQ(muster_barrier_wait(barrier.handle(), 0), MUSTER_OK);
    while (inside->load() < dead - 1) usleep(1'000);
    usleep(10'000);
    for (const auto& other : others) kill(other->pid(), SIGSTOP);
    int status = MUSTER_OK;
    while (status == MUSTER_OK) status = muster_barrier_wait(barrier.handle(), 0);
    EXPECT_EQ(status, MUSTER_EPEER) << algorithm(round);
    EXPECT_THAT(muster_last_error(), HasSubstr("rank 12"));
    for (const auto& other : others) other->kill();
    EXPECT_EQ(child.wait(), "");
  }
}

TEST(NormalExit, OfOneThatHasLeftIsNoDeath) {
  const HangGuard guard(60);
  for (unsigned round = 0; round < std::max<std::size_t>(fault_rounds(), all_names().size());
       ++round) {
    const CapiSubject barrier(shared_options(3, algorithm(round)));
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
        << algorithm(round);
    EXPECT_EQ(muster_barrier_blame(barrier.handle(), nullptr), MUSTER_OK) << algorithm(round);
  }
}

TEST(NormalExit, WhileOthersAreStillInsideIsNoDeath) {
  const HangGuard guard(60);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const CapiSubject barrier(shared_options(2, algorithm(round), "spin"));
    Child stopped([&] { _exit(muster_barrier_wait(barrier.handle(), 1)); });
    usleep(10'000);
    kill(stopped.pid(), SIGSTOP);  // inside, and not looking
    Child other([&] { _exit(muster_barrier_wait(barrier.handle(), 0)); });
    usleep(30'000);
    kill(stopped.pid(), SIGCONT);
    EXPECT_EQ(other.wait(), "") << algorithm(round);
    EXPECT_EQ(stopped.wait(), "") << algorithm(round);
  }
}

// Of four processes one has a deadline, and one does not come in time.
TEST(Timeout, InAProcessBreaksTheBarrierForAllProcesses) {
  const HangGuard guard(60);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const CapiSubject barrier(shared_options(4, algorithm(round), policy(round)));
    const unsigned impatient = round % 3;
    Shared<std::atomic<unsigned>> told;
    Child late([&] {
      if (muster_barrier_wait(barrier.handle(), 3) != MUSTER_OK) _exit(1);
      while (told->load() < 3) usleep(1'000);
      if (muster_barrier_wait(barrier.handle(), 3) != MUSTER_EBROKEN) _exit(2);
      if (muster_barrier_timedwait(barrier.handle(), 3, ms) != MUSTER_EBROKEN) _exit(3);
    });
    const std::string by = "rank " + std::to_string(impatient) + " gave up waiting";
    const std::string late_one = " 3 did not arrive in time";
    EXPECT_EQ(run_processes(3,
                            [&](unsigned rank) {
                              muster_barrier* const mine = barrier.handle();
                              if (muster_barrier_wait(mine, rank) != MUSTER_OK) _exit(1);
                              const bool hurries = rank == impatient;
                              const int status = hurries
                                                     ? muster_barrier_timedwait(mine, rank, 15 * ms)
                                                     : muster_barrier_wait(mine, rank);
                              const std::string text = muster_last_error();
                              told->fetch_add(1);
                              if (status != (hurries ? MUSTER_ETIMEDOUT : MUSTER_EBROKEN)) _exit(2);
                              const std::string& said = hurries ? late_one : by;
                              if (text.find(said) == std::string::npos) _exit(3);
                              if (muster_barrier_wait(mine, rank) != MUSTER_EBROKEN) _exit(4);
                            }),
              "")
        << algorithm(round);
    EXPECT_EQ(late.wait(), "") << algorithm(round);
    unsigned rank = 99;
    EXPECT_EQ(muster_barrier_blame(barrier.handle(), &rank), MUSTER_ETIMEDOUT);
    EXPECT_EQ(rank, impatient);
  }
}

// Its pid means another process, or none, to the others: nobody may take it for dead.
TEST(PidNamespace, OfAParticipantIsNotLookedInto) {
  const HangGuard guard(60);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const CapiSubject barrier(shared_options(2, algorithm(round), policy(round)));
    const int fd = muster_barrier_fd(barrier.handle());
    constexpr int not_allowed = 77;
    // Once both are known, each comes late once, and the other one looks after the dead meanwhile.
    const auto meet = [](muster_barrier* mine, unsigned rank) {
      for (unsigned episode = 0; episode < 3; ++episode) {
        if (episode == rank + 1) usleep(45'000);
        if (muster_barrier_timedwait(mine, rank, patience_ns) != MUSTER_OK) {
          throw std::runtime_error(muster_last_error());
        }
      }
    };
    Child child([&] {
      const bool alone =
          unshare(CLONE_NEWPID) == 0 || (unshare(CLONE_NEWUSER) == 0 && unshare(CLONE_NEWPID) == 0);
      if (!alone) _exit(not_allowed);
      const pid_t inside = fork();  // pid 1 in there
      if (inside == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        muster_barrier* mine = nullptr;
        if (muster_barrier_attach(&mine, fd) != MUSTER_OK) _exit(1);
        meet(mine, 1);
        muster_barrier_destroy(mine);
        _exit(0);
      }
      int status = -1;
      waitpid(inside, &status, 0);
      _exit(status == 0 ? 0 : 1);
    });
    std::string here;
    std::thread waiter([&] {
      try {
        meet(barrier.handle(), 0);
      } catch (const std::exception& error) {
        here = error.what();
      }
    });
    const std::string end = child.wait();
    if (end.find(std::to_string(not_allowed)) != std::string::npos) {
      muster_barrier_timedwait(barrier.handle(), 1, 0);  // lets the waiter go
      waiter.join();
      GTEST_SKIP() << "no right to make a PID namespace";
    }
    waiter.join();
    EXPECT_EQ(end, "") << algorithm(round);
    EXPECT_EQ(here, "") << algorithm(round);
  }
}

// Whoever created it destroys it as soon as its own wait is over, and makes another in its place.
TEST(Destruction, WhileOtherProcessesAreLeavingWaitsForThem) {
  const HangGuard guard(60);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    muster_segment* segment = nullptr;
    ASSERT_EQ(muster_segment_create(&segment, 64 << 10), MUSTER_OK) << muster_last_error();
    for (unsigned creator = 0; creator < 3; ++creator) {
      muster_options options = shared_options(3, algorithm(round), policy(round));
      options.segment = segment;
      muster_barrier* barrier = nullptr;
      ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK) << muster_last_error();
      const std::uint64_t handle = muster_barrier_handle(barrier);
      std::vector<std::unique_ptr<Child>> others;
      for (unsigned rank = 0; rank < 3; ++rank) {
        if (rank == creator) continue;
        others.push_back(std::make_unique<Child>([segment, handle, rank] {
          muster_segment* theirs = nullptr;
          if (muster_segment_attach(&theirs, muster_segment_fd(segment)) != MUSTER_OK) _exit(1);
          muster_barrier* mine = nullptr;
          if (muster_barrier_attach_at(&mine, theirs, handle) != MUSTER_OK) _exit(2);
          for (int i = 0; i < 3; ++i) {
            if (muster_barrier_timedwait(mine, rank, patience_ns) != MUSTER_OK) _exit(3 + i);
          }
          muster_barrier_destroy(mine);
          muster_segment_destroy(theirs);
        }));
      }
      for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(muster_barrier_wait(barrier, creator), MUSTER_OK) << muster_last_error();
      }
      muster_barrier_destroy(barrier);
      ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK) << muster_last_error();
      EXPECT_EQ(muster_barrier_handle(barrier), handle) << "it is elsewhere: nothing is tried here";
      for (const auto& other : others) EXPECT_EQ(other->wait(), "") << algorithm(round);
      muster_barrier_destroy(barrier);
    }
    muster_segment_destroy(segment);
  }
}

TEST(Destruction, OfOneThatSomebodyWaitsAtInVainTellsHim) {
  const HangGuard guard(60);
  muster_options options = shared_options(2);
  options.flags |= MUSTER_SPLIT;
  muster_barrier* barrier = nullptr;
  ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK);
  std::atomic<bool> inside{false};
  std::thread waiter([&] {
    EXPECT_EQ(muster_barrier_arrive(barrier, 1), MUSTER_OK);
    inside = true;
    EXPECT_EQ(muster_barrier_depart(barrier, 1), MUSTER_EBROKEN);
    EXPECT_THAT(muster_last_error(), HasSubstr("rank 1 had not left"));
  });
  while (!inside) sched_yield();
  muster_barrier_destroy(barrier);
  waiter.join();
}

// As a thread pool's, whose threads are parked there when the program ends.
TEST(Destruction, OfOneProcesssOwnLeavesWhoWaitsInVainThere) {
  const HangGuard guard(60);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    Child child([&] {
      muster_options options = options_for(2, "auto");
      options.wait = policy(round);
      options.flags |= MUSTER_SPLIT;
      muster_barrier* barrier = nullptr;
      if (muster_barrier_create(&barrier, &options) != MUSTER_OK) _exit(1);
      std::atomic<bool> inside{false};
      std::thread([&] {
        muster_barrier_wait(barrier, 1);
        muster_barrier_arrive(barrier, 1);
        inside = true;
        muster_barrier_depart(barrier, 1);
        _exit(2);  // it was told something
      }).detach();
      if (muster_barrier_wait(barrier, 0) != MUSTER_OK) _exit(3);
      while (!inside) sched_yield();
      muster_barrier_destroy(barrier);
      usleep(30'000);
    });
    EXPECT_EQ(child.wait(), "") << policy(round);
  }
}

/// A barrier of four in memory that somebody else writes to as well: ranks 0 and 1 by the handle
/// that made it, 2 and 3 by another one.
class Scribbled {
 public:
  Scribbled(const std::string& algorithm, unsigned seed) : random_(seed) {
    muster_options options =
        shared_options(4, algorithm.c_str(), seed % 3 == 0 ? "sleep" : "yield");
    std::size_t bytes = 0;
    muster_barrier_memory(&options, &bytes, nullptr);
    memory_ = std::make_unique<SharedMemory>(bytes);
    options.memory = memory_->data();
    options.memory_bytes = bytes;
    EXPECT_EQ(muster_barrier_create(&made_, &options), MUSTER_OK) << muster_last_error();
    EXPECT_EQ(muster_barrier_attach_memory(&other_, options.memory, bytes), MUSTER_OK);
  }

  /// All wait, for a time that ends or without a limit. Whoever does not get through says that the
  /// barrier is broken.
  std::vector<std::thread> waiters(bool limited) {
    std::vector<std::thread> threads;
    for (unsigned rank = 0; rank < 4; ++rank) {
      threads.emplace_back([this, rank, limited] {
        muster_barrier* const barrier = rank < 2 ? made_ : other_;
        for (int i = 0; i < 30; ++i) {
          const int status = limited ? muster_barrier_timedwait(barrier, rank, 10 * ms)
                                     : muster_barrier_wait(barrier, rank);
          if (status == MUSTER_OK) continue;
          EXPECT_THAT(muster_last_error(),
                      AnyOf(HasSubstr("broken for all"), HasSubstr("belongs to another process")));
          break;
        }
      });
    }
    return threads;
  }

  /// Anything, anywhere: one word in four, or a few.
  void scribble() {
    const std::size_t words = memory_->size() / sizeof(std::uint32_t);
    auto* const first = reinterpret_cast<std::uint32_t*>(memory_->data());
    const std::size_t step = random_() % 2 == 0 ? 4 : words / 8;
    for (std::size_t at = random_() % step; at < words; at += 1 + random_() % (2 * step)) {
      __atomic_store_n(first + at, static_cast<std::uint32_t>(random_()), __ATOMIC_RELAXED);
    }
  }

  void destroy() {
    muster_barrier_destroy(other_);
    muster_barrier_destroy(made_);
  }

 private:
  std::mt19937 random_;
  std::unique_ptr<SharedMemory> memory_;
  muster_barrier* made_ = nullptr;
  muster_barrier* other_ = nullptr;
};

TEST(Garbage, InTheSharedMemoryHangsNobody) {
  const HangGuard guard(60);
  std::vector<std::thread> algorithms;
  for (const std::string& name : all_names()) {
    algorithms.emplace_back([name] {
      for (unsigned seed = 1; seed <= 24; ++seed) {
        Scribbled barrier(name, seed);
        std::vector<std::thread> waiters = barrier.waiters(seed % 2 == 0);
        for (int i = 0; i < 3; ++i) {
          barrier.scribble();
          if (seed % 4 == 3) usleep(30'000);  // also while all look after each other
        }
        for (std::thread& waiter : waiters) waiter.join();
        barrier.scribble();
        barrier.destroy();
      }
    });
  }
  for (std::thread& algorithm : algorithms) algorithm.join();
}

/// What is written over a rank's process number.
enum class Written { another_number, anothers_word, later };

// Rank 2 dies after its number was overwritten with rank 0's, which lives: as a number alone; as
// rank 0's whole word, which whoever has looked before knows as not rank 2's.
TEST(Garbage, OverAProcesssNumberHidesNoDeath) {
  const HangGuard guard(30);
  for (const Written written : {Written::another_number, Written::later, Written::anothers_word}) {
    muster_options options = shared_options(3, "sense-reversing", "yield");
    std::size_t bytes = 0;
    muster_barrier_memory(&options, &bytes, nullptr);
    const SharedMemory memory(bytes);
    options.memory = memory.data();
    options.memory_bytes = bytes;
    muster_barrier* barrier = nullptr;
    ASSERT_EQ(MUSTER_OK, muster_barrier_create(&barrier, &options)) << muster_last_error();
    const auto attached = [&] {
      muster_barrier* mine = nullptr;
      if (muster_barrier_attach_memory(&mine, memory.data(), bytes) != MUSTER_OK) _exit(2);
      return mine;
    };
    Child rank1([&] {
      muster_barrier* const mine = attached();
      if (muster_barrier_wait(mine, 1) != MUSTER_OK) _exit(3);
      if (muster_barrier_wait(mine, 1) == MUSTER_OK) _exit(4);
    });
    Child rank2([&] {
      if (muster_barrier_wait(attached(), 2) != MUSTER_OK) _exit(5);
      for (;;) pause();
    });
    ASSERT_EQ(MUSTER_OK, muster_barrier_wait(barrier, 0));
    std::thread scribbler([&] {
      if (written != Written::another_number) usleep(200'000);  // others look at each other
      const auto words = [&](int pid) {
        std::vector<std::atomic<std::uint32_t>*> found;
        for (std::size_t at = 0; at < bytes; at += sizeof(std::uint32_t)) {
          auto* const word = reinterpret_cast<std::atomic<std::uint32_t>*>(memory.data() + at);
          if (static_cast<int>(*word & 0x3fffff) == pid) found.push_back(word);
        }
        return found;
      };
      const auto marks = words(rank2.pid());
      EXPECT_FALSE(marks.empty());
      const std::uint32_t mine = *words(getpid()).front();
      for (auto* const mark : marks) {
        std::uint32_t number = (*mark & ~0x3fffffU) | (mine & 0x3fffff);
        if (number == mine) number ^= std::uint32_t{1} << 31;  // by chance
        *mark = written == Written::anothers_word ? mine : number;
      }
      rank2.kill();
    });
    EXPECT_NE(MUSTER_OK, muster_barrier_wait(barrier, 0));
    scribbler.join();
    EXPECT_EQ("", rank1.wait());
    muster_barrier_destroy(barrier);
  }
}

/// The process of rank 2, as told for rank 0: "muster: rank 0 has waited ...; missing: 2 (pid
/// 1234)\n". 0 if no line of the text says so, or none that knows it yet (pid 0).
pid_t missing_rank_2(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t rank = line.find(" 2 (pid ", std::min(line.size(), line.find("; missing:")));
    if (line.find("muster: rank 0 has waited") == std::string::npos || line.back() != ')') continue;
    if (rank == std::string::npos) continue;
    if (const pid_t pid = std::stoi(line.substr(rank + 8)); pid != 0) return pid;
  }
  return 0;
}

// The processes are a fresh program's, since the variable is read once. The one that stops is woken
// by the number that the watchdog gives.
TEST(Watchdog, NamesTheRankThatIsStopped) {
  const HangGuard guard(60);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const int output = memfd_create("output", 0);
    Child late([&] {
      dup2(output, STDERR_FILENO);
      setenv("MUSTER_WATCHDOG", "0.03", 1);
      execl(MUSTER_TEST_LATE, MUSTER_TEST_LATE, nullptr);
      _exit(1);
    });
    std::string text;
    pid_t stopped = 0;
    while ((stopped = missing_rank_2(text)) == 0) {
      ASSERT_FALSE(late.ended()) << text;
      usleep(5'000);
      text.resize(200'000);
      const ssize_t got = pread(output, text.data(), text.size(), 0);
      text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    }
    close(output);
    while (!late.ended()) {  // more than once: it may have been named before it stopped
      kill(stopped, SIGCONT);
      usleep(5'000);
    }
    EXPECT_EQ(late.wait(), "") << text;
  }
}

}  // namespace
}  // namespace muster::test
