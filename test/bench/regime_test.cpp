// SPDX-License-Identifier: BSD-3-Clause
// The regimes' names, and that hogs and control groups are there as long as they should be, and
// gone afterwards.
#include "bench/regime.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/barrier_run.hpp"
#include "bench/measure.hpp"
#include "delegation/cpus.hpp"
#include "delegation/port.hpp"
#include "delegation/thread.hpp"
#include "machine/error.hpp"
#include "machine/usable_cpus.hpp"
#include "topology/topology.hpp"

namespace muster::bench {
namespace {

std::vector<std::string> names_of(const std::vector<std::string>& asked) {
  std::vector<std::string> names;
  for (const Regime* regime : parse_regimes(asked)) names.emplace_back(regime->name);
  return names;
}

const Regime& regime(const std::string& name) { return *parse_regimes({name}).front(); }

void expect_no_children() {
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

/// Waits for what may take a while on a busy machine.
template <class Condition>
bool comes_true(Condition&& condition) {
  const std::int64_t until_ns = clock_ns() + 300'000'000'000;
  while (!condition()) {
    if (clock_ns() > until_ns) return false;
    usleep(1000);
  }
  return true;
}

TEST(ParseRegimes, EachOnceInTheirOrder) {
  EXPECT_EQ(names_of({"quiet"}), (std::vector<std::string>{"quiet"}));
  EXPECT_EQ(names_of({"late", "quota", "hogs", "late"}),
            (std::vector<std::string>{"hogs", "quota150", "quota50", "late"}));
  EXPECT_EQ(names_of({"quota50"}), (std::vector<std::string>{"quota50"}));
  EXPECT_EQ(names_of({"all"}).size(), all_regimes().size());
}

TEST(ParseRegimes, AnUnknownOneIsToldAllNames) {
  try {
    parse_regimes({"hogs", "nonsense"});
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::unknown_name);
    for (const Regime& each : all_regimes()) {
      EXPECT_NE(std::string(error.what()).find(each.name), std::string::npos) << error.what();
    }
  }
}

TEST(Regime, HowManyParticipantsAndCpus) {
  EXPECT_EQ(regime("hogs").participants({}, 2), (std::vector<unsigned>{2, 4, 8}));
  EXPECT_EQ(regime("crowded").participants({}, 2), (std::vector<unsigned>{4, 8}));
  EXPECT_EQ(regime("crowded").participants({}, 64), (std::vector<unsigned>{128, 256}));
  EXPECT_EQ(regime("crowded").participants({2, 3, 8}, 2), (std::vector<unsigned>{3, 8}));
  EXPECT_EQ(regime("crowded").why_fewer({3, 8}, 2), "");
  EXPECT_NE(regime("crowded").why_fewer({2, 8}, 2), "");
  EXPECT_EQ(regime("hogs").why_fewer({2, 8}, 2), "");
  EXPECT_THROW(check_participants({&regime("crowded")}, {1, 2}, 2), Error);
  check_participants({&regime("crowded"), &regime("hogs")}, {1, 2}, 2);
  EXPECT_EQ(regime("hogs").cpus(64), 64U);
  EXPECT_EQ(regime("quota150").cpus(64), 2U);
  EXPECT_EQ(regime("quota50").cpus(64), 1U);
}

class Hogs : public testing::TestWithParam<const char*> {};

TEST_P(Hogs, RunOnEachCpuAndAreGoneAfterwards) {
  const PuSet cpus = Topology::this_machine().pus();
  {
    std::optional<Disturbance> disturbance;
    try {
      disturbance.emplace(regime(GetParam()), cpus);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Status::unsupported) << error.what();
      EXPECT_EQ(GetParam(), std::string("session")) << error.what();
      return;
    }
    const std::vector<pid_t> hogs = disturbance->hogs();
    ASSERT_EQ(hogs.size(), cpus.count());
    PuSet bound;
    for (const pid_t hog : hogs) {
      cpu_set_t mask;
      ASSERT_EQ(sched_getaffinity(hog, sizeof mask, &mask), 0);
      EXPECT_EQ(CPU_COUNT(&mask), 1);
      for (unsigned pu = 0; pu < CPU_SETSIZE; ++pu) {
        if (CPU_ISSET(pu, &mask)) bound.add(pu);
      }
      EXPECT_EQ(getsid(hog) == getsid(0), GetParam() == std::string("hogs"));
      EXPECT_EQ(getsid(hog), getsid(hogs.front()));
    }
    EXPECT_EQ(bound, cpus);
    const std::int64_t before_ns = disturbance->cpu_ns();
    EXPECT_TRUE(comes_true([&] { return disturbance->cpu_ns() > before_ns + 10'000'000; }));
  }
  expect_no_children();
}

INSTANTIATE_TEST_SUITE_P(Bench, Hogs, testing::Values("hogs", "session"));

/// A process that makes a disturbance and is then killed, with it still there. The directory of its
/// control group, or "-" and the reason why there is none.
std::string leave_a_cgroup(int signal) {
  int ends[2];
  if (pipe(ends) != 0) return "-pipe";
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);  // as in a shell: a Ctrl-C goes to the whole group
    std::string told;
    try {
      const Disturbance disturbance(regime("quota50"), Topology::this_machine().pus());
      told = disturbance.cgroup();
      static_cast<void>(!write(ends[1], told.data(), told.size()));
      close(ends[1]);
      for (;;) pause();
    } catch (const Error& error) {
      told = std::string("-") + error.what();
    }
    static_cast<void>(!write(ends[1], told.data(), told.size()));
    _exit(0);
  }
  close(ends[1]);
  char text[4096];
  const ssize_t length = read(ends[0], text, sizeof text);
  close(ends[0]);
  kill(-child, signal);
  waitpid(child, nullptr, 0);
  return std::string(text, length > 0 ? static_cast<std::size_t>(length) : 0);
}

TEST(Quota, IsTheContestantsAndGoneAfterwards) {
  std::string directory;
  try {
    const Disturbance disturbance(regime("quota50"), Topology::this_machine().pus());
    directory = disturbance.cgroup();
    ASSERT_TRUE(std::filesystem::exists(directory)) << directory;
    const pid_t child = fork();
    if (child == 0) {
      join_cgroup(directory);
      _exit(static_cast<int>(usable_cpus()));
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 1) << "half a CPU, rounded up";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::unsupported) << error.what();
    EXPECT_STRNE(error.what(), "");
  }
  EXPECT_FALSE(std::filesystem::exists(directory)) << directory;
  expect_no_children();
}

TEST(Quota, MakesWhoWaitsForALockNap) {
  if (Topology::this_machine().pus().count() < 2) GTEST_SKIP() << "half a CPU counts as one";
  // Bits: the quota is seen before, and in the control group; and naps take their time there.
  const auto seen_in = [](const std::string& directory) noexcept {
    const auto is_limited = [] {
      usleep(1'100'000);  // the last count ages
      delegation::cpus_of_process();
      return delegation::is_time_limited();
    };
    delegation::first_seat();  // of one thread that uses locks
    int seen = is_limited() ? 1 : 0;
    join_cgroup(directory);
    seen |= is_limited() ? 2 : 0;
    rusage before{};
    rusage after{};
    getrusage(RUSAGE_THREAD, &before);
    for (int turn = 0; turn < 10; ++turn) delegation::Port::give_way();
    getrusage(RUSAGE_THREAD, &after);
    return seen | (after.ru_nvcsw - before.ru_nvcsw >= 10 ? 4 : 0);
  };
  try {
    const Disturbance disturbance(regime("quota50"), Topology::this_machine().pus());
    const pid_t child = fork();
    if (child == 0) _exit(seen_in(disturbance.cgroup()));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    const bool limited = cpu_quota().value_or(~0U) < Topology::this_machine().pus().count();
    EXPECT_EQ(WEXITSTATUS(status), limited ? 7 : 6);
  } catch (const Error& error) {
    if (error.code() != Status::unsupported) throw;
    GTEST_SKIP() << error.what();
  }
}

TEST(Quota, IsGoneHoweverTheBenchEnds) {
  for (const int signal : {SIGINT, SIGKILL}) {
    const std::string directory = leave_a_cgroup(signal);
    ASSERT_NE(directory, "");
    if (directory[0] == '-') continue;  // it is left out here
    EXPECT_TRUE(comes_true([&] { return !std::filesystem::exists(directory); })) << directory;
    while (waitpid(-1, nullptr, 0) > 0) {  // its keeper, if we are a subreaper
    }
  }
}

/// Every regime, from options to rows: what this machine cannot make is said to be left out.
TEST(RunBarriers, EveryRegimeHasItsRowsOrIsLeftOut) {
  RunOptions options;
  options.regimes = {"all"};
  options.waits = {"auto", "sleep"};
  options.peers = {"pthread_barrier"};
  options.participants = {2};
  options.rounds = 2;
  options.turn_ms = 5;
  const RunResults results = run_barriers(options, [](const Progress&) {});
  for (const Regime& each : all_regimes()) {
    std::size_t rows = 0;
    for (const Row& row : results.rows) rows += row.regime == &each ? 1 : 0;
    const bool left_out = std::any_of(
        results.left_out.begin(), results.left_out.end(),
        [&](const LeftOut& item) { return item.name == each.name && !item.why.empty(); });
    EXPECT_EQ(rows, left_out ? 0U : 3U) << each.name;
  }
  for (const Row& row : results.rows) {
    if (row.status != RowStatus::ok) {
      EXPECT_NE(row.reason, "");
      continue;
    }
    EXPECT_GT(row.mean_ns, 0);
    EXPECT_GT(row.singles_ns.samples, 0U);
    EXPECT_GE(row.cpu_ns, 0);
    EXPECT_LE(row.mean_ci95.lo, row.mean_ci95.hi);
  }
  expect_no_children();
}

}  // namespace
}  // namespace muster::bench
