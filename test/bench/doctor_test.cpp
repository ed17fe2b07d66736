// SPDX-License-Identifier: BSD-3-Clause
// The doctor finds what it is shown: each check in a process where that has been provoked.
#include "bench/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>

#include "bench/regime.hpp"
#include "topology/topology.hpp"

namespace muster::bench {
namespace {

using testing::HasSubstr;

const Check& check(std::string_view name) {
  return *std::find_if(all_checks().begin(), all_checks().end(),
                       [&](const Check& one) { return one.name == name; });
}

/// What it says in a process where `provoke` was called first: "costs: " and the sentence.
std::string said(std::string_view name, const std::function<bool()>& provoke) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const char* const words[] = {"fine: ", "costs: ", "unknown: "};
    const Finding finding = provoke() ? check(name).run() : Finding{};
    const std::string text = words[static_cast<int>(finding.verdict)] + finding.found +
                             (finding.remedy.empty() ? "" : " -> " + finding.remedy);
    if (write(ends[1], text.data(), text.size()) < 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = read(ends[0], part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text;
}

PuSet usable() { return Topology::this_machine().pus(); }

bool deny_membarrier() {
  std::array<sock_filter, 4> program{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog filter{program.size(), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(Doctor, ChecksAreNamedOnce) {
  std::set<std::string_view> names;
  for (const Check& one : all_checks()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_FALSE(one.about.empty()) << one.name;
  }
}

TEST(Doctor, FindsOneCpuOfSeveral) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "one CPU";
  const std::string text = said("cpus", [] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(usable().first(), &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
  });
  EXPECT_THAT(text, HasSubstr("costs: 1 of "));
  EXPECT_THAT(text, HasSubstr(" -> "));
}

TEST(Doctor, FindsAQuota) {
  const Regime& regime = *parse_regimes({"quota50"}).front();
  const PuSet cpus = usable();
  if (const std::string why = why_not(regime, cpus); !why.empty()) GTEST_SKIP() << why;
  const Disturbance limit(regime, cpus);
  const std::string text = said("quota", [&] {
    join_cgroup(limit.cgroup());
    return true;
  });
  EXPECT_THAT(text, HasSubstr("costs: A control group grants the time of 0.50 CPUs"));
}

TEST(Doctor, FindsBusyNeighbours) {
  const Disturbance hogs(*parse_regimes({"hogs"}).front(), usable());
  EXPECT_THAT(said("neighbours", [] { return true; }), HasSubstr("costs: Other programs took "));
}

TEST(Doctor, FindsThatMembarrierIsDenied) {
  const std::string text = said("membarrier", deny_membarrier);
  if (text == "fine: ") GTEST_SKIP() << "seccomp filters are not allowed here";
  EXPECT_THAT(text, HasSubstr("costs: membarrier(2) is refused (Operation not permitted)"));
  EXPECT_THAT(said("membarrier", [] { return true; }), HasSubstr("fine: "));
}

TEST(Doctor, FindsAnImposedTopology) {
  const auto impose = [] { return setenv("MUSTER_TOPOLOGY", "package:2 core:4 pu:1", 1) == 0; };
  EXPECT_THAT(said("topology", impose), HasSubstr("costs: MUSTER_TOPOLOGY imposes"));
}

}  // namespace
}  // namespace muster::bench
