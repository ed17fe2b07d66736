// SPDX-License-Identifier: BSD-3-Clause
// An unmodified program under `muster run`, on four NUMA nodes: each of its threads is on the core
// where the pure function puts it, and each of its pages on the servers' NUMA node.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lines_of.hpp"
#include "placement/placer.hpp"

namespace muster::test {
namespace {

using ::testing::ElementsAreArray;

/// "5 on 3": CPU and NUMA node, as run-affinity says it. Servers' cores, on which nobody serves,
/// are the last.
std::vector<std::string> where_they_belong(unsigned servers, unsigned threads) {
  const Topology topology = Topology::this_machine();
  Placer placer{CoreTree(topology)};
  for (unsigned i = 0; i < servers; ++i) placer.add_server(ServerPolicy::pack);
  const unsigned count = placer.tree().cores();
  std::vector<unsigned> cores = placer.add_threads(count - servers);
  for (unsigned core = 0; core < count; ++core) {
    if (placer.now().servers[core] != 0) cores.push_back(core);
  }
  std::vector<std::string> all;
  for (unsigned thread = 0; thread < threads; ++thread) {
    const unsigned cpu = topology.cores()[cores[thread % count]].pus.front();
    all.push_back(fmt::format("{} on {}", cpu, cpu / 4 * 2 + cpu % 2));  // as vm.sh made it
  }
  return all;
}

TEST(Run, ThreadsOfAnUnmodifiedProgramAreWhereThePureFunctionSays) {
  for (const unsigned servers : {1U, 2U, 3U}) {
    for (const char* mutex : {"pthread", "cna"}) {
      EXPECT_THAT(lines_of({"/bin/muster", "run", "--servers", std::to_string(servers), "--mutex",
                            mutex, "--", "/bin/run-affinity", "19", "numa"}),
                  ElementsAreArray(where_they_belong(servers, 19)));
    }
  }
}

TEST(Run, WithoutServersThreadsGoOutwardsFromTheFirstCore) {
  EXPECT_THAT(lines_of({"/bin/muster", "run", "--", "/bin/run-affinity", "9", "numa"}),
              ElementsAreArray({"0 on 0", "2 on 0", "1 on 1", "3 on 1", "4 on 2", "6 on 2",
                                "5 on 3", "7 on 3", "0 on 0"}));
}

std::string report_path() { return ::testing::TempDir() + "run-report"; }

std::vector<std::string> with_memory(const std::string& memory, unsigned servers,
                                     const std::string& threads, const std::string& how) {
  return {
      "/bin/muster", "run", "--servers", std::to_string(servers), "--memory", memory,
      "--mutex",     "mcs", "--json",    report_path(),           "--",       "/bin/run-affinity",
      threads,       how};
}

nlohmann::json reported_memory() {
  std::ifstream file(report_path());
  return nlohmann::json::parse(file)["memory"];
}

TEST(Run, PagesOfAnUnmodifiedProgramAreOnTheServersNumaNode) {
  for (const char* how : {"pages", "small-pages"}) {
    std::vector<std::string> expected = where_they_belong(2, 19);
    for (std::string& line : expected) line += ", pages on 0";
    EXPECT_THAT(lines_of(with_memory("aware", 2, "19", how)), ElementsAreArray(expected));
    const nlohmann::json memory = reported_memory();
    EXPECT_EQ(memory["numa_node"], 0);
    EXPECT_GT(memory["bytes_bound"], 0);
    EXPECT_EQ(memory["bytes_bound"], memory["bytes"]);
    EXPECT_EQ(memory["pages_refused"], 0);
    EXPECT_EQ(memory["regions_refused"], 0);
    EXPECT_EQ(memory["threads_adrift"], 0);
  }
}

// What the test above would see of a malloc that does nothing: each thread's pages are its own
// NUMA node's. So they are where the servers are on several.
TEST(Run, PagesAreByFirstTouchWhereServersShareNoNumaNode) {
  for (const auto& [memory, servers] : {std::pair("default", 2U), std::pair("aware", 3U)}) {
    std::vector<std::string> expected = where_they_belong(servers, 5);
    for (std::string& line : expected) line += ", pages on " + line.substr(line.size() - 1);
    EXPECT_THAT(lines_of(with_memory(memory, servers, "5", "small-pages")),
                ElementsAreArray(expected));
  }
  EXPECT_EQ(reported_memory()["numa_node"], -1);
}

void refuse_mbind() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = std::size(program), .filter = program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    _exit(126);
  }
}

TEST(Run, RefusedBindingsAreReported) {
  lines_of(with_memory("aware", 1, "3", "pages"), refuse_mbind);
  const nlohmann::json memory = reported_memory();
  EXPECT_GT(memory["regions_refused"], 0);
}

}  // namespace
}  // namespace muster::test
