// SPDX-License-Identifier: BSD-3-Clause
// What sections of the C++ face return, and futures: what they bring, and where they can be waited
// for.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness.hpp"
#include "muster/lock.hpp"

namespace muster::test {
namespace {

TEST(LockFace, ReturnsWhatTheSectionReturns) {
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    const HangGuard guard(60, *kind);
    muster::lock lock(*kind);
    int n = 0;
    EXPECT_EQ(1, lock.execute([&] { return ++n; })) << *kind;
    lock.execute([&] { n += 10; });
    EXPECT_EQ(11, n) << *kind;
    int& reference = lock.execute([&]() -> int& { return n; });
    EXPECT_EQ(&n, &reference) << *kind;
    int&& expiring = lock.execute([&]() -> int&& { return std::move(n); });
    EXPECT_EQ(&n, &expiring) << *kind;
    const auto pointer = lock.execute([&] { return std::make_unique<int>(n); });
    EXPECT_EQ(11, *pointer) << *kind;
  }
}

/// A copy is executed only where nobody can tell (detail::is_as_good_as_its_copy).
TEST(LockFace, ASectionKeepsWhatItChangesInItself) {
  struct Counting {
    int calls = 0;
    void operator()() { ++calls; }
  };
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    muster::lock lock(*kind);
    Counting counting;
    lock.execute(counting);
    lock.execute(std::move(counting));
    EXPECT_EQ(2, counting.calls) << *kind;
    auto inside = [x = 5]() -> const int& { return x; };
    EXPECT_EQ(&inside(), &lock.execute(std::move(inside))) << *kind;
  }
}

/// In a section that another thread executes, nested in the one that has posted.
TEST(LockFace, WhatTheSectionAroundHasPostedIsWaitedForAnywhere) {
  const HangGuard guard(60);
  muster::server server;
  muster::lock posted;
  for (const char* outer : {"auto", "mcs", "pthread-mutex"}) {
    muster::lock around(outer);
    muster::lock delegated("rcl", &server);
    int n = 0;
    around.execute([&] {
      auto result = posted.async([&] { return ++n; });
      delegated.execute([&] { result.wait(); });
      EXPECT_EQ(1, result.get()) << outer;
      auto* const ends = new muster::lock;
      ends->post([&] { ++n; });
      delegated.execute([&] { delete ends; });
      EXPECT_EQ(2, n) << outer;
    });
  }
}

// Likewise where clients combine: who executes it differs from time to time.
TEST(LockFace, WhatTheSectionAroundHasPostedIsWaitedForAmongOthers) {
  const HangGuard guard(120);
  muster::lock around;
  muster::lock posted;
  muster::lock nested;
  std::atomic<bool> ends{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      while (!ends) nested.execute([] { sched_yield(); });
    });
  }
  int n = 0;
  for (int round = 1; round <= (reduced ? 500 : 10'000); ++round) {
    around.execute([&] {
      auto result = posted.async([&] { return ++n; });
      nested.execute([&] { result.wait(); });
      EXPECT_EQ(round, result.get());
    });
  }
  ends = true;
  for (std::thread& other : others) other.join();
}

TEST(LockFace, FuturesBringWhatEachSectionReturnsOrThrows) {
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    const HangGuard guard(60, *kind);
    muster::lock lock(*kind);
    int n = 0;
    FirstFailure failure{};
    run_threads(3, [&](unsigned client) {
      std::vector<muster::future<unsigned>> later;
      for (unsigned i = 0; i < 40; ++i) {
        later.push_back(lock.async([&n, client, i]() -> unsigned {
          ++n;
          if (i % 3 == 0) throw std::logic_error(std::to_string(100 * client + i));
          return 100 * client + i;
        }));
      }
      for (unsigned i = 0; i < later.size(); ++i) {
        std::string got;
        try {
          const unsigned result = later[i].get();
          if (i % 3 != 0) got = std::to_string(result);
        } catch (const std::logic_error& error) {
          if (i % 3 == 0) got = error.what();
        }
        if (got != std::to_string(100 * client + i)) failure.report("got \"" + got + "\"");
      }
    });
    EXPECT_EQ("", failure.text()) << *kind;
    {
      const auto dropped = lock.async([&n] { return ++n; });  // waited for
    }
    EXPECT_EQ(121, n) << *kind;
  }
}

TEST(LockFace, FuturesAreGotAndDroppedInSections) {
  muster::server server;
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    const HangGuard guard(60, *kind);
    int n = 0;
    muster::lock lock(*kind);
    muster::lock other("rcl", &server);
    muster::future<int> later;
    lock.execute([&] {
      auto mine = lock.async([&] { return ++n; });
      auto others = other.async([&] { return n += 10; });
      EXPECT_EQ(1, mine.get()) << *kind;
      EXPECT_EQ(11, others.get()) << *kind;
      auto fails = other.async([]() -> int { throw std::logic_error("no"); });
      EXPECT_THROW(fails.get(), std::logic_error) << *kind;
      {
        const auto dropped = lock.async([&] { return ++n; });
        const auto dropped_too = other.async([&] { return ++n; });
      }
      EXPECT_EQ(13, n) << *kind;
      later = other.async([&] { return ++n; });
    });
    EXPECT_EQ(14, later.get()) << *kind;
    auto in_other = other.async([&] { return lock.async([&] { return ++n; }).get(); });
    EXPECT_EQ(15, lock.execute([&] { return in_other.valid() ? 15 : 0; }));
    EXPECT_EQ(15, in_other.get()) << *kind;
  }
}

/// How a call fails: what it throws.
struct Failure {
  int status = MUSTER_OK;
  std::string text{};
};
template <class Call>
Failure failure_of(Call&& call) {
  try {
    call();
  } catch (const muster::error& error) {
    return {error.status(), error.what()};
  }
  return {};
}

TEST(LockFace, AFutureThatCannotBeReadyInASectionIsRefused) {
  muster::server server;
  muster::lock lock("auto", &server);
  muster::future<int> others;
  std::string refused;
  std::string child_ended;
  lock.execute([&] {
    std::thread([&] { others = lock.async([] { return 7; }); }).join();
    refused = failure_of([&] { others.get(); }).text;
    Child child([&] {
      if (failure_of([&] { others.get(); }).status != MUSTER_EBUSY) _exit(3);
      others = {};  // is not waited for
      _exit(0);
    });
    child_ended = child.wait();
  });
  EXPECT_NE(std::string::npos, refused.find("wait outside")) << refused;
  EXPECT_EQ("", child_ended);
  EXPECT_EQ(7, others.get());
}

TEST(LockFace, AParentsFutureIsRefusedInAChild) {
  muster::server server;
  muster::lock lock("rcl", &server);
  std::atomic<bool> go_on{false};
  auto later = lock.async([&] {
    while (!go_on) sched_yield();
    return 7;
  });
  Child child([&] {
    const Failure refused = failure_of([&] { later.get(); });
    if (refused.status != MUSTER_EBUSY) _exit(3);
    if (refused.text.find("before fork()") == std::string::npos) _exit(4);
    later = {};  // is not waited for
    _exit(0);
  });
  EXPECT_EQ("", child.wait());
  go_on = true;
  EXPECT_EQ(7, later.get());
}

TEST(LockFace, AFutureWithoutAResultIsRefused) {
  muster::lock lock;
  muster::future<int> empty;
  auto got = lock.async([] { return 7; });
  EXPECT_EQ(7, got.get());
  for (muster::future<int>* const invalid : {&empty, &got}) {
    EXPECT_FALSE(invalid->valid());
    EXPECT_EQ(MUSTER_EINVAL, failure_of([&] { invalid->get(); }).status);
    EXPECT_EQ(MUSTER_EINVAL, failure_of([&] { invalid->wait(); }).status);
    EXPECT_EQ(MUSTER_EINVAL, failure_of([&] { static_cast<void>(invalid->is_ready()); }).status);
  }
}

}  // namespace
}  // namespace muster::test
