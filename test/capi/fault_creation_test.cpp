// SPDX-License-Identifier: BSD-3-Clause
// The table of faults (doc/faults.md), row by row, while a barrier is made and attached to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "children.hpp"
#include "muster/muster.h"
#include "test/barrier/fault_rounds.hpp"

namespace muster::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

muster_options shared_options(unsigned participants) {
  muster_options options;
  muster_options_init(&options);
  options.participants = participants;
  options.flags = MUSTER_SHARED;
  return options;
}

TEST(Row, AFullTmpfsIsAnErrorAndLeavesNothing) {
  if (!can_have_small_dev_shm()) GTEST_SKIP() << "mounting a small tmpfs needs root";
  EXPECT_EQ(in_child([] {
              if (!small_dev_shm()) return false;
              for (unsigned round = 0; round < fault_rounds(); ++round) {
                const muster_options large = shared_options(2000);
                muster_barrier* barrier = nullptr;
                if (muster_barrier_create(&barrier, &large) != MUSTER_ENOMEM) return false;
                if (barrier != nullptr || !leftovers().empty()) return false;
                EXPECT_THAT(muster_last_error(), HasSubstr("does not fit into /dev/shm"));
                const muster_options small = shared_options(2);
                if (muster_barrier_create(&barrier, &small) != MUSTER_OK) return false;
                muster_barrier_destroy(barrier);
                if (!leftovers().empty()) return false;
              }
              return true;
            }),
            0);
}

TEST(Row, AKilledCreatorLeavesNothingAndOthersGetAnError) {
  if (!can_trace_children()) GTEST_SKIP() << "no ptrace here";
  const auto before = leftovers();
  const std::string name = name_prefix() + "creation";
  const auto create = [&] {
    const muster_options options = shared_options(2);
    muster_barrier* barrier = nullptr;
    return muster_barrier_create(&barrier, &options) == MUSTER_OK &&
           muster_barrier_publish(barrier, name.c_str()) == MUSTER_OK;
  };
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const int deaths = kill_at_every_system_call(create, [&] {
      ASSERT_EQ(leftovers(), before);
      muster_barrier* barrier = nullptr;
      ASSERT_EQ(muster_barrier_attach_name(&barrier, name.c_str(), 0), MUSTER_ETIMEDOUT);
    });
    EXPECT_GT(deaths, 20);
    if (HasFailure()) break;
  }
}

TEST(Row, AKilledAttacherLeavesNothingAndOthersGetAnError) {
  if (!can_trace_children()) GTEST_SKIP() << "no ptrace here";
  const auto before = leftovers();
  const std::string name = name_prefix() + "attachment";
  void* const page =
      mmap(nullptr, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto& arriving = *static_cast<std::atomic<bool>*>(page);
  unsigned told = 0;
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    muster_barrier* barrier = nullptr;
    const auto renew = [&] {
      muster_barrier_destroy(barrier);
      muster_options options = shared_options(2);
      options.flags |= MUSTER_SPLIT;
      ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK) << muster_last_error();
      ASSERT_EQ(muster_barrier_publish(barrier, name.c_str()), MUSTER_OK) << muster_last_error();
    };
    renew();
    const std::size_t open = open_descriptors();
    const auto attach = [&] {
      muster_barrier* mine = nullptr;
      if (muster_barrier_attach_name(&mine, name.c_str(), 1'000'000'000) != MUSTER_OK) return false;
      // It has arrived at the last system call, and does not depart.
      arriving = true;
      return muster_barrier_arrive(mine, 1) == MUSTER_OK && getppid() != 0;
    };
    const int deaths = kill_at_every_system_call(attach, [&] {
      // It may have arrived once before it died. If not, nobody knows of it.
      const std::int64_t patience_ns = arriving.exchange(false) ? 90'000'000 : 500'000;
      int status = MUSTER_OK;
      for (int i = 0; i < 3 && status == MUSTER_OK; ++i) {
        status = muster_barrier_timedwait(barrier, 0, patience_ns);
      }
      ASSERT_THAT(status, AnyOf(MUSTER_EPEER, MUSTER_ETIMEDOUT));
      told += status == MUSTER_EPEER ? 1 : 0;
      renew();
      ASSERT_EQ(open_descriptors(), open);
    });
    EXPECT_GT(deaths, 20);
    muster_barrier_destroy(barrier);
    if (HasFailure()) break;
  }
  EXPECT_GT(told, 0U) << "nobody died as a participant";
  EXPECT_EQ(leftovers(), before);
}

}  // namespace
}  // namespace muster::test
