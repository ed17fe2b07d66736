// SPDX-License-Identifier: BSD-3-Clause
// What a fork's child finds: an error where it would wait for its parent's threads, and all else as
// if it had begun.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "delegation/condition.hpp"
#include "delegation/delegated.hpp"
#include "with_server.hpp"

namespace muster::test {
namespace {

using delegation::AnyLock;
using delegation::make_lock;
using delegation::Station;

class Fork : public WithServer {
 protected:
  void SetUp() override {
    if (!children_make_threads) GTEST_SKIP() << "no threads' child makes threads here";
    WithServer::SetUp();
  }
};

/// Whether it throws what a child gets.
template <class Call>
bool is_refused(Call&& call) {
  return refusal(call).find("before fork()") != std::string::npos;
}

/// Forks in a section, and comes back from it in both. In the child zero.
struct Forks {
  int pid = -1;
  void operator()() {
    pid = fork();
    if (pid == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  /// How the child ended.
  int wait() const {
    int status = -1;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

std::function<void()> before_others;
/// Before all other fork handlers, and so between ours: as a library's that was there first.
[[gnu::used, gnu::section(".preinit_array")]] void (*const first_of_all)() = [] {
  pthread_atfork(
      [] {
        if (before_others) before_others();
      },
      nullptr, nullptr);
};

TEST_F(Fork, OthersHandlersMayWaitForThreadsThatHaveUsedALock) {
  const auto lock = make();
  std::atomic<bool> used{false};
  std::atomic<bool> end{false};
  std::thread thread([&] {
    execute_section(*lock, nothing);
    used = true;
    while (!end) sched_yield();
  });
  while (!used) sched_yield();
  before_others = [&] {
    end = true;
    thread.join();
  };
  Child child([&] {
    execute_section(*make_lock({.kind = "auto", .station = nullptr}), nothing);
    _exit(0);
  });
  before_others = nullptr;
  EXPECT_EQ("", child.wait());
}

TEST_F(Fork, TheParentsConditionIsRefused) {
  const auto lock = make();
  auto condition = std::make_unique<delegation::Condition>(*lock);
  std::atomic<bool> waits{false};
  bool may_go = false;
  std::thread waiter([&] {
    execute(*lock, [&] {
      waits = true;
      while (!may_go) condition->wait();
    });
  });
  while (!waits) sched_yield();
  execute_section(*lock, nothing);  // it has given the lock up
  sleep_ms(20);
  Child child([&] {
    if (!is_refused([&] { condition->signal(); })) _exit(3);
    if (!is_refused([&] { condition->signal(true); })) _exit(4);
    if (!is_refused([&] { condition->wait(); })) _exit(5);
    condition.reset();
    _exit(0);
  });
  EXPECT_EQ("", child.wait());
  execute(*lock, [&] {
    may_go = true;
    condition->signal(true);
  });
  waiter.join();
}

/// A count that a child and its parent share.
class SharedCount {
 public:
  void operator()() { ++*count_; }
  int value() const { return *count_; }
  void reset() { *count_ = 0; }

 private:
  Shared<std::atomic<int>> count_;
};

TEST_F(Fork, KeptPostsAreTheParents) {
  for (const char* const kind : {"auto", "cc-synch", "mcs"}) {
    const auto without_server = std::make_shared<Station>();
    const auto a = make_lock({.kind = kind, .station = without_server});
    const auto b = make_lock({.kind = "auto", .station = without_server});
    execute_section(*a, nothing);  // so that it is at once from now on
    unsigned count = 0;
    auto increment = [&] { ++count; };
    Forks forks;
    std::unique_ptr<AnyLock> own;
    execute(*a, [&] {
      b->post(section_of(increment));
      b->post(section_of(increment));
      forks();
      if (forks.pid != 0) return;
      own = make_lock({.kind = "auto", .station = nullptr});
      own->post(section_of(increment));
      if (count != 0) _exit(3);
    });
    if (forks.pid == 0) _exit(count == 1 ? 0 : 4);  // its own is sent as ever
    EXPECT_EQ(0, forks.wait()) << kind;
    EXPECT_EQ(2U, count) << kind;
  }
}

TEST_F(Fork, KeptPostsAreTheParentsWhileTheyAreSent) {
  const auto station = std::make_shared<Station>();
  const auto a = make_lock({.kind = "auto", .station = station});
  const auto b = make_lock({.kind = "auto", .station = station});
  unsigned count = 0;
  auto increment = [&] { ++count; };
  Forks forks;
  std::unique_ptr<AnyLock> own;
  auto forking = [&] {
    forks();
    if (forks.pid != 0) return;
    own = make_lock({.kind = "auto", .station = nullptr});
    own->post(section_of(increment));
  };
  execute(*a, [&] {
    b->post(section_of(increment));
    b->post(section_of(forking));
    b->post(section_of(increment));
  });
  if (forks.pid == 0) {
    own.reset();
    _exit(count == 2 ? 0 : 3);  // one before it was there, one of its own
  }
  EXPECT_EQ(0, forks.wait());
  EXPECT_EQ(2U, count);
}

// Where no server runs a post of a server's section is executed by the server's thread.
TEST_F(Fork, AServersThreadEndsInTheChildOfWhatItSends) {
  const auto lock = make();
  const auto at_once = make_lock({.kind = "auto", .station = std::make_shared<Station>()});
  SharedCount count;
  Forks forks;
  execute(*lock, [&] {
    at_once->post(section_of(forks));
    at_once->post(section_of(count));
  });
  while (count.value() == 0) sched_yield();
  EXPECT_EQ(EXIT_FAILURE, forks.wait());
  EXPECT_EQ(1, count.value());
}

TEST_F(Fork, PostsToTheSectionsOwnLockAreTheParents) {
  for (const char* const kind :
       {"auto", "rcl", "mcs", "cc-synch", "h-synch", "phase-fair", "robust", "pthread-mutex"}) {
    for (const bool in_a_post : {false, true}) {
      SCOPED_TRACE(kind);
      const auto lock = make_lock({.kind = kind, .station = station_});
      SharedCount count;
      const pid_t parent = getpid();
      Forks forks;
      auto forking = [&] {
        forks();
        if (forks.pid == 0 && !is_refused([&] { lock->post(section_of(count)); })) _exit(3);
      };
      execute(*lock, [&] {
        if (in_a_post) lock->post(section_of(forking));
        lock->post(section_of(count));
        if (!in_a_post) forking();
      });
      if (getpid() != parent) _exit(0);
      EXPECT_EQ(kind == std::string("rcl") ? EXIT_FAILURE : 0, forks.wait());
      EXPECT_EQ(1, count.value());
    }
  }
}

// A thread that has never kept a post.
TEST_F(Fork, InASectionThatHasAcquiredAnotherLock) {
  for (const char* const kind : {"auto", "mcs", "pthread-mutex"}) {
    const auto lock = make_lock({.kind = kind, .station = nullptr});
    const auto other = make_lock({.kind = "mcs", .station = nullptr});
    std::thread([&] {
      const pid_t parent = getpid();
      Forks forks;
      execute(*lock, [&] {
        ASSERT_TRUE(other->acquire(WaitPolicy::forever));
        forks();
        other->release();
      });
      if (getpid() != parent) _exit(0);
      EXPECT_EQ(0, forks.wait()) << kind;
    }).join();
  }
}

/// A lock between processes, whose section, or a post of it, forks, and comes back in both.
class SharedFork : public Fork {
 protected:
  bool child_may_take() {
    if (!lock_->acquire(0)) return false;
    lock_->release();
    return true;
  }
  const SharedMemory memory_{delegation::shared_lock_bytes()};
  const std::unique_ptr<AnyLock> lock_ =
      make_lock({.kind = "robust", .station = nullptr, .shared_memory = memory_.data()});
  SharedCount count_;
  Forks forks_;
};

TEST_F(SharedFork, InAPost) {
  const pid_t parent = getpid();
  auto forking = [&] {
    forks_();
    if (forks_.pid == 0) return;
    EXPECT_EQ(0, forks_.wait());
  };
  execute(*lock_, [&] { lock_->post(section_of(forking)); });
  if (getpid() != parent) _exit(child_may_take() ? 3 : 0);
  execute(*lock_, count_);
  EXPECT_EQ(1, count_.value()) << "else it is damaged";
}

TEST_F(SharedFork, WhereItIsAcquired) {
  for (const bool in_a_post : {false, true}) {
    const pid_t parent = getpid();
    auto forking = [&] {
      forks_();
      if (forks_.pid == 0) return;
      EXPECT_EQ(0, forks_.wait());
    };
    ASSERT_TRUE(lock_->acquire(WaitPolicy::forever));
    in_a_post ? lock_->post(section_of(forking)) : forking();
    lock_->release();
    if (getpid() != parent) _exit(child_may_take() ? 3 : 0);
    execute(*lock_, count_);
  }
  EXPECT_EQ(2, count_.value()) << "else it is damaged";
}

TEST_F(SharedFork, AChildGivesNothingUpInItsParentsSection) {
  execute(*lock_, [&] {
    forks_();
    if (forks_.pid == 0) {
      const auto post = [&] { lock_->post(section_of(count_)); };
      const auto wait = [&] { lock_->prepare_wait(); };
      const auto leave = [&] { lock_->unlocked(nothing); };
      const bool are_refused = refusal(post).find("the parent's") != std::string::npos &&
                               refusal(wait).find("the parent's") != std::string::npos &&
                               refusal(leave).find("the parent's") != std::string::npos;
      _exit(are_refused && count_.value() == 0 ? 0 : 3);
    }
    EXPECT_EQ(0, forks_.wait());
  });
  execute(*lock_, count_);
  EXPECT_EQ(1, count_.value()) << "else it is damaged";
}

TEST_F(Fork, InAPostOfASectionThatWaitsForACondition) {
  const auto station = std::make_shared<Station>();
  const auto lock = make_lock({.kind = "auto", .station = station});
  const auto other = make_lock({.kind = "auto", .station = station});
  delegation::Condition condition(*lock);
  Forks forks;
  execute(*lock, [&] {
    other->post(section_of(forks));
    const bool refused = is_refused([&] { condition.wait(1'000'000); });
    if (forks.pid == 0) _exit(refused ? 0 : 3);
    EXPECT_FALSE(refused);
  });
  EXPECT_EQ(0, forks.wait());
}

TEST_F(Fork, InASectionThatItsClientExecutes) {
  for (const bool at_once : {false, true}) {
    const auto lock = make("auto");
    execute_section(*lock, nothing);
    Forks forks;
    if (at_once) {
      execute(*lock, forks);
    } else {
      lock->execute(section_of(forks));
    }
    if (forks.pid == 0) {
      if (!is_refused([&] { execute_section(*lock, nothing); })) _exit(3);
      unsigned count = 0;
      const auto own = make_lock({.kind = "rcl", .station = nullptr});
      execute(*own, [&] { ++count; });
      _exit(count == 1 ? 0 : 4);
    }
    EXPECT_EQ(0, forks.wait());
    EXPECT_EQ(2U, lock->counters().inlined);
  }
}

/// The other client's request waits while this one's section forks: it is executed once.
TEST_F(Fork, AChildThatComesBackLeavesWhatOthersWantToItsParent) {
  const auto station = std::make_shared<Station>();
  for (const char* const kind : {"ticket", "mcs", "clh", "phase-fair", "oyama", "flat-combining",
                                 "cc-synch", "dsm-synch", "h-synch", "auto"}) {
    for (const bool at_once : {false, true}) {
      SCOPED_TRACE(kind);
      const auto lock = make_lock({.kind = kind, .station = station});
      SharedCount count;
      if (at_once) execute_section(*lock, nothing);
      const pid_t parent = getpid();
      std::thread other;
      Forks forks;
      execute(*lock, [&] {
        other = std::thread([&] { execute(*lock, count); });
        sleep_ms(20);
        forks();
      });
      if (getpid() != parent) _exit(0);
      EXPECT_EQ(0, forks.wait());
      other.join();
      EXPECT_EQ(1, count.value()) << at_once;
    }
  }
}

/// Which is where another client has asked for something else.
TEST_F(Fork, AChildThatComesBackToWhoCombinesEnds) {
  const auto station = std::make_shared<Station>();
  for (const char* const kind :
       {"oyama", "flat-combining", "cc-synch", "dsm-synch", "h-synch", "auto"}) {
    SCOPED_TRACE(kind);
    const auto lock = make_lock({.kind = kind, .station = station});
    const pid_t parent = getpid();
    bool combined = false;
    for (int attempt = 0; attempt < 50 && !combined; ++attempt) {
      SharedCount count;
      Forks forks;
      std::thread::id executor;
      int ended = -1;
      std::thread forker;
      std::thread other;
      execute(*lock, [&] {
        forker = std::thread([&] {
          execute(*lock, [&] {
            executor = std::this_thread::get_id();
            forks();
            // Here: without the thread that made it the child would be killed.
            if (forks.pid != 0) ended = forks.wait();
          });
          if (getpid() != parent) _exit(0);
        });
        sleep_ms(5);
        other = std::thread([&] {
          execute(*lock, count);
          if (getpid() != parent) _exit(3);
        });
        sleep_ms(5);
      });
      if (getpid() != parent) _exit(4);
      const std::thread::id asked = forker.get_id();
      forker.join();
      other.join();
      combined = executor != asked;
      EXPECT_EQ(combined ? EXIT_FAILURE : 0, ended);
      EXPECT_EQ(1, count.value());
    }
    EXPECT_TRUE(combined);
  }
}

TEST_F(Fork, AChildThatComesBackToTheServerEnds) {
  const auto lock = make();
  Forks back;
  execute(*lock, back);
  EXPECT_EQ(EXIT_FAILURE, back.wait());
  Forks forks;
  auto section = [&] {
    forks();
    if (forks.pid != 0) return;
    // In the section it may do what another child may.
    unsigned count = 0;
    const auto own = make_lock({.kind = "rcl", .station = nullptr});
    execute(*own, [&] { ++count; });
    _exit(count == 1 ? 0 : 4);
  };
  execute(*lock, section);
  EXPECT_EQ(0, forks.wait());
}

}  // namespace
}  // namespace muster::test
