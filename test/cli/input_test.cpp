// SPDX-License-Identifier: BSD-3-Clause
// What the commands say to a file that they shall read and cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "command.hpp"
#include "program.hpp"

namespace {

using testing::StartsWith;
using Input = CommandTest;

/// Of each option that names something to be read: all that can be wrong with that.
TEST_F(Input, ThatIsNoneIsAMistake) {
  const std::filesystem::path none = folder_ / "none";
  const std::filesystem::path nothing = folder_ / "nothing";
  const std::filesystem::path nonsense = folder_ / "nonsense";
  const std::filesystem::path other = folder_ / "other";
  write(nothing, "");
  write(nonsense, "\x01 non\xffsense");
  write(other, R"({"benchmark": "lock", "results": [3]})");
  std::vector<Words> commands{
      {"topo", "--topology", "@"},
      {"topo", "--machine", "@"},
      {"explain", "-m", "core", "-t", "@"},
      {"place", "--machine", "@"},
      {"bench", "barrier", "--topology", "@"},
      {"compare", "@", "@"},
      {"run", "--report", "--machine", "@", "--", "true"},
      {"doctor", "--mpirun", "mpirun", "--mpi-library", "@"},
  };
  if (run_muster({"sim", "--help"}).exit_code == 0) {
    commands.insert(commands.end(), {{"sim", "barrier", "--machine", "@"},
                                     {"sim", "lock", "--machine", "@"},
                                     {"sim", "lock", "--machine", "oak", "--affinity", "@"},
                                     {"sim", "fit", "--machine", "oak", "--measured", "@"},
                                     {"sim", "validate", "--machine", "oak", "--measured", "@"},
                                     {"tune", "--machine", "@"},
                                     {"machine", "import", "--name", "x", "--topology", "core:2",
                                      "--latencies", "@"},
                                     {"machine", "import", "--name", "x", "--latencies", "x.csv",
                                      "--topology", "core:2", "--like", "@"},
                                     {"machine", "measure", "--topology", "@"},
                                     {"measure", "--from", "@"}});
  }
  const std::vector<std::string> files{none, folder_, nothing, nonsense, other, "/dev/zero"};
  for (const std::string& file : files) {
    for (Words words : commands) {
      std::replace(words.begin(), words.end(), std::string("@"), file);
      expect_refused({{words, file}});
    }
    for (const char* const name : {"MUSTER_TOPOLOGY", "MUSTER_PROFILE"}) {
      Words words{"explain", "-p", "8"};
      if (name == std::string("MUSTER_PROFILE")) words.insert(words.end(), {"-t", "core:8 pu:1"});
      words.insert(words.end(), {"-m", "core"});
      const Outcome outcome = run_muster(words, {{name, file}});
      EXPECT_EQ(outcome.exit_code, 2) << name << "=" << file;
      EXPECT_THAT(outcome.err, StartsWith("muster: " + std::string(name) + ": "));
      EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
  }
  // Whose folder it is has to be one, and what it has there of ours.
  for (const std::string& place : files) {
    if (place != folder_)
      expect_refused({{{"report", place}, place}, {{"bench", "summary", place}, place}});
    std::filesystem::remove(folder_ / "barrier.json");
    std::filesystem::create_symlink(place, folder_ / "barrier.json");
    if (place == none) continue;  // there is none
    expect_refused({{{"report", folder_}, "barrier.json"},
                    {{"bench", "summary", folder_}, "barrier.json"},
                    {{"compare", folder_, folder_}, "barrier.json"}});
  }
}

}  // namespace
