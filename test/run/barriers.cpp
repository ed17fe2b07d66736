// SPDX-License-Identifier: BSD-3-Clause
// An unmodified program: pthread barriers, and nothing of ours. It runs alone and under
// `muster run --barrier`; "passed" is its last word. What it checks is what POSIX says.
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "expect.h"

namespace {

void in_threads(unsigned count, const std::function<void(unsigned)>& body) {
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  body(0);
  for (std::thread& thread : threads) thread.join();
}

bool wait_at(pthread_barrier_t& barrier) {
  errno = 123;
  const int result = pthread_barrier_wait(&barrier);
  EXPECT(errno == 123);
  EXPECT(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
  return result == PTHREAD_BARRIER_SERIAL_THREAD;
}

/// What each wrote before it is read by all after it; one is told that it is the one.
void team(unsigned count, unsigned episodes) {
  pthread_barrier_t barrier;
  EXPECT(pthread_barrier_init(&barrier, nullptr, count) == 0);
  std::vector<unsigned> data[2] = {std::vector<unsigned>(count), std::vector<unsigned>(count)};
  std::vector<unsigned> chosen(episodes);
  in_threads(count, [&](unsigned me) {
    for (unsigned episode = 0; episode < episodes; ++episode) {
      data[episode % 2][me] = episode + 1;
      if (wait_at(barrier)) ++chosen[episode];
      for (const unsigned word : data[episode % 2]) EXPECT(word == episode + 1);
    }
  });
  for (const unsigned times : chosen) EXPECT(times == 1);
  EXPECT(pthread_barrier_destroy(&barrier) == 0);
}

/// More threads than it waits for, in any order.
void crowd(unsigned threads, unsigned count, unsigned episodes) {
  pthread_barrier_t barrier;
  EXPECT(pthread_barrier_init(&barrier, nullptr, count) == 0);
  std::atomic<unsigned> tickets{0};
  std::atomic<unsigned> chosen{0};
  in_threads(threads, [&](unsigned) {
    while (tickets.fetch_add(1) < count * episodes) chosen += wait_at(barrier) ? 1 : 0;
  });
  EXPECT(chosen == episodes);
  EXPECT(pthread_barrier_destroy(&barrier) == 0);
}

/// One that is stopped where it waits, while others pass so many episodes.
std::atomic<bool> goes_on{false};
void late(unsigned episodes) {
  pthread_barrier_t barrier;
  EXPECT(pthread_barrier_init(&barrier, nullptr, 2) == 0);
  std::signal(SIGUSR1, [](int) {
    while (!goes_on) poll(nullptr, 0, 1);
  });
  std::thread stopped([&] { wait_at(barrier); });
  usleep(20'000);
  pthread_kill(stopped.native_handle(), SIGUSR1);
  std::atomic<unsigned> tickets{0};
  in_threads(2, [&](unsigned) {
    while (tickets.fetch_add(1) <= 2 * episodes) wait_at(barrier);
    goes_on = true;
  });
  stopped.join();
  EXPECT(pthread_barrier_destroy(&barrier) == 0);
}

/// Whoever is told that it is the one destroys it at once; its memory is another's then.
void destruction(unsigned count, unsigned times) {
  std::vector<std::unique_ptr<pthread_barrier_t>> barriers(times);
  for (auto& barrier : barriers) {
    barrier = std::make_unique<pthread_barrier_t>();
    EXPECT(pthread_barrier_init(barrier.get(), nullptr, count) == 0);
  }
  in_threads(count, [&](unsigned) {
    for (auto& barrier : barriers) {
      if (!wait_at(*barrier)) continue;
      EXPECT(pthread_barrier_destroy(barrier.get()) == 0);
      std::memset(barrier.get(), 0xa5, sizeof *barrier);
      barrier.reset();
    }
  });
}

/// In the same memory, for other numbers of threads.
void again() {
  pthread_barrier_t barrier;
  for (unsigned count = 1; count <= 4; ++count) {
    EXPECT(pthread_barrier_init(&barrier, nullptr, count) == 0);
    in_threads(count, [&](unsigned) {
      for (int i = 0; i < 20; ++i) wait_at(barrier);
    });
    EXPECT(pthread_barrier_destroy(&barrier) == 0);
  }
}

void odd_counts() {
  pthread_barrier_t barrier;
  EXPECT(pthread_barrier_init(&barrier, nullptr, 0) == EINVAL);
  EXPECT(pthread_barrier_init(&barrier, nullptr, ~0U) == EINVAL);
  for (const unsigned count : {65536U, 65537U, 1U << 30}) {
    EXPECT(pthread_barrier_init(&barrier, nullptr, count) == 0);
    EXPECT(pthread_barrier_destroy(&barrier) == 0);
  }
}

void between_processes() {
  auto* const barrier = static_cast<pthread_barrier_t*>(mmap(nullptr, sizeof(pthread_barrier_t),
                                                             PROT_READ | PROT_WRITE,
                                                             MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  EXPECT(pthread_barrier_init(barrier, &attributes, 2) == 0);
  const pid_t child = fork();
  for (int i = 0; i < 50; ++i) wait_at(*barrier);
  if (child == 0) std::_Exit(0);
  int status = 1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  EXPECT(pthread_barrier_destroy(barrier) == 0);
}

/// While threads are inside a barrier; the child has one of its own, and makes more.
void forks() {
  pthread_barrier_t barrier;
  EXPECT(pthread_barrier_init(&barrier, nullptr, 4) == 0);
  std::vector<std::thread> waiting;
  for (int i = 0; i < 3; ++i) waiting.emplace_back([&] { wait_at(barrier); });
  usleep(20'000);
  const pid_t child = fork();
  if (child == 0) {
    team(4, 100);
    std::_Exit(0);
  }
  int status = 1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  wait_at(barrier);
  for (std::thread& thread : waiting) thread.join();
  EXPECT(pthread_barrier_destroy(&barrier) == 0);
}

/// In a handler that runs when its thread ends.
pthread_barrier_t last_one;
void ends() {
  EXPECT(pthread_barrier_init(&last_one, nullptr, 3) == 0);
  pthread_key_t key = 0;
  EXPECT(pthread_key_create(&key, [](void*) { wait_at(last_one); }) == 0);
  for (int i = 0; i < 20; ++i) {
    in_threads(4, [&](unsigned me) {
      if (me == 0) return;
      wait_at(last_one);
      EXPECT(pthread_setspecific(key, &last_one) == 0);
    });
  }
  EXPECT(pthread_barrier_destroy(&last_one) == 0);
  EXPECT(pthread_key_delete(key) == 0);
}

}  // namespace

int main() {
  team(1, 1000);
  team(2, 5000);
  team(3, 5000);
  team(4, 5000);
  team(16, 500);
  crowd(5, 2, 5000);
  crowd(7, 3, 5000);
  crowd(8, 1, 5000);
  late(40'000);  // of at most 65,536 threads: a half of 32 bits would number 32,768 episodes
  destruction(2, 5000);
  destruction(6, 1000);
  again();
  odd_counts();
  between_processes();
  forks();
  ends();
  std::puts("passed");
}
