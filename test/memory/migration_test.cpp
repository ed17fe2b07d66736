// SPDX-License-Identifier: BSD-3-Clause
// Migration on any machine; across NUMA nodes: test/numa/memory_test.cpp.
#include "memory/migration.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "memory/pages.hpp"

namespace muster {
namespace {

TEST(Migration, CountsEachPageOnce) {
  const std::size_t pages = 2100;  // more than two batches
  const std::unique_ptr<unsigned char[]> memory(new unsigned char[(pages + 1) * page_size()]);
  void* start = memory.get();
  std::size_t space = (pages + 1) * page_size();
  ASSERT_NE(std::align(page_size(), pages * page_size(), start, space), nullptr);
  std::memset(start, 7, pages * page_size());
  const int home = numa_of_page(start);
  if (home < 0) GTEST_SKIP() << "this kernel does not say where pages are";
  const Migration migration =
      migrate_to_numa(start, pages * page_size(), static_cast<unsigned>(home));
  EXPECT_EQ(migration.pages(), pages);
  EXPECT_EQ(migration.refused, 0U);
  EXPECT_EQ(migration.not_there_yet, 0U);
  EXPECT_EQ(*static_cast<unsigned char*>(start), 7);
}

TEST(Migration, OfNothingIsNothing) { EXPECT_EQ(migrate_to_numa(nullptr, 0, 0).pages(), 0U); }

TEST(Migration, AddsUp) {
  Migration sum{1, 2, 3, 0, 0};
  sum += {10, 20, 30, 40, 5};
  sum += {0, 0, 0, 1, 6};
  EXPECT_EQ(sum.moved, 11U);
  EXPECT_EQ(sum.already_there, 22U);
  EXPECT_EQ(sum.not_there_yet, 33U);
  EXPECT_EQ(sum.refused, 41U);
  EXPECT_EQ(sum.first_refusal, 5);
}

}  // namespace
}  // namespace muster
