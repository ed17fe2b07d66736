// SPDX-License-Identifier: BSD-3-Clause
// The C ABI's locks and the C++ face over them.
#include <dlfcn.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <any>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "guard.hpp"
#include "harness.hpp"
#include "muster/lock.hpp"

namespace {
std::atomic<unsigned> calls{0};
}

/// The library's, counted.
extern "C" int muster_lock_execute_copy(muster_lock* lock, muster_section section, void* argument,
                                        size_t bytes) {
  static const auto real = reinterpret_cast<decltype(&muster_lock_execute_copy)>(
      dlsym(RTLD_NEXT, "muster_lock_execute_copy"));
  ++calls;
  return real(lock, section, argument, bytes);
}

namespace muster::test {
namespace {

void nothing(void*) {}

// The first: the others start the process's own server, which stays.
TEST(Placement, OfThisThread) {
  unsigned core = 0;
  EXPECT_EQ(MUSTER_EDECLINED, muster_thread_bind(nullptr, &core)) << "there is no server";
  muster_thread_unbind();  // nothing
  unsigned told = 0;
  const auto count = [](const unsigned* numa_nodes, unsigned nodes, void* context) {
    if (nodes == 1 && numa_nodes[0] != 12345) ++*static_cast<unsigned*>(context);
  };
  ASSERT_EQ(MUSTER_OK, muster_server_set_observer(count, &told));
  muster::server server;
  EXPECT_EQ(1U, told);
  muster::lock lock("rcl", &server);
  muster_place expected{};
  EXPECT_EQ(MUSTER_OK, muster_place_servers(nullptr, nullptr, nullptr, 0, &expected, 1));
  const unsigned only = expected.core;
  EXPECT_EQ(MUSTER_OK, muster_place_threads(nullptr, &only, 1, nullptr, &expected, 1));
  run_threads(1, [&](unsigned) {
    const muster::thread_place place(&lock);
    EXPECT_EQ(expected.core, place.core());
    EXPECT_EQ(3, lock.execute([] { return 3; }));
  });
  server.move("spread");
  EXPECT_EQ(2U, told);
  EXPECT_EQ(MUSTER_OK, muster_server_set_observer(nullptr, nullptr));
  { const muster::server unheard; }
  EXPECT_EQ(2U, told);
}

TEST(Placement, TheObserverIsToldOfAForkedChildsServers) {
  if (!children_make_threads) GTEST_SKIP() << "no threads' child makes threads here";
  std::vector<unsigned> told;  // how many NUMA nodes
  const auto note = [](const unsigned*, unsigned nodes, void* context) {
    static_cast<std::vector<unsigned>*>(context)->push_back(nodes);
  };
  ASSERT_EQ(MUSTER_OK, muster_server_set_observer(note, &told));
  {
    const muster::server parents;
    EXPECT_EQ(std::vector<unsigned>{1}, told);
    Child child([&] {
      told.clear();
      { const muster::server own; }
      _exit(told == std::vector<unsigned>{0, 1, 0} ? 0 : 1);
    });
    EXPECT_EQ("", child.wait());
  }
  EXPECT_EQ((std::vector<unsigned>{1, 0}), told);
  EXPECT_EQ(MUSTER_OK, muster_server_set_observer(nullptr, nullptr));
}

// RCLLockInitNUMA at each lock's initialisation: on this machine, and on one that ctest imposes.
TEST(OwnServer, IsPlacedWhenItsLockIsMade) {
  const bool imposed = std::getenv("MUSTER_TOPOLOGY") != nullptr;
  std::set<unsigned> told;
  const auto note = [](const unsigned* numa_nodes, unsigned nodes, void* context) {
    *static_cast<std::set<unsigned>*>(context) = {numa_nodes, numa_nodes + nodes};
  };
  ASSERT_EQ(MUSTER_OK, muster_server_set_observer(note, &told));
  for (const char* const policy : {"pack", "spread"}) {
    muster_place expected[3];
    ASSERT_EQ(MUSTER_OK, muster_place_servers(nullptr, policy, nullptr, 0, expected, 3));
    std::vector<std::unique_ptr<muster::lock>> locks;
    std::vector<std::set<unsigned>> nodes{{}};
    for (const muster_place& place : expected) {
      locks.push_back(std::make_unique<muster::lock>(
          muster::lock_options{.kind = "rcl", .own_server = policy}));
      nodes.push_back(nodes.back());
      nodes.back().insert(static_cast<unsigned>(place.numa_node));  // -1: MUSTER_NO_NUMA_NODE
      EXPECT_EQ(nodes.back(), told) << "memory follows";
      const bool is_there = locks.back()->execute([&] {
        cpu_set_t cpus;
        return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_ISSET(place.pu, &cpus);
      });
      const std::string counted = "counted on core " + std::to_string(place.core) + " of";
      const std::string explained = locks.back()->explain();
      EXPECT_TRUE(imposed ? explained.find(counted) != std::string::npos : is_there) << explained;
    }
    for (; !locks.empty(); locks.pop_back(), nodes.pop_back()) EXPECT_EQ(nodes.back(), told);
    EXPECT_TRUE(told.empty()) << "servers end with their locks";
  }
  muster::server server;
  using std::chrono::nanoseconds;
  const std::pair<muster::lock_options, const char*> refused[] = {
      {{.of = &server, .own_server = "pack"}, "or the one it is given"},
      {{.kind = "mcs", .own_server = "pack"}, "no server executes"},
      {{.own_server = "nice"}, "there are: pack, spread"},
      {{.kind = "mcs", .turn = nanoseconds(1000)}, "only auto and rcl"},
      {{.turn = nanoseconds(-1)}, "no less than nothing"},
      {{.share = nanoseconds(-1)}, "by less than nothing"}};
  for (const auto& [options, text] : refused) {
    try {
      const muster::lock lock(options);
      ADD_FAILURE() << "nothing is wrong, where it should be: " << text;
    } catch (const muster::error& error) {
      EXPECT_NE(std::string::npos, std::string(error.what()).find(text)) << error.what();
    }
  }
  EXPECT_NO_THROW(muster::lock({.kind = "rcl", .turn = nanoseconds(50'000)}));
  EXPECT_EQ(MUSTER_OK, muster_server_set_observer(nullptr, nullptr));
}

TEST(LockFace, SharesTime) {
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    const HangGuard guard(60, *kind);
    muster::lock lock({.kind = *kind, .share = std::chrono::milliseconds(2)});
    constexpr unsigned rounds = 500;
    unsigned n = 0;
    run_threads(3, [&](unsigned) {
      for (unsigned i = 0; i < rounds; ++i) {
        lock.post([&] { ++n; });
        lock.execute([&] {
          if (i == 0) lock.post([&] { ++n; });  // right after
          ++n;
        });
      }
      EXPECT_EQ(5, lock.async([] { return 5; }).get()) << *kind;
    });
    EXPECT_EQ(3 * (2 * rounds + 1), lock.execute([&] { return n; })) << *kind;
    EXPECT_GT(lock.counters().section_ns, 0U) << *kind;
  }
}

#ifdef MUSTER_TAKES_AT_ONCE
TEST(LockFace, AFreeLockIsTakenWithoutACall) {
  muster::lock lock;
  muster::lock other;
  int n = 0;
  lock.execute([&] { ++n; });
  const unsigned before = calls;
  for (int i = 0; i < 100; ++i) lock.execute([&] { ++n; });
  EXPECT_THROW(lock.execute([]() -> int { throw std::out_of_range("it"); }), std::out_of_range);
  EXPECT_EQ(before, calls);
  EXPECT_EQ(102U, lock.counters().by_client);
  other.execute([&] { lock.execute([&] { ++n; }); });
  lock.execute([&] {
    other.execute([&] { ++n; });
    lock.post([&] { n *= 2; });
    EXPECT_THROW(lock.execute([&] { ++n; }), muster::error) << "it would wait for itself";
  });
  EXPECT_EQ(206, n);
  EXPECT_EQ(206, lock.execute([&] { return n; }));
}
#endif

// In line, by a call, and where the section throws or posts.
TEST(LockFace, AllWaysExcludeEachOther) {
  muster::lock lock;
  std::uint64_t n = 0;
  const auto increment = [](void* word) { ++*static_cast<std::uint64_t*>(word); };
  run_threads(4, [&](unsigned) {
    for (int i = 0; i < 5000; ++i) {
      lock.execute([&] { ++n; });
      muster_lock_execute(lock.native_handle(), increment, &n);
      if (i % 4 != 0) continue;
      lock.execute([&] { lock.post([&] { ++n; }); });
      try {
        lock.execute([&] {
          ++n;
          throw i;
        });
      } catch (int) {
      }
    }
  });
  EXPECT_EQ(4 * (2 * 5000 + 2 * 1250U), lock.execute([&] { return n; }));
}

TEST(LockFace, AReferenceIsToWhatHasItsOwnAddressOperator) {
  struct Hidden {
    Hidden* operator&() { return nullptr; }  // NOLINT(google-runtime-operator): the point
  } hidden;
  muster::lock lock;
  EXPECT_EQ(std::addressof(hidden),
            std::addressof(lock.execute([&]() -> Hidden& { return hidden; })));
  Hidden&& expiring = lock.async([&]() -> Hidden&& { return std::move(hidden); }).get();
  EXPECT_EQ(std::addressof(hidden), std::addressof(expiring));
}

struct Unmovable {
  Unmovable() = default;
  Unmovable(Unmovable&&) = delete;
};

/// Whether a section that returns that is accepted.
template <class R>
inline constexpr bool is_executed = requires(muster::lock& lock, R (*section)()) {
  lock.execute(section);
};
template <class R>
inline constexpr bool is_posted = requires(muster::lock& lock, R (*section)()) {
  lock.async(section);
};

TEST(LockFace, WhatCannotBeMovedIsNotReturned) {
  EXPECT_FALSE(is_executed<Unmovable>);
  EXPECT_FALSE(is_posted<Unmovable>);
  EXPECT_TRUE(is_executed<Unmovable&> && is_executed<Unmovable&&>);
  EXPECT_TRUE(is_posted<Unmovable&> && is_posted<Unmovable&&>);
  EXPECT_TRUE(is_executed<std::unique_ptr<Unmovable>> && is_executed<void>);
  EXPECT_TRUE(is_posted<std::unique_ptr<Unmovable>> && is_posted<void>);
}

TEST(LockFace, ExceptionsReachTheCaller) {
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    const HangGuard guard(60, *kind);
    muster::lock lock(*kind);
    FirstFailure failure{};
    run_threads(3, [&](unsigned client) {
      for (unsigned i = 0; i < 20; ++i) {
        const std::string mine = std::to_string(client) + "/" + std::to_string(i);
        try {
          lock.execute([&]() -> int { throw std::runtime_error(mine); });
          failure.report("nothing was thrown");
        } catch (const std::runtime_error& error) {
          if (error.what() != mine) failure.report(std::string("another's: ") + error.what());
        }
      }
    });
    EXPECT_EQ("", failure.text()) << *kind;
    EXPECT_EQ(5, lock.execute([] { return 5; })) << *kind << ": is it still free?";
  }
}

TEST(LockFace, PostsOwnTheirSections) {
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    for (unsigned turn = 0; turn < rounds(10); ++turn) {
      std::uint64_t sum = 0;
      {
        muster::lock lock(*kind);
        for (std::uint64_t i = 1; i <= 100; ++i) {
          lock.post([&sum, copy = std::vector<std::uint64_t>{i}] { sum += copy[0]; });
        }
      }  // its end executes what is left
      ASSERT_EQ(5050U, sum) << *kind;
    }
  }
}

TEST(LockFace, GuardedIsReachedInsideOnly) {
  muster::guarded<std::map<int, int>> table;
  run_threads(4, [&](unsigned client) {
    for (int i = 0; i < 500; ++i) {
      table.execute([&](auto& map) { ++map[i % 10 + static_cast<int>(client)]; });
    }
  });
  int sum = 0;
  for (const auto& [key, value] : table.copy()) sum += value;
  EXPECT_EQ(2000, sum);
  EXPECT_EQ(13U, table.async([](auto& map) { return map.size(); }).get());
}

TEST(LockFace, GuardedByTheLockThatIsNamed) {
  muster::server server;
  muster::guarded<std::string> by_server(muster::lock_options{"rcl", &server}, 3, 'x');
  const std::thread::id executor =
      by_server.execute([](auto&) { return std::this_thread::get_id(); });
  EXPECT_NE(std::this_thread::get_id(), executor) << "the server executes";
  EXPECT_NE(std::string::npos, server.explain().find("on CPU"));
  EXPECT_EQ("xxx", by_server.copy());
  EXPECT_TRUE(in_a_quiet_moment([&] {
    std::this_thread::yield();
    return server.counters().executed >= 2;  // counted after the answer
  })) << server.counters().executed;
  EXPECT_EQ(MUSTER_EINVAL, muster_server_get_counters(nullptr, nullptr, 0));
  muster::guarded<std::vector<int>> empty(muster::lock_options{.kind = "mcs"});
  EXPECT_NE(std::string::npos, empty.native_lock().explain().find("lock: mcs"));
  EXPECT_TRUE(empty.copy().empty());
  // A value that could be made of anything, options as well.
  muster::guarded<std::any> any(muster::lock_options{.kind = "mcs"});
  EXPECT_NE(std::string::npos, any.native_lock().explain().find("lock: mcs"));
  EXPECT_FALSE(any.copy().has_value());
  muster::lock_options named{.kind = "mcs"};
  muster::guarded<std::any> five(named, 5);
  EXPECT_NE(std::string::npos, five.native_lock().explain().find("lock: mcs"));
  EXPECT_EQ(5, std::any_cast<int>(five.copy()));
  const muster::lock_options unknown{.kind = "none-of-these"};
  EXPECT_THROW(muster::guarded<int>(unknown, 1), muster::error);
}

TEST(LockFace, AConstGuardedIsReadOnly) {
  muster::guarded<std::vector<int>> numbers(3, 7);
  const auto& view = numbers;
  const bool value_is_const = view.execute(
      [](auto& vector) { return std::is_const_v<std::remove_reference_t<decltype(vector)>>; });
  EXPECT_TRUE(value_is_const);
  EXPECT_EQ((std::vector<int>{7, 7, 7}), view.copy());
  muster_lock_counters counters;
  ASSERT_EQ(MUSTER_OK, muster_lock_get_counters(numbers.native_lock().native_handle(), &counters,
                                                sizeof counters));
  EXPECT_EQ(2U, counters.by_client + counters.by_others) << "in the lock";
}

TEST(LockAbi, RefusesNonsense) {
  muster_lock* lock = nullptr;
  EXPECT_EQ(MUSTER_EINVAL, muster_lock_create(nullptr, nullptr));
  muster_lock_options options;
  muster_lock_options_init(&options);
  options.kind = "none-of-these";
  EXPECT_EQ(MUSTER_EUNKNOWN, muster_lock_create(&lock, &options));
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    EXPECT_NE(std::string::npos, std::string(muster_last_error()).find(*kind)) << *kind;
  }
  options.kind = "mcs";
  options.memory = &options;
  EXPECT_EQ(MUSTER_ENOTSUP, muster_lock_create(&lock, &options));
  options.memory = nullptr;
  options.attach = 1;
  EXPECT_EQ(MUSTER_EINVAL, muster_lock_create(&lock, &options)) << "attached to nothing";
  options.attach = 0;
  {
    muster_server* unused = nullptr;
    ASSERT_EQ(MUSTER_OK, muster_server_start(&unused, nullptr)) << muster_last_error();
    options.server = unused;
    EXPECT_EQ(MUSTER_EINVAL, muster_lock_create(&lock, &options)) << "no server executes it";
    EXPECT_EQ(MUSTER_OK, muster_server_destroy(unused));
  }
  options = {};
  EXPECT_EQ(MUSTER_EINVAL, muster_lock_create(&lock, &options));
  EXPECT_EQ(nullptr, lock);
  for (const auto call : {muster_lock_execute, muster_lock_post, muster_lock_recover,
                          muster_lock_execute_shared, muster_lock_try_execute}) {
    EXPECT_EQ(MUSTER_EINVAL, call(nullptr, nothing, nullptr));
    EXPECT_EQ(MUSTER_EINVAL, call(nullptr, nullptr, nullptr));
  }
  for (const auto call : {muster_lock_prepare_wait, muster_lock_acquire, muster_lock_release}) {
    EXPECT_EQ(MUSTER_EINVAL, call(nullptr));
  }
  EXPECT_EQ(MUSTER_EINVAL, muster_lock_timed_acquire(nullptr, 1));
  EXPECT_EQ(MUSTER_EINVAL, muster_lock_explain(nullptr, nullptr, nullptr, 0, nullptr));
  EXPECT_EQ(MUSTER_EINVAL, muster_lock_get_counters(nullptr, nullptr, 0));
  EXPECT_EQ(MUSTER_EINVAL, muster_cond_create(nullptr, nullptr));
  EXPECT_EQ(MUSTER_EINVAL, muster_cond_wait(nullptr));
  EXPECT_EQ(MUSTER_EINVAL, muster_cond_timedwait(nullptr, 0));
  EXPECT_EQ(MUSTER_EINVAL, muster_cond_signal(nullptr));
  EXPECT_EQ(MUSTER_EINVAL, muster_cond_broadcast(nullptr));
  EXPECT_EQ(MUSTER_EINVAL, muster_server_move(nullptr, "spread"));
  muster_server* server = nullptr;
  EXPECT_EQ(MUSTER_EUNKNOWN, muster_server_start(&server, "nowhere"));
  EXPECT_EQ(MUSTER_EINVAL, muster_server_start(&server, "3-"));
  EXPECT_EQ(MUSTER_EINVAL, muster_server_start(&server, ""));
  EXPECT_EQ(nullptr, server);
  EXPECT_EQ(MUSTER_OK, muster_server_destroy(nullptr));
  muster_lock_destroy(nullptr);
  muster_cond_destroy(nullptr);
}

// By whomever it is executed.
TEST(LockAbi, ErrnoIsWhatTheSectionLeaves) {
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    muster::lock lock(*kind);
    FirstFailure failure{};
    run_threads(3, [&](unsigned client) {
      int mine = 100 + static_cast<int>(client);
      for (unsigned i = 0; i < rounds(100); ++i) {
        errno = 7;
        muster_lock_execute(lock.native_handle(), nothing, nullptr);
        if (errno != 7) failure.report("errno was 7 and is " + std::to_string(errno));
        const auto section = [](void* argument) { errno = *static_cast<int*>(argument); };
        muster_lock_execute(lock.native_handle(), section, &mine);
        if (errno != mine) failure.report("errno is " + std::to_string(errno));
      }
    });
    EXPECT_EQ("", failure.text()) << *kind;
  }
}

/// Another thread's errno, whose writes are no atomics: this test's race, not the library's.
[[gnu::noinline]] __attribute__((no_sanitize("thread"))) int glance(const int* error) {
  return *error;
}

// A sleep whose time is over changes it.
TEST(LockAbi, ErrnoIsTheCallersWhenItHasWaited) {
  for (const bool shares : {false, true}) {
    muster::lock lock(shares ? "phase-fair" : "mcs");
    const auto execute = shares ? muster_lock_execute_shared : muster_lock_execute;
    execute(lock.native_handle(), nothing, nullptr);  // the next time it goes the short way
    std::atomic<bool> is_taken{false};
    std::atomic<bool> waits{false};
    std::thread holder([&, error = &errno] {
      lock.execute([&] {
        is_taken = true;
        while (!waits || glance(error) == 7) std::this_thread::yield();
      });
    });
    while (!is_taken) std::this_thread::yield();
    errno = 7;
    waits = true;
    int seen = 0;
    const auto section = [](void* to) { *static_cast<int*>(to) = errno; };
    execute(lock.native_handle(), section, &seen);
    holder.join();
    EXPECT_EQ(7, seen) << (shares ? "shared" : "alone");
  }
}

/// As a program does that gives up in a section: exit() destroys what is static.
TEST(LockAbi, ExitInASectionEndsTheProgram) {
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    if (!children_make_threads) continue;
    Child child([&] {
      std::atexit([] { _exit(0); });  // after all that is made from here on has been destroyed
      static std::unique_ptr<muster::lock> lock;
      lock = std::make_unique<muster::lock>(*kind);
      lock->post([] {});
      lock->execute([] { std::exit(EXIT_FAILURE); });
    });
    EXPECT_EQ("", child.wait()) << *kind;
  }
}

TEST(LockAbi, AServerIsNotStoppedInASectionOfItsLocks) {
  for (const char* const kind : {"auto", "rcl"}) {
    muster::server server;
    muster::lock lock(kind, &server);
    const auto refused = lock.execute([&] {
      const int status = muster_server_destroy(server.native_handle());
      return std::pair(status, std::string(muster_last_error()));
    });
    EXPECT_EQ(MUSTER_EINVAL, refused.first) << kind;
    EXPECT_NE(std::string::npos, refused.second.find("outside of sections")) << refused.second;
  }
}

TEST(LockAbi, AChildOfAForkIsRefusedTheServer) {
  if (!children_make_threads) GTEST_SKIP() << "no threads' child makes threads here";
  muster::server server;
  muster_server* const handle = server.native_handle();
  muster::lock lock("rcl", &server);
  muster_lock* const lock_handle = lock.native_handle();
  Child child([&] {
    char text[8];
    if (muster_server_destroy(handle) != MUSTER_EBUSY) _exit(3);
    const std::string told = muster_last_error();
    if (told.find("before fork()") == std::string::npos) _exit(4);
    if (told.find("start the child's own") == std::string::npos) _exit(5);
    if (muster_server_move(handle, nullptr) != MUSTER_EBUSY) _exit(6);
    if (muster_server_explain(handle, nullptr, text, 8, nullptr) != MUSTER_EBUSY) _exit(7);
    if (muster_lock_explain(lock_handle, nullptr, text, 8, nullptr) != MUSTER_EBUSY) _exit(8);
    muster_place place;
    if (muster_server_get_place(handle, &place) != MUSTER_EBUSY) _exit(21);
    muster_lock_choice choice;
    if (muster_lock_get_choice(lock_handle, &choice, sizeof choice) != MUSTER_EBUSY) _exit(20);
    muster::lock around;
    const auto waits = [&] { return muster_lock_prepare_wait(lock_handle); };
    if (around.execute(waits) != MUSTER_EBUSY) _exit(9);
    unsigned core = 0;
    if (muster_thread_bind(lock_handle, &core) != MUSTER_EBUSY) _exit(10);
    try {
      const muster::lock of_the_parents("rcl", &server);
      _exit(11);
    } catch (const muster::error& error) {
      if (error.status() != MUSTER_EBUSY) _exit(12);
    }
    {
      muster::server own;
      const muster::lock of_own("rcl", &own);
    }
    _exit(0);
  });
  EXPECT_EQ("", child.wait());
}

// Whoever executes it, and also if the lock could go on: nobody knows what it has left half done.
TEST(LockAbi, WhatASectionThrowsEndsTheProgram) {
  const muster_section throws = [](void*) { throw std::runtime_error("thrown by a section"); };
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    muster_lock_options options;
    muster_lock_options_init(&options);
    options.kind = *kind;
    for (const bool first : {true, false}) {
      // Which make threads.
      const bool makes_threads = options.kind == std::string("h-synch") ||
                                 options.kind == std::string("phase-fair") ||
                                 std::string(options.kind).find("rcl") != std::string::npos;
      if (makes_threads && !children_make_threads) continue;
      Child child([&] {
        muster_lock* lock = nullptr;
        muster_lock_create(&lock, &options);
        if (!first) muster_lock_execute(lock, nothing, nullptr);
        muster_lock_execute(lock, throws, nullptr);
      });
      EXPECT_EQ("was ended by signal 6 (ABRT)", child.wait()) << *kind << first;
    }
  }
}

std::vector<unsigned> cores_of(const std::vector<muster_place>& places) {
  std::vector<unsigned> cores;
  for (const muster_place& place : places) cores.push_back(place.core);
  return cores;
}

// The papers' Oak: two packages of four cores, a NUMA node each.
TEST(Placement, IsAPureFunctionToo) {
  const char* const oak = "package:2 [numa] l3:1 l2:4 core:1 pu:1";
  std::vector<muster_place> servers(3);
  const unsigned named[] = {5};
  ASSERT_EQ(MUSTER_OK, muster_place_servers(oak, nullptr, named, 1, servers.data(), 3))
      << muster_last_error();
  EXPECT_EQ((std::vector<unsigned>{5, 4, 6}), cores_of(servers));
  EXPECT_EQ(1, servers[1].numa_node);
  EXPECT_EQ(4U, servers[1].pu);
  ASSERT_EQ(MUSTER_OK, muster_place_servers(oak, "spread", named, 0, servers.data(), 3));
  EXPECT_EQ((std::vector<unsigned>{0, 4, 1}), cores_of(servers));
  std::vector<muster_place> threads(4);
  const unsigned at[] = {0, 4};
  ASSERT_EQ(MUSTER_OK, muster_place_threads(oak, at, 2, nullptr, threads.data(), 4));
  EXPECT_EQ((std::vector<unsigned>{1, 2, 3, 5}), cores_of(threads));
  const unsigned near[] = {0, 4, 4, 0};
  ASSERT_EQ(MUSTER_OK, muster_place_threads(oak, at, 2, near, threads.data(), 4));
  EXPECT_EQ((std::vector<unsigned>{1, 5, 6, 2}), cores_of(threads));
  EXPECT_EQ(MUSTER_EUNKNOWN, muster_place_servers(oak, "heap", nullptr, 0, servers.data(), 1));
  const unsigned beyond[] = {8};
  EXPECT_EQ(MUSTER_EINVAL, muster_place_servers(oak, nullptr, beyond, 1, servers.data(), 1));
  EXPECT_EQ(MUSTER_EINVAL, muster_place_threads(oak, at, 0, nullptr, threads.data(), 1));
  EXPECT_EQ(MUSTER_EINVAL, muster_place_threads(oak, at, 1, beyond, threads.data(), 1));
}

TEST(LockFace, CountsItsSections) {
  muster::server server;
  muster::lock sends("rcl", &server);
  const muster::lock counts_nothing("mcs");
  for (int i = 0; i < 5; ++i) sends.execute([] {});
  EXPECT_EQ(5U, sends.counters().by_others);
  EXPECT_EQ(0U, sends.counters().by_client);
  EXPECT_EQ(0U, counts_nothing.counters().by_client + counts_nothing.counters().by_others);
}

}  // namespace
}  // namespace muster::test
