// SPDX-License-Identifier: BSD-3-Clause
// An unmodified program under `muster run`, on four NUMA nodes: each of its threads is on the core
// where the pure function puts it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <sstream>

#include "placement/placer.hpp"

namespace muster::test {
namespace {

using ::testing::ElementsAreArray;

/// What a program says, a line each; its end must be good.
std::vector<std::string> lines_of(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 512> some{};
  for (ssize_t got = 0; (got = read(ends[0], some.data(), some.size())) > 0;) {
    text.append(some.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// "5 on 3": CPU and NUMA node, as run-affinity says it.
std::vector<std::string> where_they_belong(unsigned servers, unsigned threads) {
  const Topology topology = Topology::this_machine();
  Placer placer{CoreTree(topology)};
  for (unsigned i = 0; i < servers; ++i) placer.add_server(ServerPolicy::pack);
  std::vector<std::string> all;
  for (const unsigned core : placer.add_threads(threads)) {
    const unsigned cpu = topology.cores()[core].pus.front();
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

}  // namespace
}  // namespace muster::test
