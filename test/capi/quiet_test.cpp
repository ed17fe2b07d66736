// SPDX-License-Identifier: BSD-3-Clause
// A wait in which nobody sleeps allocates nothing and makes no system call, so it waits for no lock
// either: a filter kills the process at the first one. A long wait sleeps, and uses no CPU. What
// takes the kernel long is done when a barrier or a lock is made.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <muster/lock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <thread>

#include "every.hpp"

namespace {

thread_local bool counting = false;
constexpr unsigned any_number = ~0U;
thread_local unsigned allocations_left = any_number;  ///< then there is no memory
std::atomic<unsigned> allocations{0};
std::atomic<unsigned> looked_up{0};
std::atomic<unsigned> slept{0};
std::atomic<unsigned> napped{0};

void* take(void* memory) {
  if (memory != nullptr) return memory;
  throw std::bad_alloc();
}
bool may_allocate() {
  if (counting) ++allocations;
  return allocations_left == any_number || (allocations_left > 0 && allocations_left-- > 0);
}

}  // namespace

/// Counts the library's.
extern "C" [[gnu::visibility("default")]] long syscall(long number, ...) noexcept {
  va_list rest;
  va_start(rest, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_pidfd_open) ++looked_up;
  if (number == SYS_futex && arguments[1] == FUTEX_WAIT) ++slept;
  if (number == SYS_clock_nanosleep) ++napped;
  static const auto real = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
  return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
              arguments[5]);
}

// The library's go through the program's operators, as C++ has it. Inlined, they look mismatched to
// the compiler.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return take(may_allocate() ? std::malloc(bytes) : nullptr);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  const std::size_t whole = (bytes + to - 1) / to * to;
  return take(may_allocate() ? std::aligned_alloc(to, whole) : nullptr);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace muster::test {
namespace {

unsigned allocated_in(const std::function<void()>& call) {
  allocations = 0;
  counting = true;
  call();
  counting = false;
  return allocations;
}

int with_allocations(unsigned most, const std::function<int()>& call) {
  allocations_left = most;
  const int status = call();
  allocations_left = any_number;
  return status;
}

TEST(Allocations, AreSeen) {
  const CapiSubject barrier(options_for(1));
  // A rank's first wait allocates its seat.
  EXPECT_GT(allocated_in([&] { muster_barrier_wait(barrier.handle(), 0); }), 0U);
  EXPECT_EQ(allocated_in([&] { muster_barrier_wait(barrier.handle(), 0); }), 0U);
}

TEST(Allocations, ThatFailInAFirstWaitLeaveTheBarrierAsItWas) {
  const CapiSubject barrier(options_for(1));
  const int failed = with_allocations(0, [&] { return muster_barrier_wait(barrier.handle(), 0); });
  EXPECT_EQ(failed, MUSTER_ENOMEM);
  EXPECT_EQ(muster_barrier_wait(barrier.handle(), 0), MUSTER_OK) << muster_last_error();
}

TEST(Allocations, ThatFailInARefusalLeaveACode) {
  muster_lock_options options;
  muster_lock_options_init(&options);
  options.kind = "clh";
  muster_lock* lock = nullptr;
  ASSERT_EQ(muster_lock_create(&lock, &options), MUSTER_OK);
  int status = MUSTER_ENOMEM;
  for (unsigned most = 0; status == MUSTER_ENOMEM; ++most) {
    status = with_allocations(most, [&] { return muster_lock_try_acquire(lock); });
  }
  EXPECT_EQ(status, MUSTER_ENOTSUP);
  muster_lock_destroy(lock);
}

TEST(Allocations, ThatFailWhenAServerEndsDoNotKeepItFromThat) {
  const HangGuard guard(60);
  muster_server* others = nullptr;  // whose place the observer is told
  muster_server* server = nullptr;
  ASSERT_EQ(muster_server_start(&others, nullptr), MUSTER_OK);
  ASSERT_EQ(muster_server_start(&server, nullptr), MUSTER_OK);
  ASSERT_EQ(muster_server_set_observer([](const unsigned*, unsigned, void*) {}, nullptr),
            MUSTER_OK);
  muster_lock_options options;
  muster_lock_options_init(&options);
  options.kind = "rcl";
  options.server = server;
  muster_lock* lock = nullptr;
  ASSERT_EQ(muster_lock_create(&lock, &options), MUSTER_OK);
  std::atomic<bool> blocks{true};
  const auto block = [](void* argument) {
    while (*static_cast<std::atomic<bool>*>(argument)) usleep(100);
  };
  ASSERT_EQ(muster_lock_post(lock, block, &blocks), MUSTER_OK);
  std::thread unblocks([&] {
    usleep(20'000);
    blocks = false;
  });
  EXPECT_EQ(with_allocations(0, [&] { return muster_server_destroy(server); }), MUSTER_OK);
  unblocks.join();
  muster_lock_destroy(lock);
  EXPECT_EQ(muster_server_set_observer(nullptr, nullptr), MUSTER_OK);
  EXPECT_EQ(muster_server_destroy(others), MUSTER_OK);
}

class Quiet : public testing::TestWithParam<std::string> {};

TEST_P(Quiet, WaitsAllocateNothing) {
  const HangGuard guard(60);
  for (const bool shared : {false, true}) {
    for (const char* wait : {"auto", "yield", "sleep"}) {
      muster_options options = options_for(5, GetParam().c_str());
      options.wait = wait;
      options.flags = shared ? unsigned{MUSTER_SHARED} : 0U;
      options.map_by = "core";
      const CapiSubject barrier(options);
      allocations = 0;
      std::atomic<unsigned> failures{0};
      run_threads(5, [&](unsigned rank) {
        const auto meet = [&](unsigned times) {
          for (unsigned i = 0; i < times; ++i) {
            if (muster_barrier_wait(barrier.handle(), rank) != MUSTER_OK) failures.fetch_add(1);
          }
        };
        meet(2);
        counting = rank != 0 || GetParam() != "following";  // whose rank 0 composes
        meet(rounds(200));
        if (muster_barrier_timedwait(barrier.handle(), rank, patience_ns) != MUSTER_OK) {
          failures.fetch_add(1);
        }
        counting = false;
      });
      EXPECT_EQ(failures, 0U);
      EXPECT_EQ(allocations, 0U) << wait;
    }
  }
}

/// From here on the calling thread, and those that it makes, run under this filter.
bool filter_system_calls(std::vector<sock_filter> program) {
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

/// From here on the calling thread may do nothing but end the process and, if it is to watch, look
/// whether another one lives, as a wait does that has taken 20 ms: longer than this test's, unless
/// somebody else wants the CPUs.
bool forbid_system_calls(bool but_for_watching) {
  std::vector<unsigned> allowed{SYS_exit_group};
  if (but_for_watching) {
    for (const unsigned call : {SYS_pidfd_open, SYS_ppoll, SYS_close}) allowed.push_back(call);
#ifdef SYS_poll
    allowed.push_back(SYS_poll);
#endif
  }
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned call : allowed) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  return filter_system_calls(std::move(program));
}

constexpr int no_filter_here = 11;

/// How a process ends in which two threads meet under the filter.
std::string end_under_filter(const std::string& algorithm, const char* wait, bool shared) {
  Child child([&] {
    muster_options options = options_for(2, algorithm.c_str());
    options.wait = wait;
    options.flags = shared ? unsigned{MUSTER_SHARED} : 0U;
    const CapiSubject barrier(options);
    const std::vector<unsigned> cpus = allowed_cpus();
    std::atomic<bool> done{false};
    const auto meet = [&](unsigned rank, unsigned times) {
      for (unsigned i = 0; i < times; ++i) {
        if (muster_barrier_wait(barrier.handle(), rank) != MUSTER_OK) _exit(12);
      }
    };
    const auto take_part = [&](unsigned rank) {
      bind_to_cpu(cpus[rank % cpus.size()]);
      meet(rank, 3);
      if (!forbid_system_calls(shared)) _exit(no_filter_here);
      meet(rank, cpus.size() > 1 ? 20'000 : 20);
    };
    std::thread other([&] {
      take_part(1);
      done = true;
      for (;;) asm volatile("");
    });
    take_part(0);
    while (!done) asm volatile("");
    _exit(0);
  });
  return child.wait();
}

class Silent : public Quiet {};

TEST_P(Silent, SpinningWaitsMakeNoSystemCall) {
  const HangGuard guard(60);
  for (const bool shared : {false, true}) {
    // Where others take the CPUs, waits get long, and long ones may make system calls. A barrier
    // that always makes one fails each time.
    std::string end;
    for (int tries = 30; tries > 0; --tries) {
      end = end_under_filter(GetParam(), "spin", shared);
      if (end != "was ended by signal 31 (SYS)") break;
    }
    if (end == "ended with status " + std::to_string(no_filter_here)) {
      GTEST_SKIP() << "seccomp filters are not allowed here";
    }
    EXPECT_EQ(end, "");
  }
}

std::vector<std::string> silent_names() {
  std::vector<std::string> names = all_names();
  std::erase(names, "following");  // to compose takes memory, which may come from the kernel
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Quiet, testing::ValuesIn(all_names()), identifier);
INSTANTIATE_TEST_SUITE_P(All, Silent, testing::ValuesIn(silent_names()), identifier);

/// CPU time that this process uses for each unit of time in which all but one of the participants
/// wait, over a few episodes.
double cpus_used_waiting(const std::string& algorithm, unsigned participants) {
  constexpr unsigned episodes = 5;
  constexpr useconds_t late_us = 15'000;
  muster_options options = options_for(participants, algorithm.c_str());
  options.wait = "auto";
  const CapiSubject barrier(options);
  const auto now = [](clockid_t clock) {
    timespec at{};
    clock_gettime(clock, &at);
    return static_cast<double>(at.tv_sec) * 1e9 + static_cast<double>(at.tv_nsec);
  };
  double cpu_ns = 0;
  double wall_ns = 0;
  run_threads(participants, [&](unsigned rank) {
    for (unsigned episode = 0; episode <= episodes; ++episode) {
      const bool late = rank == 0 && episode > 0;  // the first one begins when all threads do
      const double cpu = now(CLOCK_PROCESS_CPUTIME_ID);
      const double wall = now(CLOCK_MONOTONIC);
      if (late) usleep(late_us);
      if (late) {
        cpu_ns += now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        wall_ns += now(CLOCK_MONOTONIC) - wall;
      }
      EXPECT_EQ(muster_barrier_wait(barrier.handle(), rank), MUSTER_OK);
    }
  });
  return cpu_ns / wall_ns;
}

/// As many participants as there are CPUs spin, more yield; both but for a millisecond.
void expect_asleep(const std::string& algorithm, unsigned participants) {
  const auto cpus = static_cast<unsigned>(allowed_cpus().size());
  EXPECT_TRUE(in_a_quiet_moment([&] {
    return cpus_used_waiting(algorithm, participants) < 0.4 * std::min(participants - 1, cpus);
  })) << algorithm
      << ", " << participants << " participants";
}

TEST_P(Quiet, SleepsWhileTheLastIsMillisecondsLate) {
  const HangGuard guard(60);
  expect_asleep(GetParam(), 2);
  expect_asleep(GetParam(), 4 * static_cast<unsigned>(allowed_cpus().size()));
}

TEST(QuietAuto, SleepsWhileTheLastIsMillisecondsLate) {
  const HangGuard guard(60);
  for (const unsigned participants : {2U, 4U, 8U, 16U, 64U}) expect_asleep("auto", participants);
}

// A thread with a real-time priority would never let the one run that is leaving.
TEST(Destruction, NapsWhileAnotherIsLeaving) {
  const HangGuard guard(60);
  muster_options options = options_for(2);
  options.flags = MUSTER_SPLIT;
  muster_barrier* barrier = nullptr;
  ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK);
  std::atomic<bool> came{false};
  std::thread other([&] {
    EXPECT_EQ(muster_barrier_arrive(barrier, 1), MUSTER_OK);
    EXPECT_EQ(muster_barrier_arrive(barrier, 0), MUSTER_OK);
    EXPECT_EQ(muster_barrier_depart(barrier, 0), MUSTER_OK);
    const unsigned before = napped;
    came = true;
    while (napped == before) usleep(100);
    EXPECT_EQ(muster_barrier_depart(barrier, 1), MUSTER_OK);
  });
  while (!came) usleep(100);
  muster_barrier_destroy(barrier);
  other.join();
}

// Each sleep is followed by a look. Not everybody looks up the one that is late.
TEST(LongWaits, ShareOutWhomTheyLookUp) {
  const HangGuard guard(60);
  constexpr unsigned waiting = 63;
  const CapiSubject barrier(shared_options(waiting + 1, "sense-reversing", "sleep"));
  const Shared<std::atomic<bool>> all_look;
  Child late([&] {
    if (muster_barrier_wait(barrier.handle(), waiting) != MUSTER_OK) _exit(1);
    while (!all_look->load()) usleep(1'000);
    if (muster_barrier_wait(barrier.handle(), waiting) != MUSTER_OK) _exit(2);
  });
  std::thread counter([&] {
    while (slept < 4 * waiting) usleep(1'000);
    looked_up = slept = 0;
    while (slept < 8 * waiting) usleep(1'000);
    EXPECT_GT(looked_up, 0U);
    EXPECT_LT(looked_up, slept / 3);
    all_look->store(true);
  });
  run_threads(waiting, [&](unsigned rank) {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(muster_barrier_wait(barrier.handle(), rank), MUSTER_OK);
  });
  counter.join();
  EXPECT_EQ(late.wait(), "");
}

bool forbid_registrations() {
  const auto field = [](std::size_t at) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(at));
  };
  std::size_t low = offsetof(seccomp_data, args);
  if constexpr (std::endian::native == std::endian::big) low += 4;
  return filter_system_calls(
      {field(offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 4),
       field(low),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 1, 0),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)});
}

/// In a process of its own, which has used nothing yet. Where it has one thread to register for
/// membarrier(2) is quick, and so a program should do when it makes a barrier or a lock; in its
/// threads the kernel takes some 10 ms.
void expect_registered_once_made(const std::function<std::function<int()>()>& make,
                                 bool for_all_processes = false) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto make_and_use = [&] {
    const HangGuard guard(60);
    const auto fence = [] { return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0); };
    const bool before = fence() == 0;
    const std::function<int()> use = make();
    const bool made = for_all_processes || fence() == 0;  // of those nobody tells
    if (!forbid_registrations()) _exit(0);  // as in Filter.SeesSystemCalls, which says so
    int status = MUSTER_OK;
    std::thread([&] { status = use(); }).join();
    _exit(status == MUSTER_OK && made && !before ? 0 : 1);
  };
  EXPECT_EXIT(make_and_use(), testing::ExitedWithCode(0), "");
}

TEST(FirstUse, OfABarrierRegistersForNoFence) {
  for (const unsigned flags : {0U, unsigned{MUSTER_SHARED}}) {
    expect_registered_once_made(
        [&] {
          muster_options options = options_for(1);
          options.flags = flags;
          muster_barrier* barrier = nullptr;
          EXPECT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK);
          return [=] { return muster_barrier_wait(barrier, 0); };
        },
        flags != 0);
  }
}

/// How to use one that is made here.
std::function<int()> lock_of(const char* kind, muster_server* server) {
  muster_lock_options options;
  muster_lock_options_init(&options);
  options.kind = kind;
  options.server = server;
  muster_lock* lock = nullptr;
  EXPECT_EQ(muster_lock_create(&lock, &options), MUSTER_OK);
  return [=] {
    return muster_lock_execute(
        lock, [](void*) {}, nullptr);
  };
}

TEST(FirstUse, OfALockRegistersForNoFence) {
  for (const char* kind : {"auto", "cc-synch", "rcl"}) {
    expect_registered_once_made([&] { return lock_of(kind, nullptr); });
  }
}

TEST(FirstUse, OfAServersLockRegistersForNoFence) {
  expect_registered_once_made([] {
    muster_server* server = nullptr;
    EXPECT_EQ(muster_server_start(&server, "pack"), MUSTER_OK);
    return lock_of("rcl", server);
  });
}

TEST(Filter, SeesSystemCalls) {
  const HangGuard guard(60);
  const std::string end = end_under_filter("mcs", "sleep", false);
  if (end == "ended with status " + std::to_string(no_filter_here)) {
    GTEST_SKIP() << "seccomp filters are not allowed here";
  }
  EXPECT_NE(end.find("SYS"), std::string::npos) << end;
}

}  // namespace
}  // namespace muster::test
