// SPDX-License-Identifier: BSD-3-Clause
// An unmodified program: pthreads and the C++ library, and nothing of ours. It runs alone and under
// `muster run`, with every mutex; "passed" is its last word. What it checks is what POSIX says.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "expect.h"

namespace {

using namespace std::chrono_literals;

timespec in(clockid_t clock, std::chrono::milliseconds time) {
  timespec at{};
  clock_gettime(clock, &at);
  at.tv_nsec += static_cast<long>(time.count() % 1000) * 1'000'000;
  at.tv_sec += time.count() / 1000 + at.tv_nsec / 1'000'000'000;
  at.tv_nsec %= 1'000'000'000;
  return at;
}

/// Runs it in another thread and returns what it returns.
template <class Fn>
int elsewhere(Fn fn) {
  int result = -1;
  std::thread([&] { result = fn(); }).join();
  return result;
}

pthread_mutex_t make(int type, int protocol = PTHREAD_PRIO_NONE, bool robust = false) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  pthread_mutexattr_setprotocol(&attributes, protocol);
  if (robust) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t mutex;
  EXPECT(pthread_mutex_init(&mutex, &attributes) == 0);
  pthread_mutexattr_destroy(&attributes);
  return mutex;
}

// ---- kinds ----

void each_kind_alone(pthread_mutex_t& mutex, bool recursive, bool checks) {
  EXPECT(pthread_mutex_lock(&mutex) == 0);
  EXPECT(elsewhere([&] { return pthread_mutex_trylock(&mutex); }) == EBUSY);
  for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
    const int late = elsewhere([&] {
      const timespec until = in(clock, 20ms);
      return pthread_mutex_clocklock(&mutex, clock, &until);
    });
    EXPECT(late == ETIMEDOUT);
  }
  const timespec malformed{0, 1'000'000'000};
  EXPECT(elsewhere([&] { return pthread_mutex_timedlock(&mutex, &malformed); }) == EINVAL);
  const timespec long_past{-1, 0};
  EXPECT(elsewhere([&] { return pthread_mutex_timedlock(&mutex, &long_past); }) == ETIMEDOUT);
  const timespec soon = in(CLOCK_REALTIME, 20ms);
  if (recursive) {
    EXPECT(pthread_mutex_lock(&mutex) == 0);
    EXPECT(pthread_mutex_trylock(&mutex) == 0);
    EXPECT(pthread_mutex_timedlock(&mutex, &soon) == 0);
    for (int i = 0; i < 3; ++i) EXPECT(pthread_mutex_unlock(&mutex) == 0);
    EXPECT(elsewhere([&] { return pthread_mutex_trylock(&mutex); }) == EBUSY);
  } else {
    EXPECT(pthread_mutex_trylock(&mutex) == EBUSY);
    EXPECT(pthread_mutex_timedlock(&mutex, &soon) == (checks ? EDEADLK : ETIMEDOUT));
  }
  if (checks) EXPECT(pthread_mutex_lock(&mutex) == EDEADLK);
  if (checks || recursive) {
    EXPECT(elsewhere([&] { return pthread_mutex_unlock(&mutex); }) == EPERM);
  }
  EXPECT(pthread_mutex_destroy(&mutex) == EBUSY);
  EXPECT(pthread_mutex_unlock(&mutex) == 0);
  if (checks || recursive) EXPECT(pthread_mutex_unlock(&mutex) == EPERM);
  EXPECT(elsewhere([&] {
           const timespec until = in(CLOCK_MONOTONIC, 20ms);
           const int error = pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until);
           return error != 0 ? error : pthread_mutex_unlock(&mutex);
         }) == 0);
}

void kinds() {
  const struct {
    int type;
    bool recursive;
    bool checks;
  } types[] = {{PTHREAD_MUTEX_NORMAL, false, false},
               {PTHREAD_MUTEX_RECURSIVE, true, false},
               {PTHREAD_MUTEX_ERRORCHECK, false, true},
               {PTHREAD_MUTEX_ADAPTIVE_NP, false, false}};
  for (const auto& [type, recursive, checks] : types) {
    pthread_mutex_t mutex = make(type);
    each_kind_alone(mutex, recursive, checks);
    EXPECT(pthread_mutex_destroy(&mutex) == 0);
    EXPECT(pthread_mutex_lock(&mutex) == EINVAL);
  }
  pthread_mutex_t zero = PTHREAD_MUTEX_INITIALIZER;
  each_kind_alone(zero, false, false);
  pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  each_kind_alone(recursive, true, false);
  pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  each_kind_alone(checking, false, true);
  // Those of the C library's own.
  pthread_mutex_t heir = make(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT);
  EXPECT(pthread_mutex_lock(&heir) == 0);
  EXPECT(elsewhere([&] { return pthread_mutex_trylock(&heir); }) == EBUSY);
  EXPECT(pthread_mutex_unlock(&heir) == 0);
  pthread_mutex_t robust = make(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, true);
  EXPECT(elsewhere([&] { return pthread_mutex_lock(&robust); }) == 0);
  EXPECT(pthread_mutex_lock(&robust) == EOWNERDEAD);
  EXPECT(pthread_mutex_consistent(&robust) == 0);
  EXPECT(pthread_mutex_unlock(&robust) == 0);
}

/// A mutex and a condition that two processes share.
void shared_by_processes() {
  struct Shared {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int turn;
  };
  auto* const shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_mutexattr_t mutex_attributes;
  pthread_mutexattr_init(&mutex_attributes);
  pthread_mutexattr_setpshared(&mutex_attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &mutex_attributes);
  pthread_condattr_t cond_attributes;
  pthread_condattr_init(&cond_attributes);
  pthread_condattr_setpshared(&cond_attributes, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&shared->cond, &cond_attributes);
  const pid_t child = fork();
  const int mine = child == 0 ? 1 : 0;
  for (int i = 0; i < 100; ++i) {
    pthread_mutex_lock(&shared->mutex);
    while (shared->turn != mine) pthread_cond_wait(&shared->cond, &shared->mutex);
    shared->turn = 1 - mine;
    pthread_cond_signal(&shared->cond);
    pthread_mutex_unlock(&shared->mutex);
  }
  if (child == 0) _exit(0);
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

// ---- exclusion ----

void many_threads(unsigned threads, unsigned sections) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  std::uint64_t count = 0;
  std::uint64_t tries = 0;
  std::atomic<unsigned> there{0};
  std::vector<std::thread> team;
  for (unsigned t = 0; t < threads; ++t) {
    team.emplace_back([&, t] {
      for (++there; there < threads;) sched_yield();
      for (unsigned i = 0; i < sections; ++i) {
        if (i % 16 == t % 16) {
          const timespec until = in(CLOCK_MONOTONIC, 60s);
          EXPECT(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until) == 0);
        } else {
          pthread_mutex_lock(&mutex);
        }
        ++count;
        if (i % 64 == 0) sched_yield();  // the others find it taken
        pthread_mutex_unlock(&mutex);
        if (i % 8 != 0) continue;
        pthread_mutex_lock(&recursive);
        pthread_mutex_lock(&recursive);
        ++tries;
        pthread_mutex_unlock(&recursive);
        pthread_mutex_unlock(&recursive);
      }
    });
  }
  for (std::thread& thread : team) thread.join();
  EXPECT(count == std::uint64_t{threads} * sections);
  EXPECT(tries == std::uint64_t{threads} * ((sections + 7) / 8));
  EXPECT(pthread_mutex_destroy(&mutex) == 0);
}

/// Whoever is the last inside frees the mutex at once, as reference counts do.
void freed_at_once() {
  struct Counted {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int references = 2;
  };
  std::atomic<Counted*> handed{nullptr};
  const auto drop = [](Counted* counted) {
    pthread_mutex_lock(&counted->mutex);
    const int left = --counted->references;
    pthread_mutex_unlock(&counted->mutex);
    if (left != 0) return;
    EXPECT(pthread_mutex_destroy(&counted->mutex) == 0);
    std::memset(static_cast<void*>(counted), 0xff, sizeof *counted);
    delete counted;
  };
  constexpr int rounds = 5000;
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      Counted* counted = nullptr;
      while ((counted = handed.exchange(nullptr)) == nullptr) sched_yield();
      drop(counted);
    }
  });
  for (int i = 0; i < rounds; ++i) {
    auto* const counted = new Counted;
    while (handed.load() != nullptr) sched_yield();
    handed = counted;
    drop(counted);
  }
  other.join();
}

// ---- conditions ----

void ping_pong(int rounds) {
  std::mutex mutex;
  std::condition_variable turned;
  int turn = 0;
  const auto play = [&](int me) {
    std::unique_lock lock(mutex);
    for (int i = 0; i < rounds; ++i) {
      turned.wait(lock, [&] { return turn == me; });
      turn = 1 - me;
      turned.notify_one();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
}

/// Signals without the mutex; as many wake as were signalled.
void one_for_each_signal() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  int ready = 0;
  constexpr int threads = 8;
  constexpr int rounds = 200;
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t) {
    team.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        pthread_mutex_lock(&mutex);
        while (ready == 0) pthread_cond_wait(&cond, &mutex);
        --ready;
        pthread_mutex_unlock(&mutex);
      }
    });
  }
  for (int i = 0; i < threads * rounds; ++i) {
    pthread_mutex_lock(&mutex);
    ++ready;
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(&cond);
  }
  for (std::thread& thread : team) thread.join();
  EXPECT(ready == 0);
  EXPECT(pthread_cond_destroy(&cond) == 0);
}

void broadcasts() {
  std::mutex mutex;
  std::condition_variable_any any;
  std::condition_variable changed;
  int phase = 0;
  int arrived = 0;
  constexpr int threads = 6;
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t) {
    team.emplace_back([&] {
      std::unique_lock lock(mutex);
      for (int next = 1; next <= 50; ++next) {
        if (++arrived == threads) {
          arrived = 0;
          phase = next;
          changed.notify_all();
          any.notify_all();
        } else if (next % 2 == 0) {
          changed.wait(lock, [&] { return phase >= next; });
        } else {
          any.wait(lock, [&] { return phase >= next; });
        }
      }
    });
  }
  for (std::thread& thread : team) thread.join();
  EXPECT(phase == 50);
}

void timed_waits() {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT(never.wait_for(lock, 30ms) == std::cv_status::timeout);
  EXPECT(never.wait_until(lock, std::chrono::system_clock::now() + 20ms) ==
         std::cv_status::timeout);
  EXPECT(std::chrono::steady_clock::now() - begin >= 49ms);
  EXPECT(elsewhere([&] { return mutex.try_lock() ? 1 : 0; }) == 0);  // it has it again
  std::timed_mutex timed;
  timed.lock();
  EXPECT(elsewhere([&] { return timed.try_lock_for(10ms) ? 1 : 0; }) == 0);
  std::thread later([&] {
    EXPECT(timed.try_lock_for(20s));
    timed.unlock();
  });
  std::this_thread::sleep_for(10ms);
  timed.unlock();
  later.join();
}

// ---- ends ----

struct Cancelled {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  bool waits = false;
  bool had_it = false;
};

void on_cancel(void* argument) {
  auto& all = *static_cast<Cancelled*>(argument);
  all.had_it = pthread_mutex_trylock(&all.mutex) == EBUSY;
  pthread_mutex_unlock(&all.mutex);
}

void* wait_for_ever(void* argument) {
  auto& all = *static_cast<Cancelled*>(argument);
  pthread_mutex_lock(&all.mutex);
  all.waits = true;
  pthread_cleanup_push(on_cancel, argument);
  for (;;) pthread_cond_wait(&all.cond, &all.mutex);
  pthread_cleanup_pop(0);
  return nullptr;
}

/// A thread cancelled while it waits has the mutex in its handlers.
void cancellation() {
  Cancelled all;
  pthread_t thread{};
  EXPECT(pthread_create(&thread, nullptr, wait_for_ever, &all) == 0);
  for (bool waits = false; !waits; sched_yield()) {
    pthread_mutex_lock(&all.mutex);
    waits = all.waits;
    pthread_mutex_unlock(&all.mutex);
  }
  EXPECT(pthread_cancel(thread) == 0);
  void* result = nullptr;
  EXPECT(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
  EXPECT(all.had_it);
  EXPECT(pthread_mutex_trylock(&all.mutex) == 0);
}

void* leaves_early(void* argument) { pthread_exit(argument); }

/// Threads that end in every way, more of them than there can be at a time.
void many_ends() {
  for (int i = 0; i < 2000; ++i) {
    pthread_t thread{};
    EXPECT(pthread_create(&thread, nullptr, leaves_early, &i) == 0);
    void* result = nullptr;
    EXPECT(pthread_join(thread, &result) == 0 && result == &i);
  }
}

pthread_mutex_t kept_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t kept_checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

/// A thread still owns what it has locked when its last handlers run.
void given_back_at_the_end() {
  static int failed = -1;
  pthread_key_t key{};
  EXPECT(pthread_key_create(&key, [](void*) {
           failed = pthread_mutex_lock(&kept_recursive) | pthread_mutex_unlock(&kept_recursive) |
                    pthread_mutex_unlock(&kept_recursive) | pthread_mutex_unlock(&kept_checking);
         }) == 0);
  std::thread([&] {
    EXPECT(pthread_mutex_lock(&kept_recursive) == 0);
    EXPECT(pthread_mutex_lock(&kept_checking) == 0);
    EXPECT(pthread_setspecific(key, &key) == 0);
  }).join();
  EXPECT(failed == 0);
  EXPECT(pthread_mutex_trylock(&kept_recursive) == 0 && pthread_mutex_trylock(&kept_checking) == 0);
  EXPECT(pthread_mutex_unlock(&kept_recursive) == 0 && pthread_mutex_unlock(&kept_checking) == 0);
  pthread_key_delete(key);
}

/// What a thread leaves locked is no later thread's.
void abandoned() {
  pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  EXPECT(elsewhere(
             [&] { return pthread_mutex_lock(&recursive) | pthread_mutex_lock(&checking); }) == 0);
  for (int i = 0; i < 20; ++i) {
    for (pthread_mutex_t* const mutex : {&recursive, &checking}) {
      EXPECT(elsewhere([&] { return pthread_mutex_trylock(mutex); }) == EBUSY);
      EXPECT(elsewhere([&] { return pthread_mutex_unlock(mutex); }) == EPERM);
    }
  }
}

pthread_mutex_t at_fork = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t checked_at_fork = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

/// Forks while others queue up for a mutex that the forking thread has; the child goes on.
void forks() {
  pthread_atfork([] { pthread_mutex_lock(&at_fork); }, [] { pthread_mutex_unlock(&at_fork); },
                 [] { pthread_mutex_unlock(&at_fork); });
  std::atomic<bool> stop{false};
  std::vector<std::thread> team;
  for (int t = 0; t < 6; ++t) {
    team.emplace_back([&] {
      while (!stop) {
        pthread_mutex_lock(&at_fork);
        sched_yield();
        pthread_mutex_unlock(&at_fork);
      }
    });
  }
  for (int i = 0; i < 10; ++i) {
    pthread_mutex_lock(&checked_at_fork);
    const pid_t child = fork();
    if (child == 0) {
      alarm(200);  // a child that hangs ends with a signal
      pthread_mutex_unlock(&checked_at_fork);
      many_threads(3, 200);
      std::vector<std::thread> others;
      for (int t = 0; t < 3; ++t) {
        others.emplace_back([] {
          for (int n = 0; n < 200; ++n) {
            pthread_mutex_lock(&at_fork);
            pthread_mutex_unlock(&at_fork);
          }
        });
      }
      for (std::thread& thread : others) thread.join();
      ping_pong(20);
      _exit(0);
    }
    pthread_mutex_unlock(&checked_at_fork);
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
  }
  stop = true;
  for (std::thread& thread : team) thread.join();
}

// As of a library that was there before us, and whose threads do not live through a fork: handlers
// that wait for a thread's end, and for a mutex that a thread has while it makes another one.
std::mutex making;
std::atomic<bool> has_others{false};
std::atomic<bool> ending{false};
std::vector<std::thread> others;

void start_others() {
  ending = false;
  for (int t = 0; t < 3; ++t) {
    others.emplace_back([] {
      while (!ending) {
        const std::scoped_lock lock(making);
        std::thread([] {}).join();
      }
    });
  }
}
void end_others() {
  ending = true;
  for (std::thread& thread : others) thread.join();
  others.clear();
}

void before_all() {
  const auto after = [] {
    if (!has_others) return;
    making.unlock();
    start_others();
  };
  pthread_atfork(
      [] {
        if (!has_others) return;
        end_others();
        making.lock();
      },
      after, after);
}
using Initialiser = void (*)();
[[gnu::used, gnu::section(".preinit_array")]] const Initialiser first_of_all = before_all;

/// Others' handlers wait for threads, and make some, on both sides.
void others_handlers() {
  // Makes and ends threads all along: a fork finds it anywhere.
  std::atomic<bool> stop{false};
  std::thread restless([&] {
    while (!stop) std::thread([] {}).join();
  });
  start_others();
  has_others = true;
  for (int i = 0; i < 10; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(200);
      end_others();
      _exit(0);
    }
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
  }
  has_others = false;
  end_others();
  stop = true;
  restless.join();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "all";
  const auto wanted = [&](const char* name) { return what == "all" || what == name; };
  alarm(1200);
  if (wanted("kinds")) kinds();
  if (wanted("processes")) shared_by_processes();
  if (wanted("threads")) many_threads(64, 2000);
  if (wanted("freed")) freed_at_once();
  if (wanted("conditions")) {
    ping_pong(2000);
    one_for_each_signal();
    broadcasts();
    timed_waits();
  }
  if (wanted("ends")) {
    cancellation();
    many_ends();
    given_back_at_the_end();
    abandoned();
  }
  if (wanted("forks")) {
    others_handlers();
    forks();
  }
  std::puts("passed");
  return 0;
}
