// SPDX-License-Identifier: BSD-3-Clause
// Who gives a lock back wakes whom it did not hear of before: sleeps are so long here that nothing
// else would end them.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "delegation/delegated.hpp"
#include "delegation/make_lock.hpp"
#include "harness.hpp"

namespace muster::test {
namespace {

using delegation::AnyLock;
using delegation::make_lock;
using delegation::Port;
using delegation::Section;

class Doze : public ::testing::Test {
 protected:
  void SetUp() override { Port::lengthen_sleeps(3'600'000'000'000); }
  void TearDown() override { Port::lengthen_sleeps(0); }
};

/// A section that goes on until another thread sleeps that wants its lock, and whose end is as if
/// it had looked at `wanted` before that.
struct Holder {
  std::atomic<Word>* held;
  std::atomic<bool> is_in{false};

  explicit Holder(AnyLock& lock) : held(lock.at_once().held) {}
  static void run(void* argument) {
    auto& self = *static_cast<Holder*>(argument);
    using Row = locks::Numbers<delegation::NumbersPort>::Row;
    auto& row = *reinterpret_cast<Row*>(self.held);
    self.is_in = true;
    while (row.dozing.value.load() % 2 == 0) sched_yield();
    row.wanted.value = 0;
  }
};

void nothing(void*) {}

/// `hold` executes the holder's section; another thread then does what it wants.
template <class Hold, class Want>
void meet(AnyLock& lock, Hold hold, Want want) {
  for (int turn = 0; turn < 20; ++turn) {
    lock.execute({nothing, nullptr});
    Holder holder(lock);
    std::thread other([&] {
      while (!holder.is_in) sched_yield();
      want();
    });
    hold(Section{Holder::run, &holder});
    other.join();
  }
}

TEST_F(Doze, WhoWaitsForItsAnswerIsHeardAfterwards) {
  const auto lock = make_lock({.kind = "auto", .station = nullptr});
  meet(
      *lock, [&](Section section) { lock->execute(section); },
      [&] {
        lock->execute({nothing, nullptr});
      });
}

TEST_F(Doze, WhoWaitsForTheLockIsHeardAfterwards) {
  const auto lock = make_lock({.kind = "auto", .station = nullptr});
  meet(
      *lock, [&](Section section) { lock->execute(section); },
      [&] {
        ASSERT_TRUE(lock->acquire(WaitPolicy::forever));
        lock->release();
      });
}

TEST_F(Doze, WhoseSectionsNobodyElseExecutesIsHeardAfterwards) {
  const auto lock = make_lock({.kind = "auto", .station = nullptr});
  lock->allow_conditions();
  meet(
      *lock, [&](Section section) { lock->execute(section); },
      [&] {
        lock->execute({nothing, nullptr});
      });
}

TEST_F(Doze, WhoWaitsIsHeardByASectionInsideAnother) {
  const auto outer = make_lock({.kind = "auto", .station = nullptr});
  const auto lock = make_lock({.kind = "auto", .station = nullptr});
  meet(
      *lock,
      [&](Section section) {
        struct Both {
          AnyLock& inner;
          Section section;
        } both{*lock, section};
        outer->execute({[](void* argument) {
                          auto& in = *static_cast<Both*>(argument);
                          in.inner.execute(in.section);
                        },
                        &both});
      },
      [&] {
        lock->execute({nothing, nullptr});
      });
}

}  // namespace
}  // namespace muster::test
