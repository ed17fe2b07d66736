// SPDX-License-Identifier: BSD-3-Clause
// Runs `muster` as a shell would, in a session of its own, so that the test can see what is left.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

struct Outcome {
  int exit_code = -1;  ///< -1: killed by a signal
  std::string out;
  std::string err;
};

class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments,
                   const std::map<std::string, std::string>& environment = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Outcome wait();
  void kill_it();  ///< with SIGKILL, it alone
  void send(int signal);
  /// Processes of its session that still live; waits up to `patience` for there to be none.
  std::vector<std::string> left(std::chrono::milliseconds patience) const;

 private:
  pid_t pid_ = -1;
  std::string out_path_;
  std::string err_path_;
};

/// Runs it to its end.
Outcome run_muster(const std::vector<std::string>& arguments,
                   const std::map<std::string, std::string>& environment = {});

/// Runs it to its end with so much address space, which limits its threads.
Outcome run_muster_within(std::size_t bytes, const std::vector<std::string>& arguments);

/// Runs it with --json as well, and expects success and that none of its processes is left; what it
/// has printed.
std::string run_muster_for_json(std::vector<std::string> arguments);

struct Mistake {
  std::vector<std::string> words;
  std::string says;
};
/// Expects each of them to be refused in one line that says so, with exit code 2, and nothing else.
void expect_refused(const std::vector<Mistake>& mistakes);
/// The same, added to the command and its --output in a folder of their own, before that is made.
void expect_refused(std::vector<std::string> command, const std::vector<Mistake>& mistakes);

/// Expects `--output` to have left these files in the folder, none of them empty, and of each
/// picture a PNG and an SVG; without matplotlib, that it says so. True if it drew.
bool expect_written(const std::filesystem::path& folder, const Outcome& outcome,
                    std::set<std::string> files, const std::vector<std::string>& pictures);

/// Expects `<folder>/<stem>.json` to be drawn as well where the bounds of the means in `figure` are
/// null: in a turn nothing came to an end.
void expect_drawn_without_bounds(const std::filesystem::path& folder, const std::string& stem,
                                 const std::string& figure);

/// Names in /dev/shm that could be ours or a peer's, but for those there were before and those of
/// processes that live: other tests run meanwhile.
std::vector<std::string> shared_memory_files(const std::vector<std::string>& before = {});
