// SPDX-License-Identifier: BSD-3-Clause
// What a fork's child finds: an error where it would wait for its parent's threads, and all else as
// if it had begun.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
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
bool is_refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == Status::busy &&
           std::string(error.what()).find("before fork()") != std::string::npos;
  }
  return false;
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

TEST_F(Fork, TheParentsServerIsRefused) {
  const auto lock = make();
  Child child([&] {
    if (!is_refused([&] { station_->start({}); })) _exit(3);
    if (!is_refused([&] { station_->stop(); })) _exit(4);
    if (!is_refused([&] { station_->place({}); })) _exit(5);
    if (!is_refused([&] { static_cast<void>(station_->describe()); })) _exit(6);
    if (!is_refused([&] { static_cast<void>(lock->explain()); })) _exit(7);
    if (!is_refused([&] { static_cast<void>(lock->server_core()); })) _exit(8);
    if (!is_refused([&] { make(); })) _exit(9);
    if (!is_refused([&] { lock->prepare_wait(); })) _exit(10);
    _exit(0);
  });
  EXPECT_EQ("", child.wait());
}

TEST_F(Fork, TheParentsConditionIsRefused) {
  const auto lock = make();
  auto condition = std::make_unique<delegation::Condition>(*lock);
  std::atomic<bool> waits{false};
  bool may_go = false;
  std::thread waiter([&] {
    auto section = [&] {
      waits = true;
      while (!may_go) condition->wait();
    };
    lock->execute(section_of(section));
  });
  auto nothing = [] {};
  while (!waits) sched_yield();
  lock->execute(section_of(nothing));  // it has given the lock up
  sleep_ms(20);
  Child child([&] {
    if (!is_refused([&] { condition->signal(); })) _exit(3);
    if (!is_refused([&] { condition->broadcast(); })) _exit(4);
    if (!is_refused([&] { condition->wait(); })) _exit(5);
    condition.reset();
    _exit(0);
  });
  EXPECT_EQ("", child.wait());
  auto release_it = [&] {
    may_go = true;
    condition->broadcast();
  };
  lock->execute(section_of(release_it));
  waiter.join();
}

TEST_F(Fork, KeptPostsAreTheParents) {
  const auto without_server = std::make_shared<Station>();
  const auto a = make_lock({.kind = "auto", .station = without_server});
  const auto b = make_lock({.kind = "auto", .station = without_server});
  unsigned count = 0;
  auto increment = [&] { ++count; };
  Forks forks;
  auto section = [&] {
    b->post(section_of(increment));
    b->post(section_of(increment));
    forks();
  };
  a->execute(section_of(section));
  if (forks.pid == 0) {
    if (count != 0) _exit(3);
    // Its own are sent as ever.
    const auto c = make_lock({.kind = "auto", .station = nullptr});
    const auto d = make_lock({.kind = "auto", .station = nullptr});
    auto posts = [&] { d->post(section_of(increment)); };
    c->execute(section_of(posts));
    _exit(count == 1 ? 0 : 4);
  }
  EXPECT_EQ(0, forks.wait());
  EXPECT_EQ(2U, count);
}

TEST_F(Fork, InASectionThatItsClientExecutes) {
  for (const bool at_once : {false, true}) {
    const auto lock = make("auto");
    auto nothing = [] {};
    delegation::execute_section(*lock, section_of(nothing));
    Forks forks;
    if (at_once) {
      delegation::execute_section(*lock, section_of(forks));
    } else {
      lock->execute(section_of(forks));
    }
    if (forks.pid == 0) {
      if (!is_refused([&] { delegation::execute_section(*lock, section_of(nothing)); })) _exit(3);
      unsigned count = 0;
      auto increment = [&] { ++count; };
      const auto own = make_lock({.kind = "rcl", .station = nullptr});
      delegation::execute_section(*own, section_of(increment));
      _exit(count == 1 ? 0 : 4);
    }
    EXPECT_EQ(0, forks.wait());
    EXPECT_EQ(2U, lock->counters().inlined);
  }
}

/// The other client's request waits while this one's section forks: it is executed once.
TEST_F(Fork, AChildThatComesBackLeavesWhatOthersWantToItsParent) {
  for (const char* const kind :
       {"ticket", "mcs", "clh", "oyama", "flat-combining", "cc-synch", "dsm-synch"}) {
    SCOPED_TRACE(kind);
    const auto lock = make_lock({.kind = kind, .station = nullptr});
    void* const shared = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, shared);
    auto& count = *new (shared) std::atomic<int>(0);
    auto increment = [&] { ++count; };
    lock->execute(section_of(increment));  // so that it is at once from now on
    const pid_t parent = getpid();
    std::thread other;
    Forks forks;
    auto section = [&] {
      other = std::thread([&] { lock->execute(section_of(increment)); });
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      forks();
    };
    lock->execute(section_of(section));
    if (getpid() != parent) _exit(0);
    EXPECT_EQ(0, forks.wait());
    other.join();
    EXPECT_EQ(2, count);
    munmap(shared, sizeof count);
  }
}

TEST_F(Fork, AChildThatComesBackToTheServerEnds) {
  for (const char* const kind : {"rcl", "rcl-batch"}) {
    const auto lock = make(kind);
    Forks forks;
    lock->execute(section_of(forks));
    EXPECT_EQ(EXIT_FAILURE, forks.wait()) << kind;
  }
  const auto lock = make();
  Forks forks;
  auto section = [&] {
    forks();
    if (forks.pid != 0) return;
    // In the section it may do what another child may.
    unsigned count = 0;
    auto increment = [&] { ++count; };
    const auto own = make_lock({.kind = "rcl", .station = nullptr});
    own->execute(section_of(increment));
    _exit(count == 1 ? 0 : 4);
  };
  lock->execute(section_of(section));
  EXPECT_EQ(0, forks.wait());
}

}  // namespace
}  // namespace muster::test
