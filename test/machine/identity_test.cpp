// SPDX-License-Identifier: BSD-3-Clause
// Who a word names.
#include "machine/identity.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>

namespace muster {
namespace {

TEST(Identity, IsOfAThreadUntilItEnds) {
  Word identity = 0;
  std::thread([&] {
    identity = own_thread().identity;
    EXPECT_FALSE(is_thread_gone(identity));
    EXPECT_TRUE(is_thread_gone(identity ^ Word{1} << identity_hash_shift)) << "another start";
  }).join();
  // Under an emulator it may be seen for a moment after it was joined.
  for (int looks = 0; !is_thread_gone(identity) && looks < 1000; ++looks) std::this_thread::yield();
  EXPECT_TRUE(is_thread_gone(identity));
}

// Some have numbers of few bits, and hashes likewise, and live for ever.
TEST(Identity, NamesNoThreadOfTheKernel) {
  constexpr Word its_threads_parent = 2;
  std::string name;
  std::ifstream("/proc/2/comm") >> name;
  if (name != "kthreadd") GTEST_SKIP() << "none is seen here";
  for (Word hash = 1; hash < Word{1} << (32 - identity_hash_shift); ++hash) {
    const Word identity = hash << identity_hash_shift | its_threads_parent;
    EXPECT_TRUE(is_thread_gone(identity)) << hash;
    EXPECT_TRUE(is_another(identity)) << hash;
  }
}

}  // namespace
}  // namespace muster
