// SPDX-License-Identifier: BSD-3-Clause
// What only C programs call by name.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "harness.hpp"
#include "muster/lock.h"
#include "muster/lock.hpp"

namespace muster::test {
namespace {

TEST(LockAbi, PostsAreExecutedInOrderAndBeforeTheNextCall) {
  const HangGuard guard(60);
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    muster_lock_options options;
    muster_lock_options_init(&options);
    options.kind = *kind;
    muster_lock* lock = nullptr;
    ASSERT_EQ(MUSTER_OK, muster_lock_create(&lock, &options)) << *kind << muster_last_error();
    constexpr int posts = 100;
    struct Post {
      std::vector<int>* seen;
      int number;
    };
    std::vector<int> seen;
    std::vector<Post> sent;
    for (int i = 0; i < posts; ++i) sent.push_back({&seen, i});
    for (Post& post : sent) {
      const auto note = [](void* argument) {
        const auto& one = *static_cast<Post*>(argument);
        one.seen->push_back(one.number);
      };
      ASSERT_EQ(MUSTER_OK, muster_post(lock, note, &post)) << *kind;
    }
    EXPECT_EQ(MUSTER_OK, muster_prepare_wait(lock)) << "outside of sections it does nothing";
    std::size_t before = 0;
    const auto count = [&] { before = seen.size(); };
    ASSERT_EQ(MUSTER_OK, muster_execute(
                             lock, [](void* fn) { (*static_cast<decltype(count)*>(fn))(); },
                             const_cast<void*>(static_cast<const void*>(&count))));
    EXPECT_EQ(static_cast<std::size_t>(posts), before) << *kind;
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end())) << *kind;
    muster_lock_destroy(lock);
  }
}

TEST(LockAbi, AForksChildHasAnotherProcessNumber) {
  const muster::lock lock;
  const unsigned number = muster_process_number();
  EXPECT_EQ(number, muster_process_number());
  Child child([&] { _exit(muster_process_number() == number ? 1 : 0); });
  EXPECT_EQ("", child.wait());
  EXPECT_EQ(number, muster_process_number());
}

}  // namespace
}  // namespace muster::test
