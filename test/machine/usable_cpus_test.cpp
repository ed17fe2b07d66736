// SPDX-License-Identifier: BSD-3-Clause
#include "machine/usable_cpus.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "machine/cgroup.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

/// A root directory with the files that control groups would have there.
class FakeRoot : public testing::Test {
 protected:
  FakeRoot() {
    std::string pattern = testing::TempDir() + "muster-root-XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~FakeRoot() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void file(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void cgroups(const std::string& text) const { file("/proc/self/cgroup", text); }
  void mounts(const std::string& text) const { file("/proc/self/mountinfo", text); }

  void version_2(const std::string& group) const {
    cgroups("0::" + group + "\n");
    mounts(
        "22 1 0:21 / /proc rw - proc proc rw\n"
        "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void version_1(const std::string& group) const {
    cgroups("5:memory:/elsewhere\n4:cpu,cpuacct:" + group + "\n1:name=systemd:/x\n");
    mounts(
        "32 31 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:1 propagate_from:2 - cgroup cgroup "
        "rw,cpu,cpuacct\n");
  }
  void limit_1(const std::string& group, const std::string& quota, const std::string& period) {
    file("/sys/fs/cgroup/cpu,cpuacct" + group + "/cpu.cfs_quota_us", quota);
    file("/sys/fs/cgroup/cpu,cpuacct" + group + "/cpu.cfs_period_us", period);
  }
  void limit_2(const std::string& group, const std::string& text) {
    file("/sys/fs/cgroup" + group + "/cpu.max", text);
  }

  std::optional<unsigned> quota() const { return cpu_quota(root_); }

  std::string root_;
};

TEST_F(FakeRoot, WithoutControlGroupsNothingLimits) {
  EXPECT_EQ(quota(), std::nullopt);
  EXPECT_EQ(usable_cpus(root_), affinity_cpus());
}

TEST_F(FakeRoot, ARootWithASlashAtItsEndIsTheSame) {
  version_2("/a");
  limit_2("/a", "300000 100000\n");
  EXPECT_EQ(cpu_quota(root_ + "/"), 3U);
}

TEST_F(FakeRoot, Version2RoundsUpAndIsClamped) {
  using Limit = std::pair<const char*, std::optional<unsigned>>;
  version_2("/a");
  for (const auto& [text, cpus] : {Limit{"100000 100000\n", 1U},
                                   {"100001 100000\n", 2U},
                                   {"150000 100000\n", 2U},
                                   {"1000 100000\n", 1U},
                                   {"6400000 100000\n", 64U},
                                   {"20000 10000", 2U},
                                   {"9000000000000000000 1\n", ~0U},
                                   {"max 100000\n", std::nullopt}}) {
    limit_2("/a", text);
    EXPECT_EQ(quota(), cpus) << text;
    const unsigned allowed = affinity_cpus();
    EXPECT_EQ(usable_cpus(root_), std::min(cpus.value_or(allowed), allowed)) << text;
  }
}

TEST_F(FakeRoot, Version2TheTightestAncestorCounts) {
  version_2("/a/b/c");
  limit_2("/a/b/c", "max 100000\n");
  limit_2("/a/b", "800000 100000\n");
  EXPECT_EQ(quota(), 8U);
  limit_2("/a", "250000 50000\n");
  EXPECT_EQ(quota(), 5U);
  limit_2("", "100000 50000\n");
  EXPECT_EQ(quota(), 2U);
  limit_2("/other", "1000 100000\n");
  EXPECT_EQ(quota(), 2U);
}

TEST_F(FakeRoot, Version1TheTightestAncestorCounts) {
  version_1("/a/b");
  limit_1("/a/b", "-1\n", "100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  limit_1("/a/b", "950000\n", "100000\n");
  EXPECT_EQ(quota(), 10U);
  limit_1("/a", "70000", "10000");
  EXPECT_EQ(quota(), 7U);
  limit_1("", "30000", "10000");
  EXPECT_EQ(quota(), 3U);
}

TEST_F(FakeRoot, ControllersAreWholeWords) {
  cgroups("3:cpuset:/a\n2:cpuacct:/a\n");
  mounts(
      "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
      "33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n");
  file("/sys/fs/cgroup/cpuset/a/cpu.cfs_quota_us", "100000");
  file("/sys/fs/cgroup/cpuset/a/cpu.cfs_period_us", "100000");
  file("/sys/fs/cgroup/cpuacct/a/cpu.cfs_quota_us", "100000");
  file("/sys/fs/cgroup/cpuacct/a/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(FakeRoot, HybridBothVersionsCount) {
  cgroups("1:cpu:/v1\n0::/v2\n");
  mounts(
      "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  file("/sys/fs/cgroup/cpu/v1/cpu.cfs_quota_us", "600000\n");
  file("/sys/fs/cgroup/cpu/v1/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 6U);
  file("/sys/fs/cgroup/unified/v2/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 4U);
  file("/sys/fs/cgroup/cpu/v1/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(quota(), 2U);
}

TEST_F(FakeRoot, AContainerSeesItsGroupAsTheMountsRoot) {
  cgroups("4:cpu:/docker/abc/inner\n");
  mounts("33 31 0:30 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
  file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "500000");
  file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), 5U);
  file("/sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "300000");
  file("/sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), 3U);
}

TEST_F(FakeRoot, AGroupOutsideOfTheMountFallsBackToTheMountsRoot) {
  for (const char* group : {"/../../elsewhere", "/docker/abcdef", "/other"}) {
    cgroups(std::string("0::") + group + "\n");
    mounts("35 24 0:30 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    limit_2("", "300000 100000\n");
    EXPECT_EQ(quota(), 3U) << group;
  }
}

TEST_F(FakeRoot, AMountThatHoldsTheGroupIsPreferred) {
  cgroups("0::/ours/x\n");
  mounts(
      "35 24 0:30 /theirs /mnt/theirs rw - cgroup2 cgroup2 rw\n"
      "36 24 0:30 /ours /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  file("/mnt/theirs/cpu.max", "100000 100000\n");
  limit_2("/x", "300000 100000\n");
  EXPECT_EQ(quota(), 3U);
}

TEST_F(FakeRoot, BlanksInMountPoints) {
  cgroups("0::/a\n");
  mounts("35 24 0:30 / /c\\040groups rw - cgroup2 cgroup2 rw\n");
  file("/c groups/a/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2U);
}

TEST_F(FakeRoot, GarbageLimitsNothing) {
  version_2("/a");
  for (const char* text : {"", "\n", "garbage", "100000", "100000 0", "0 100000", "-5 100000",
                           "100000 -1", "1e5 100000", "100000x 100000",
                           "99999999999999999999 100000", "100000 max", "\xff\xfe\xfd"}) {
    limit_2("/a", text);
    EXPECT_EQ(quota(), std::nullopt) << '"' << text << '"';
  }
  for (const char* text : {"", ":", "::", "0:", "0::", "0::relative", "0:cpu:/a", "::/a", "\n\n"}) {
    limit_2("/a", "100000 100000");
    cgroups(text);
    EXPECT_EQ(quota(), std::nullopt) << '"' << text << '"';
  }
  version_2("/a");
  for (const char* text :
       {"", "- cgroup2 cgroup2 rw", "1 2 3 - cgroup2 x y", "- - - -", "1 2 3 4 5 6 7 8 9",
        "35 24 0:30 / /sys/fs/cgroup rw - cgroup2", "35 24 0:30 / /sys/fs/cgroup rw -"}) {
    mounts(text);
    EXPECT_EQ(quota(), std::nullopt) << '"' << text << '"';
  }
}

TEST_F(FakeRoot, DirectoriesAreGivenFromTheGroupUp) {
  version_2("/a/b");
  const auto directories = cgroup_directories("cpu", root_);
  ASSERT_EQ(directories.size(), 3U);
  EXPECT_EQ(directories[0].path, root_ + "/sys/fs/cgroup/a/b");
  EXPECT_EQ(directories[1].path, root_ + "/sys/fs/cgroup/a");
  EXPECT_EQ(directories[2].path, root_ + "/sys/fs/cgroup");
}

TEST(UsableCpus, AThreadBoundToOneCpuHasOne) {
  unsigned bound = 0;
  unsigned usable = 0;
  std::thread([&] {
    const int cpu = sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    bound = affinity_cpus();
    usable = usable_cpus();
  }).join();
  EXPECT_EQ(bound, 1U);
  EXPECT_EQ(usable, 1U);
}

TEST(UsableCpus, HereItIsAtLeastOneAndNoMoreThanOnline) {
  EXPECT_GE(usable_cpus(), 1U);
  EXPECT_LE(usable_cpus(), static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace
}  // namespace muster
