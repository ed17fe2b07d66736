// SPDX-License-Identifier: BSD-3-Clause
// What a server survives, or refuses: CPUs that are taken away, sections that block when nobody
// expects it, that stop it or await its end, threads that are cancelled, and those that wait.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "delegation/condition.hpp"
#include "delegation/delegated.hpp"
#include "delegation/station.hpp"
#include "muster/lock.h"
#include "with_server.hpp"

namespace muster::test {
namespace {

std::atomic<bool> binding_fails{false};

/// A lock's word, on the thread that gives it: how it is whenever that thread wakes others.
thread_local const std::atomic<Word>* watched = nullptr;
std::atomic<unsigned> woken{0};
std::atomic<unsigned> woken_while_taken{0};

/// On the thread that wakes others: what each of its wake-ups takes, as if who is woken were quick.
thread_local const std::function<void()>* after_waking = nullptr;

/// For who registers for fences: how far the first one is.
enum class Registering { unnoticed, noticed, inside, goes_on };
std::atomic<Registering> registering{Registering::unnoticed};

}  // namespace
}  // namespace muster::test

/// The C library's, or what it answers when a CPU has been taken away.
extern "C" int pthread_setaffinity_np(pthread_t thread, std::size_t bytes,
                                      const cpu_set_t* mask) noexcept {
  if (muster::test::binding_fails) return EINVAL;
  static const auto real = reinterpret_cast<int (*)(pthread_t, std::size_t, const cpu_set_t*)>(
      dlsym(RTLD_NEXT, "pthread_setaffinity_np"));
  return real(thread, bytes, mask);
}

/// Reads six arguments, where callers may have passed fewer.
extern "C" [[gnu::no_sanitize_address]] long syscall(long number, ...) noexcept {
  using namespace muster::test;
  va_list rest;
  va_start(rest, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(rest, long);
  va_end(rest);
  if (watched != nullptr && number == SYS_futex && arguments[1] == FUTEX_WAKE_PRIVATE) {
    ++woken;
    if (watched->load() != 0) ++woken_while_taken;
  }
  auto noticed = Registering::noticed;
  if (number == SYS_membarrier && arguments[0] == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED &&
      registering.compare_exchange_strong(noticed, Registering::inside)) {
    while (registering != Registering::goes_on) sched_yield();
  }
  static const auto real = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
  const long result = real(number, arguments[0], arguments[1], arguments[2], arguments[3],
                           arguments[4], arguments[5]);
  if (after_waking != nullptr && number == SYS_futex && arguments[1] == FUTEX_WAKE_PRIVATE) {
    (*after_waking)();
  }
  return result;
}

namespace muster::test {
namespace {

using delegation::make_lock;

class Trouble : public WithServer {};

TEST_F(Trouble, ASpareThatCannotBeBoundServesAndIsTold) {
  const auto slow = make();
  const auto quick = make();
  binding_fails = true;  // of the spare; nothing else is bound from now on
  BlockedSection blocked(*slow);
  std::uint64_t count = 0;
  auto increment = [&] { ++count; };
  for (int i = 0; i < 100; ++i) execute(*quick, increment);
  binding_fails = false;
  EXPECT_EQ(100U, count);
  EXPECT_NE(std::string::npos, station_->describe().find("elsewhere: it cannot be bound"))
      << station_->describe();
  blocked.end();
  for (int i = 0; i < 100; ++i) execute(*quick, increment);
  EXPECT_EQ(200U, count);
  station_->place({});
  EXPECT_EQ(std::string::npos, station_->describe().find("elsewhere")) << station_->describe();
  binding_fails = true;
  EXPECT_THROW(station_->place({}), Error);
  binding_fails = false;
}

TEST_F(Trouble, ASectionThatBlocksWhenTheServerHasSleptIsSeenAsSoon) {
  const auto slow = make();
  const auto quick = make();
  EXPECT_TRUE(in_a_quiet_moment([&] {
    const std::uint64_t sleeps = station_->counters().sleeps;
    while (station_->counters().sleeps == sleeps) sleep_ms(1);
    sleep_ms(10);  // its watchdog goes on its round of half a second
    BlockedSection blocked(*slow);
    const std::int64_t before_ms = now_ms();
    execute(*quick, [&] { blocked.let_go(); });
    return now_ms() - before_ms < (emulated ? 400 : 200);
  }));
}

TEST_F(Trouble, CannotBeStoppedFromWithin) {
  for (const char* const kind : {"rcl", "auto"}) {
    const auto lock = make(kind);
    const auto nested = make_lock({.kind = "mcs", .station = nullptr});
    std::string refused;
    std::atomic<bool> inside{false};
    auto stop = [&] { refused = refusal([&] { station_->stop(); }); };
    auto section = [&] {
      inside = true;
      sleep_ms(20);  // the other client's section is posted meanwhile, and needs this lock
      execute(*nested, stop);
    };
    std::thread other([&] {
      while (!inside) sched_yield();
      lock->execute(nothing);
    });
    execute(*lock, section);
    other.join();
    EXPECT_NE(std::string::npos, refused.find("cannot stop")) << kind << ": " << refused;
    EXPECT_TRUE(station_->has_server()) << kind;
  }
}

/// Whoever executes the inner one: another server, or a server that waits for none.
TEST_F(Trouble, ALockFurtherOutIsKnownToAnotherThread) {
  const auto other = std::make_shared<delegation::Station>();
  other->start({});
  for (const auto& [kind, inner] : {std::pair{"rcl", "rcl"}, {"auto", "rcl"}, {"mcs", "rcl"}}) {
    SCOPED_TRACE(std::string(inner) + " in " + kind);
    const auto a = make(kind);
    const auto b = make_lock({.kind = inner, .station = other});
    const auto c = make("ticket");  // whose section is its caller's
    unsigned posted = 0;
    std::string entered;
    std::string awaited;
    std::string stopped;
    std::thread::id asks;
    std::thread::id executes;
    auto post = [&] { ++posted; };
    execute(*a, [&] {
      asks = std::this_thread::get_id();
      execute(*b, [&] {
        executes = std::this_thread::get_id();
        execute(*c, [&] {
          entered = refusal([&] { execute(*a, post); });
          a->post(section_of(post));
          awaited = refusal([&] { a->prepare_wait(); });
          EXPECT_EQ(1U, posted) << "as a part of the section that it has";
          for (int i = 0; i < 40; ++i) a->post(section_of(post));  // more than can be outstanding
          stopped = refusal([&] { station_->stop(); });
        });
      });
      EXPECT_EQ(1U, posted) << "right after the section";
    });
    EXPECT_NE(asks, executes);
    EXPECT_NE(std::string::npos, entered.find("wait for itself")) << entered;
    EXPECT_NE(std::string::npos, awaited.find("wait outside")) << awaited;
    if (a->station() != nullptr) {
      EXPECT_NE(std::string::npos, stopped.find("cannot stop")) << stopped;
    } else {
      station_->start({});  // it was stopped
    }
    EXPECT_EQ(41U, posted);
    b->execute(nothing);  // forgets which it was in
    a->execute(nothing);
    execute(*b, [&] { execute(*a, post); });
    EXPECT_EQ(42U, posted);
  }
}

TEST_F(Trouble, ALockIsMadeInASectionThatItsServersEndAwaits) {
  const auto lock = make();
  std::atomic<bool> inside{false};
  unsigned count = 0;
  auto increment = [&] { ++count; };
  std::thread stopper([&] {
    while (!inside) sched_yield();
    station_->stop();
  });
  execute(*lock, [&] {
    inside = true;
    while (station_->has_server()) sched_yield();
    make()->execute(section_of(increment));
  });
  stopper.join();
  EXPECT_EQ(1U, count);
}

// The answer is there when the server that asks first looks for it, which is the shorter way.
TEST_F(Trouble, ANestedSectionThatIsAnsweredAtOnceIsCounted) {
  const auto other = std::make_shared<delegation::Station>();
  other->start({});
  const auto outer = make();
  const auto inner = make_lock({.kind = "rcl", .station = other});
  unsigned executed = 0;
  bool at_once = false;
  unsigned asked = 0;
  const std::function<void()> answered = [&] {
    while (other->counters().executed < asked) sched_yield();
    at_once = true;
  };
  while (!at_once) {  // until the other server sleeps and is woken
    sleep_ms(5);
    execute(*outer, [&] {
      ++asked;
      after_waking = &answered;
      execute(*inner, [&] { ++executed; });
      after_waking = nullptr;
    });
  }
  EXPECT_EQ(asked, executed);
  EXPECT_EQ(asked, inner->counters().delegated);
}

TEST_F(Trouble, AWaitForAConditionIsNoCancellationPoint) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer does not follow the unwinding of a cancelled thread";
#endif
  for (const char* const kind : {"rcl", "auto"}) {
    const auto lock = make(kind);
    delegation::Condition condition(*lock);
    std::atomic<bool> inside{false};
    bool may_go = false;
    bool gone = false;
    bool came_back = false;
    std::thread waiter([&] {
      execute(*lock, [&] {
        inside = true;
        while (!may_go) condition.wait();
        gone = true;
      });
      came_back = true;
      for (;;) sleep_ms(1);
    });
    while (!inside) sched_yield();
    pthread_cancel(waiter.native_handle());
    sleep_ms(10);
    execute(*lock, [&] {
      may_go = true;
      condition.signal(true);
    });
    waiter.join();
    EXPECT_TRUE(gone) << kind;
    EXPECT_TRUE(came_back) << kind;
  }
}

TEST_F(Trouble, SignalsAreForTheProgramsThreads) {
  const auto lock = make();
  sigset_t blocked{};
  execute(*lock, [&] { pthread_sigmask(SIG_BLOCK, nullptr, &blocked); });
  for (const int sent : {SIGALRM, SIGCHLD, SIGTERM, SIGUSR1}) {
    EXPECT_EQ(1, sigismember(&blocked, sent)) << sent;
  }
  EXPECT_EQ(0, sigismember(&blocked, SIGSEGV));
  sigset_t own{};
  pthread_sigmask(SIG_BLOCK, nullptr, &own);
  EXPECT_EQ(0, sigismember(&own, SIGTERM));
}

#ifdef MUSTER_LIBRARY
/// As a plugin does that uses the library: threads end after it was unloaded.
TEST(Unloading, LeavesWhatThreadsAndForksNeed) {
  unsigned count = 0;
  std::thread([&] {
    void* const library = dlopen(MUSTER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(nullptr, library) << dlerror();
    const auto create =
        reinterpret_cast<decltype(&muster_lock_create)>(dlsym(library, "muster_lock_create"));
    const auto execute =
        reinterpret_cast<decltype(&muster_lock_execute)>(dlsym(library, "muster_lock_execute"));
    const auto destroy =
        reinterpret_cast<decltype(&muster_lock_destroy)>(dlsym(library, "muster_lock_destroy"));
    muster_lock* lock = nullptr;
    ASSERT_EQ(MUSTER_OK, create(&lock, nullptr));
    const auto increment = [](void* argument) { ++*static_cast<unsigned*>(argument); };
    EXPECT_EQ(MUSTER_OK, execute(lock, increment, &count));
    destroy(lock);
    EXPECT_EQ(0, dlclose(library));
  }).join();
  EXPECT_EQ(1U, count);
  Child child([] { _exit(0); });
  EXPECT_EQ("", child.wait());
}
#endif

/// In a process of its own, which has used nothing yet.
TEST(FirstUse, IsNotHalfDoneInAForksChild) {
#ifdef MUSTER_TEST_EMULATED
  GTEST_SKIP() << "qemu-user would have to be started again";
#endif
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto forks_while_a_thread_registers = [] {
    const HangGuard guard(60);  // a death test's process has no listeners
    registering = Registering::noticed;
    std::thread first([] { register_heavy_fence(false); });
    while (registering != Registering::inside) sched_yield();
    Child child([] {
      unsigned count = 0;
      auto increment = [&] { ++count; };
      make_lock({.kind = "auto", .station = nullptr})->execute(section_of(increment));
      _exit(count == 1 ? 0 : 3);
    });
    const std::string ended = child.wait();
    registering = Registering::goes_on;
    first.join();
    std::fprintf(stderr, "the child %s", ended.empty() ? "ended" : ended.c_str());
    _exit(0);
  };
  EXPECT_EXIT(forks_while_a_thread_registers(), testing::ExitedWithCode(0), "the child ended");
}

TEST_F(ByItself, AServerThatCannotStartIsToldWithItsError) {
  const auto lock = make();
  // What the lock says when these words are in it at last; the clients go on meanwhile.
  const auto explained_with = [&](const char* words) {
    std::atomic<bool> stop{false};
    std::string text;
    run_threads(4, [&](unsigned thread) {
      if (thread < 3) {
        while (!stop) lock->execute(nothing);
        return;
      }
      const std::int64_t give_up_ms = now_ms() + patience_ms;
      do {
        text = lock->explain();
        sleep_ms(1);
      } while (text.find(words) == std::string::npos && now_ms() < give_up_ms);
      stop = true;
    });
    return text;
  };
  binding_fails = true;
  const std::string failed = explained_with("could not be started");
  EXPECT_FALSE(station_->has_server());
  EXPECT_THAT(failed, testing::HasSubstr("a server could not be started: the server does not "
                                         "start: it cannot be bound to CPU "));
  EXPECT_THAT(failed, testing::HasSubstr("Invalid argument"));
  binding_fails = false;
  const std::string started = explained_with("server: on CPU");
  EXPECT_THAT(started, testing::HasSubstr("server: on CPU"));
  EXPECT_THAT(started, testing::Not(testing::HasSubstr("cannot be bound")));
}

/// Who executes its sections one after the other lets those in that nobody executes: how long they
/// wait is a matter of milliseconds, and of CPUs, not of luck.
TEST(Fairness, WhoWaitsWhereNobodyCombinesIsLetIn) {
  const auto station = std::make_shared<delegation::Station>();
  const auto lock = make_lock({.kind = "auto", .station = station});
  delegation::Condition condition(*lock);
  std::atomic<bool> stop{false};
  std::atomic<bool> waits{false};
  std::uint64_t since_signal = 0;  // sections of the other one that the waiter had to await
  std::thread owner([&] {
    while (!stop) {
      execute(*lock, [&] {
        const std::int64_t until_ns = now_ns() + 200'000;
        while (now_ns() < until_ns) relax();
        ++since_signal;
        if (!waits.exchange(false)) return;
        since_signal = 0;
        condition.signal();
      });
    }
  });
  std::uint64_t awaited = 0;
  auto waiter = [&] {
    waits = true;
    while (waits) condition.wait();
    awaited = since_signal;
  };
  // In the other turns the waiter may have had no CPU.
  EXPECT_TRUE(in_a_quiet_moment([&] {
    unsigned soon = 0;
    for (int turn = 0; turn < 40; ++turn) {
      execute(*lock, waiter);
      if (awaited <= 10) ++soon;
    }
    return soon > 10;
  })) << "more than 10 of the other one's sections, in three quarters of the turns";
  stop = true;
  owner.join();
}

/// They would find it taken, and have the CPU that its sections need.
TEST(Fairness, WhoWaitsIsNotWokenBeforeTheLockIsFree) {
  const auto station = std::make_shared<delegation::Station>();
  const auto lock = make_lock({.kind = "auto", .station = station});
  const delegation::Condition nobody_combines(*lock);
  std::atomic<bool> stop{false};
  std::thread waiter([&] {
    while (!stop) execute_section(*lock, nothing);
  });
  watched = &station->lock(0).desk().held->value;
  woken = 0;
  woken_while_taken = 0;
  auto busy = [] {
    const std::int64_t until_ns = now_ns() + 200'000;
    while (now_ns() < until_ns) relax();
  };
  while (woken < 40) execute(*lock, busy);
  watched = nullptr;
  stop = true;
  waiter.join();
  // The one that is let in may have taken it just before.
  EXPECT_LE(woken_while_taken, woken / 4);
}

}  // namespace
}  // namespace muster::test
