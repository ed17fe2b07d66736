// SPDX-License-Identifier: BSD-3-Clause
#include "topology/sizes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "describe.hpp"
#include "machine/error.hpp"
#include "topology/topology.hpp"

namespace muster {
namespace {

TEST(Sizes, AreHwlocs) {
  const Sizes sizes = read_sizes(test::machines / "hybrid-6p8e.xml");
  ASSERT_EQ(sizes.caches.size(), 2U);
  EXPECT_EQ(sizes.caches[0].level, "L2");
  EXPECT_EQ(sizes.caches[0].bytes, 4U << 20);
  EXPECT_EQ(sizes.caches[0].count, 8U);
  EXPECT_EQ(sizes.caches[1].level, "L3");
  EXPECT_EQ(sizes.caches[1].bytes, 16U << 20);
  EXPECT_TRUE(sizes.nodes.empty());
}

TEST(Sizes, DistancesAreTheFirmwares) {
  const std::string path = testing::TempDir() + "muster-distances-" + std::to_string(getpid());
  std::ofstream(path) << R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3"
  nodeset="0x5" complete_nodeset="0x5" allowed_nodeset="0x5" gp_index="1">
  <object type="Group" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1"
   gp_index="6" kind="1001" subkind="0">
   <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
    complete_nodeset="0x1" gp_index="2" local_memory="1024"/>
   <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
    complete_nodeset="0x1" gp_index="4"/>
  </object>
  <object type="Group" cpuset="0x2" complete_cpuset="0x2" nodeset="0x4" complete_nodeset="0x4"
   gp_index="7" kind="1001" subkind="0">
   <object type="NUMANode" os_index="2" cpuset="0x2" complete_cpuset="0x2" nodeset="0x4"
    complete_nodeset="0x4" gp_index="3" local_memory="1024"/>
   <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x4"
    complete_nodeset="0x4" gp_index="5"/>
  </object>
 </object>
 <distances2 type="NUMANode" nbobjs="2" kind="5" indexing="os">
  <indexes length="4">0 2 </indexes>
  <u64values length="12">10 21 22 10 </u64values>
 </distances2>
</topology>
)";
  const Sizes sizes = read_sizes(path);
  std::filesystem::remove(path);
  EXPECT_EQ(sizes.nodes, (std::vector<unsigned>{0, 2}));
  EXPECT_EQ(sizes.distances, (std::vector<unsigned>{10, 21, 22, 10}));
}

TEST(Sizes, ADescriptionHasNone) {
  const Sizes sizes = read_sizes(test::machines / "kunpeng920-2s.txt");
  EXPECT_TRUE(sizes.caches.empty() && sizes.nodes.empty() && sizes.distances.empty());
  EXPECT_THROW(read_sizes("/nonexistent"), Error);
}

TEST(Sizes, OfThisMachine) { EXPECT_NO_THROW(read_sizes("")); }

}  // namespace
}  // namespace muster
