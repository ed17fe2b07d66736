// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string temporary_file() {
  std::string path = (std::filesystem::temp_directory_path() / "muster-cli-XXXXXX").string();
  const int fd = mkstemp(path.data());
  if (fd >= 0) close(fd);
  return path;
}

/// "name state" of each living process in the session.
std::vector<std::string> session(pid_t id) {
  std::vector<std::string> members;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
    const std::string text = read_file(entry.path() / "stat");
    const std::size_t end_of_name = text.rfind(')');
    if (end_of_name == std::string::npos) continue;
    std::istringstream fields(text.substr(end_of_name + 1));
    char state = 0;
    pid_t parent = 0, group = 0, session_id = 0;
    fields >> state >> parent >> group >> session_id;
    if (session_id == id && state != 'Z') members.push_back(text.substr(0, end_of_name + 3));
  }
  return members;
}

}  // namespace

Program::Program(const std::vector<std::string>& arguments,
                 const std::map<std::string, std::string>& environment)
    : out_path_(temporary_file()), err_path_(temporary_file()) {
  std::vector<std::string> words{MUSTER_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  setsid();
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(open(out_path_.c_str(), O_WRONLY | O_TRUNC), STDOUT_FILENO);
  dup2(open(err_path_.c_str(), O_WRONLY | O_TRUNC), STDERR_FILENO);
  execv(argv[0], argv.data());
  _exit(126);
}

Program::~Program() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::filesystem::remove(out_path_);
  std::filesystem::remove(err_path_);
}

Outcome Program::wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out_path_), read_file(err_path_)};
}

void Program::send(int signal) { kill(pid_, signal); }
void Program::kill_it() { send(SIGKILL); }

std::vector<std::string> Program::left(std::chrono::milliseconds patience) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    std::vector<std::string> members = session(pid_);
    if (members.empty() || std::chrono::steady_clock::now() >= until) return members;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Outcome run_muster(const std::vector<std::string>& arguments,
                   const std::map<std::string, std::string>& environment) {
  return Program(arguments, environment).wait();
}

Outcome run_muster_within(std::size_t bytes, const std::vector<std::string>& arguments) {
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit few{bytes, before.rlim_max};
  setrlimit(RLIMIT_AS, &few);
  Program program(arguments);  // inherits it
  setrlimit(RLIMIT_AS, &before);
  return program.wait();
}

std::string run_muster_for_json(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  Program program(arguments);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(program.left(std::chrono::minutes(5)).empty());
  return outcome.out;
}

void expect_refused(const std::vector<Mistake>& mistakes) {
  for (const auto& [words, says] : mistakes) {
    const Outcome outcome = run_muster(words);
    EXPECT_EQ(outcome.exit_code, 2) << says;
    EXPECT_EQ(outcome.out, "") << says;
    EXPECT_THAT(outcome.err, StartsWith("muster: "));
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_THAT(outcome.err, Not(HasSubstr("json.exception")));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

void expect_refused(std::vector<std::string> command, const std::vector<Mistake>& mistakes) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("muster-refused-" + std::to_string(getpid()));
  command.insert(command.end(), {"--output", folder});
  for (const auto& [more, says] : mistakes) {
    std::vector<std::string> words = command;
    words.insert(words.end(), more.begin(), more.end());
    expect_refused({{words, says}});
    EXPECT_FALSE(std::filesystem::remove(folder)) << says << ": a folder was made";
  }
}

bool expect_written(const std::filesystem::path& folder, const Outcome& outcome,
                    std::set<std::string> files, const std::vector<std::string>& pictures) {
  const bool can_draw = std::system("/usr/bin/python3 -c 'import matplotlib' 2>/dev/null") == 0;
  if (can_draw) {
    for (const std::string& picture : pictures) files.insert({picture + ".png", picture + ".svg"});
  } else {
    EXPECT_NE(outcome.err.find("no plot: "), std::string::npos) << outcome.err;
  }
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    found.insert(entry.path().filename());
    EXPECT_GT(entry.file_size(), 100U) << entry.path();
  }
  EXPECT_EQ(found, files) << outcome.err;
  return can_draw;
}

void expect_drawn_without_bounds(const std::filesystem::path& folder, const std::string& stem,
                                 const std::string& figure) {
  auto results = nlohmann::json::parse(read_file(folder / (stem + ".json")));
  for (auto& row : results.at("results")) {
    row.at(figure).at("mean_ci95") = std::vector<nlohmann::json>(2);
  }
  const std::filesystem::path file = folder / "unknown";
  std::ofstream(file) << results;
  const std::string command = "/usr/bin/python3 " MUSTER_SOURCE_DIR "/plot/plot_" + stem + ".py " +
                              file.string() + " " + folder.string();
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::filesystem::remove(file);
}

std::vector<std::string> shared_memory_files(const std::vector<std::string>& before) {
  std::vector<std::string> names;
  std::error_code none;
  constexpr std::string_view libomp = "__KMP_REGISTERED_LIB_";  // then the process
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", none)) {
    const std::string name = entry.path().filename();
    if (std::find(before.begin(), before.end(), name) != before.end()) continue;
    if (name.starts_with(libomp)) {
      const int pid = std::atoi(name.c_str() + libomp.size());
      if (kill(pid, 0) != 0) names.push_back(name);
    } else if (name.find("muster") != std::string::npos) {
      names.push_back(name);
    }
  }
  return names;
}
