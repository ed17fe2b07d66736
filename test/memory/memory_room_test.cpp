// SPDX-License-Identifier: BSD-3-Clause
#include "memory/memory_room.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace muster {
namespace {

namespace fs = std::filesystem;

class MemoryRoom : public testing::Test {
 protected:
  MemoryRoom() {
    std::string pattern = testing::TempDir() + "muster-room-XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~MemoryRoom() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  void file(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void machine(const std::string& available_kib, const std::string& swap_kib) const {
    file("/proc/meminfo", "MemTotal:       99999 kB\nMemAvailable:   " + available_kib +
                              " kB\nSwapFree:       " + swap_kib + " kB\n");
  }
  std::uint64_t room() const { return memory_room(root_); }

  std::string root_;
};

TEST_F(MemoryRoom, NothingIsKnown) { EXPECT_EQ(room(), UINT64_MAX); }

TEST_F(MemoryRoom, TheMachinesAvailableMemoryAndSwap) {
  machine("1000", "24");
  EXPECT_EQ(room(), 1024U * 1024);
  machine("garbage", "24");
  EXPECT_EQ(room(), UINT64_MAX);
}

TEST_F(MemoryRoom, AVersion2GroupCountsCacheAsFree) {
  machine("1000000", "0");
  file("/proc/self/cgroup", "0::/a/b\n");
  file("/proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  file("/sys/fs/cgroup/a/b/memory.max", "max\n");
  file("/sys/fs/cgroup/a/b/memory.current", "700\n");
  EXPECT_EQ(room(), 1'024'000'000U);
  file("/sys/fs/cgroup/a/memory.max", "1000\n");
  file("/sys/fs/cgroup/a/memory.current", "900\n");
  EXPECT_EQ(room(), 100U);
  file("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 30\nactive_file 20\n");
  EXPECT_EQ(room(), 150U);
  file("/sys/fs/cgroup/a/memory.current", "2000\n");
  EXPECT_EQ(room(), 0U);
}

TEST_F(MemoryRoom, AVersion1Group) {
  machine("1000000", "0");
  file("/proc/self/cgroup", "4:memory:/a\n");
  file("/proc/self/mountinfo", "35 24 0:30 / /cg/memory rw - cgroup cgroup rw,memory\n");
  file("/cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
  file("/cg/memory/memory.usage_in_bytes", "5000\n");
  EXPECT_EQ(room(), 1'024'000'000U);
  file("/cg/memory/a/memory.limit_in_bytes", "6000\n");
  file("/cg/memory/a/memory.usage_in_bytes", "5000\n");
  file("/cg/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 300\n");
  EXPECT_EQ(room(), 1300U);
}

TEST_F(MemoryRoom, HereSomethingIsLeft) { EXPECT_GT(memory_room(), 1U << 20); }

}  // namespace
}  // namespace muster
