// SPDX-License-Identifier: BSD-3-Clause
// The last of those that use an object destroys it, and its lock with it, while others come back
// from their own sections.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "harness.hpp"
#include "muster/lock.hpp"

namespace muster::test {
namespace {

constexpr unsigned users = 4;
const int objects = emulated ? 100 : 2'000;

struct Object {
  explicit Object(const char* kind) : lock(kind) {}
  muster::lock lock;
  unsigned left = users;
  std::atomic<unsigned> posted{0};
  std::atomic<unsigned> executed{0};
};

/// `leave(object)`: by each user, once; true of who destroys it.
template <class Leave>
void each_object_ends(const char* kind, Leave leave) {
  std::vector<std::atomic<Object*>> all(objects);
  std::atomic<int> ended{0};
  run_threads(users, [&](unsigned user) {
    for (std::atomic<Object*>& shared : all) {
      if (user == 0) shared = new Object(kind);
      while (shared == nullptr) std::this_thread::yield();
      if (Object* const object = shared; leave(*object)) {
        delete object;
        ++ended;
      }
    }
  });
  EXPECT_EQ(objects, ended) << kind;
}

TEST(Destroy, ByTheLastSectionsClient) {
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    each_object_ends(*kind, [](Object& of) {
      return of.lock.execute([left = &of.left] { return --*left == 0; });
    });
  }
}

TEST(Destroy, ByTheLastThatHasReleasedIt) {
  for (const char* kind : {"auto", "rcl", "mcs", "pthread-mutex", "robust"}) {
    each_object_ends(kind, [](Object& of) {
      const std::unique_lock taken(of.lock);
      return --of.left == 0;
    });
  }
}

TEST(Destroy, ByTheLastThatHasItsResult) {
  for (const char* kind : {"auto", "rcl"}) {
    each_object_ends(kind, [](Object& of) {
      return of.lock.async([left = &of.left] { return --*left == 0; }).get();
    });
  }
}

// Whoever waits for all of them need not have posted the last one.
TEST(Destroy, WhenTheLastPostIsExecuted) {
  for (const char* kind : {"auto", "rcl", "cc-synch", "mcs", "pthread-mutex", "robust"}) {
    each_object_ends(kind, [](Object& of) {
      const bool waits = ++of.posted == users;
      of.lock.post([executed = &of.executed] { ++*executed; });
      while (waits && of.executed < users) std::this_thread::yield();
      return waits;
    });
  }
}

// As where exit() destroys a static one. The memory stays.
TEST(Destroy, DoesNotAwaitAThreadThatStaysInASection) {
  static muster_lock* stay[2];  // no leak
  for (const bool combines : {false, true}) {
    const char* const kind = combines ? "cc-synch" : "mcs";
    auto lock = std::make_unique<muster::lock>(kind);
    muster_lock* const handle = stay[combines] = lock->native_handle();
    std::atomic<bool> is_in{false};
    std::atomic<bool> stays{true};
    std::thread other([&] {
      auto section = [&] {
        is_in = true;
        while (stays) std::this_thread::yield();
      };
      muster_lock_execute(
          handle, [](void* of) { (*static_cast<decltype(section)*>(of))(); }, &section);
    });
    while (!is_in) std::this_thread::yield();
    lock.reset();
    stays = false;
    other.join();
  }
}

// Likewise where it has acquired the lock, and is gone.
TEST(Destroy, DoesNotAwaitAThreadThatHasEndedWithTheLock) {
  [[maybe_unused]] static muster_lock* stay[4];  // no leak
  unsigned kinds = 0;
  for (const char* kind : {"auto", "rcl", "mcs", "pthread-mutex"}) {
    const HangGuard guard(60, kind);
    auto lock = std::make_unique<muster::lock>(kind);
    stay[kinds++] = lock->native_handle();
    std::thread([&] { lock->lock(); }).join();
    lock.reset();
  }
}

// Likewise where it waits for a condition, though it will look at the lock.
TEST(Destroy, DoesNotAwaitAThreadThatWaitsForACondition) {
  if (!children_make_threads) GTEST_SKIP() << "no threads' child makes threads here";
  Child child([] {
    auto* const lock = new muster::lock(muster::lock_options{.kind = "auto", .unlocks = true});
    muster::condition never(*lock);
    std::atomic<bool> waits{false};
    std::thread([&] {
      lock->execute([&] {
        waits = true;
        never.wait();
      });
    }).detach();
    while (!waits) std::this_thread::yield();
    lock->execute([] {});  // it has given the lock up
    delete lock;
    _exit(0);
  });
  EXPECT_EQ("", child.wait());
}

}  // namespace
}  // namespace muster::test
