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
#include <limits>
#include <optional>
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
std::string said(std::string_view name, const std::function<bool()>& provoke,
                 const Instruments& instruments = {}) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const char* const words[] = {"fine: ", "costs: ", "unknown: "};
    const Diagnosis finding = provoke() ? check(name).run(instruments) : Diagnosis{};
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
  EXPECT_THAT(text, HasSubstr(" got 0."));
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

TEST(Doctor, LooksAtThisMachineWhateverIsImposed) {
  const PuSet here = usable();
  ASSERT_EQ(setenv("HWLOC_SYNTHETIC", "core:64 pu:2", 1), 0);
  const PuSet looked_at = Instruments().topology().pus();
  EXPECT_STREQ(getenv("HWLOC_SYNTHETIC"), "core:64 pu:2");
  unsetenv("HWLOC_SYNTHETIC");
  EXPECT_EQ(looked_at.to_vector(), here.to_vector());
}

/// What it says of a machine that is not here.
std::string said_of(std::string_view name, const char* topology,
                    const std::function<void(Instruments&)>& provoke) {
  Instruments instruments;
  instruments.topology = [topology] { return Topology::from_synthetic(topology); };
  instruments.read = [](const std::string&) { return std::string(); };
  const auto none = [](auto...) -> double {
    ADD_FAILURE() << "there is nothing to measure";
    return 0;
  };
  instruments.turn_ns = none;
  instruments.one_way_ns = none;
  instruments.work_share = none;
  instruments.cold_share = none;
  provoke(instruments);
  return said(
      name, [] { return true; }, instruments);
}

TEST(Doctor, FindsSiblings) {
  const auto beside = [](Instruments& by) {
    by.work_share = [](unsigned cpu, unsigned other) {
      EXPECT_EQ(cpu + 1, other);
      return 0.61;
    };
  };
  const std::string text = said_of("siblings", "package:1 core:4 pu:2", beside);
  EXPECT_THAT(text, HasSubstr("costs: 8 CPUs are 4 cores. CPU 0 does 61 % of its work"));
  EXPECT_THAT(text, HasSubstr(" -> Have one participant a core, at most 4"));
  EXPECT_THAT(said_of("siblings", "package:1 core:4 pu:1", [](Instruments&) {}),
              HasSubstr("fine: Each CPU is a core"));
}

TEST(Doctor, FindsATopologyThatAHypervisorHides) {
  const auto flat = [](double other_half_ns, bool hypervisor) {
    return said_of("topology", "core:16 pu:1", [=](Instruments& by) {
      by.one_way_ns = [=](unsigned a, unsigned b) { return a / 8 == b / 8 ? 50 : other_half_ns; };
      by.read = [=](const std::string& path) {
        return std::string(hypervisor && path == "/proc/cpuinfo" ? "flags : fpu hypervisor" : "");
      };
    });
  };
  const std::string text = flat(140, true);
  EXPECT_THAT(text, HasSubstr("costs: A virtual machine of 16 cores that tells no levels; a line "
                              "takes 50 to 140 ns between them."));
  EXPECT_THAT(text, HasSubstr(" -> Some cores are nearer than others"));
  EXPECT_THAT(flat(60, false), HasSubstr("fine: A machine of 16 cores that tells no levels"));
  EXPECT_THAT(said_of("topology", "package:2 l3:2 core:4 pu:1", [](Instruments&) {}),
              HasSubstr("fine: A machine that tells its levels"));
}

TEST(Doctor, FindsThatSessionsAreGroups) {
  const auto sessions = [](double apart_ns) {
    return said_of("sessions", "core:2 pu:1", [=](Instruments& by) {
      by.turn_ns = [=](bool apart, unsigned) { return apart ? apart_ns : 900.0; };
    });
  };
  EXPECT_THAT(
      sessions(2'900'000),
      HasSubstr("costs: On one CPU, two processes hand over to each other in 0.9 us in one "
                "session, in 2900.0 us in two. -> The kernel schedules sessions as groups"));
  EXPECT_THAT(sessions(1000), HasSubstr("fine: "));
  EXPECT_THAT(sessions(0), HasSubstr("unknown: "));
}

TEST(Doctor, FindsCoresThatSleepDeeply) {
  const auto cold = [](double share) {
    return said_of("frequency", "core:2 pu:1", [=](Instruments& by) {
      by.cold_share = [=](unsigned) { return share; };
      by.read = [](const std::string& path) {
        return std::string(
            path == "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor" ? "powersave\n" : "");
      };
    });
  };
  EXPECT_THAT(cold(0.43), HasSubstr("costs: A core that was idle works at 43 % of its speed for "
                                    "the first 2 ms (governor powersave). -> "));
  EXPECT_THAT(cold(0.95), HasSubstr("fine: "));
}

/// Two packages of four cores that tell their levels: nothing is wrong with it.
Instruments quiet_machine() {
  Instruments by;
  by.topology = [] { return Topology::from_synthetic("package:2 l3:1 core:4 pu:1"); };
  by.read = [](const std::string&) { return std::string(); };
  by.neighbours = [](const PuSet&) { return Neighbours{true, 0.049, 0.049, "cron (process 7)"}; };
  by.usable_cpus = by.online_cpus = [] { return 8U; };
  by.quota = [] { return std::nullopt; };
  by.membarrier = [] { return std::numeric_limits<long>::max(); };
  by.turn_ns = [](bool apart, unsigned) { return apart ? 3900.0 : 1000.0; };
  by.one_way_ns = [](unsigned a, unsigned b) { return a / 4 == b / 4 ? 50.0 : 84.0; };
  by.work_share = [](unsigned, unsigned) { return 0.91; };
  by.cold_share = [](unsigned) { return 0.81; };
  return by;
}

TEST(Doctor, FindsNothingOnAQuietMachine) {
  Instruments by = quiet_machine();
  for (const char* const topology :
       {"package:2 l3:1 core:4 pu:1", "core:8 pu:1", "package:2 l3:1 core:2 pu:2"}) {
    by.topology = [topology] { return Topology::from_synthetic(topology); };
    for (const Check& one : all_checks()) {
      const Diagnosis finding = one.run(by);
      EXPECT_EQ(finding.verdict, Verdict::fine) << one.name << ": " << finding.found;
      EXPECT_EQ(finding.remedy, "") << one.name;
    }
  }
}

TEST(Doctor, LooksThreeTimesAtWhatIsMeasured) {
  Instruments by = quiet_machine();
  unsigned busy = 0;  // looks that find the CPUs so
  by.neighbours = [&](const PuSet&) {
    return Neighbours{true, busy > 0 && busy-- > 0 ? 0.5 : 0.0, 0, ""};
  };
  for (const unsigned looks : {1U, 2U}) {
    busy = looks;
    EXPECT_EQ(examine(check("neighbours"), by).verdict, Verdict::fine) << looks;
  }
  busy = 3;
  const Diagnosis found = examine(check("neighbours"), by);
  EXPECT_EQ(found.verdict, Verdict::costs);
  EXPECT_EQ(found.check, "neighbours");
  EXPECT_EQ(busy, 0U);
}

TEST(Doctor, FindsWhatCostsLittleMore) {
  const auto costs = [](std::string_view name, const std::function<void(Instruments&)>& spoil) {
    Instruments by = quiet_machine();
    spoil(by);
    const Diagnosis finding = check(name).run(by);
    EXPECT_EQ(finding.verdict, Verdict::costs) << name << ": " << finding.found;
    EXPECT_NE(finding.remedy, "") << name;
    return finding.found;
  };
  costs("neighbours", [](Instruments& by) {
    by.neighbours = [](const PuSet&) { return Neighbours{true, 0.05, 0, ""}; };
  });
  costs("neighbours", [](Instruments& by) {
    by.neighbours = [](const PuSet&) { return Neighbours{true, 0, 0.05, ""}; };
  });
  EXPECT_EQ(costs("cpus", [](Instruments& by) { by.usable_cpus = [] { return 7U; }; }),
            "7 of 8 CPUs may be used.");
  costs("membarrier", [](Instruments& by) { by.membarrier = [] { return 0L; }; });
  costs("siblings", [](Instruments& by) {
    by.topology = [] { return Topology::from_synthetic("package:2 l3:1 core:4 pu:2"); };
    by.work_share = [](unsigned, unsigned) { return 0.9; };
  });
  costs("sessions", [](Instruments& by) {
    by.turn_ns = [](bool apart, unsigned) { return apart ? 4000.0 : 1000.0; };
  });
  costs("topology", [](Instruments& by) {
    by.topology = [] { return Topology::from_synthetic("core:8 pu:1"); };
    by.one_way_ns = [](unsigned a, unsigned b) { return a / 4 == b / 4 ? 50.0 : 86.0; };
  });
  costs("frequency", [](Instruments& by) { by.cold_share = [](unsigned) { return 0.8; }; });
}

}  // namespace
}  // namespace muster::bench
