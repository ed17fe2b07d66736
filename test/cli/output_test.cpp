// SPDX-License-Identifier: BSD-3-Clause
#include "cli/output.hpp"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "machine/error.hpp"

namespace muster {
namespace {

TEST(Wrapped, FitsATerminalAndLosesNothing) {
  const std::string words(100, 'x');
  EXPECT_EQ(wrapped("a b\nc", 3), "a b\n   c");
  EXPECT_EQ(wrapped(words, 3), words);  // a word that is too long stays one
  EXPECT_EQ(wrapped("a " + std::string(77, 'b')), "a " + std::string(77, 'b'));
  EXPECT_EQ(wrapped("a " + std::string(78, 'b')), "a\n" + std::string(78, 'b'));
  EXPECT_EQ(wrapped("a " + std::string(75, 'b'), 3), "a\n   " + std::string(75, 'b'));
}

/// In a folder of the test's own.
class Files : public testing::Test {
 protected:
  Files() { std::filesystem::create_directories(directory); }
  ~Files() override { std::filesystem::remove_all(directory); }
  static std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      all.insert(entry.path().filename());
    }
    return all;
  }

  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / ("muster-files-" + std::to_string(getpid()));
};

TEST_F(Files, AreWrittenWholeOrNotAtAll) {
  write_file(directory / "a", "one");
  write_file(directory / "a", "two");
  EXPECT_EQ(text_of(directory / "a"), "two");
  EXPECT_THROW(write_file(directory / "none" / "a", "x"), Error);
  std::filesystem::create_directories(directory / "b");  // a folder cannot be replaced
  EXPECT_THROW(write_file(directory / "b", "x"), Error);
  EXPECT_EQ(names(), (std::set<std::string>{"a", "b"})) << "something unfinished is left";
}

TEST_F(Files, AreExpectedToBeWritableWhereTheyAre) {
  std::filesystem::create_directories(directory / "folder");
  write_file(directory / "file", "kept");
  // Who may do everything cannot make a file in /proc either.
  const std::filesystem::path not_writable[] = {directory / "none" / "a", directory / "file" / "a",
                                                directory / "folder", "/proc/file"};
  for (const std::filesystem::path& path : not_writable) {
    EXPECT_THROW(write_file(path, "x"), Error) << path;
    EXPECT_THROW(expect_writable(path), Error) << path;
  }
  for (const char* name : {"file", "new"}) EXPECT_NO_THROW(expect_writable(directory / name));
  EXPECT_EQ(text_of(directory / "file"), "kept");
  EXPECT_EQ(names(), (std::set<std::string>{"file", "folder"})) << "what was tried is left";
}

TEST_F(Files, ArePreparedBeforeAnythingIsMeasured) {
  const auto prepare = [](const std::string& folder, const std::string& table_type = "csv") {
    ResultFiles{folder, "lock", "plot_lock.py", table_type}.prepare();
  };
  prepare("");
  prepare(directory / "a" / "b");
  EXPECT_TRUE(std::filesystem::is_empty(directory / "a" / "b"));
  EXPECT_THROW(prepare("/proc"), Error);
  write_file(directory / "file", "x");
  EXPECT_THROW(prepare(directory / "file"), Error);
  EXPECT_THROW(prepare(directory / "file" / "below"), Error);
  std::filesystem::create_directories(directory / "a" / "lock.csv");
  EXPECT_THROW(prepare(directory / "a"), Error);
  EXPECT_NO_THROW(prepare(directory / "a", ""));
}

TEST_F(Files, OfEveryEarlierRunAreKept) {
  const auto run = [&](const std::string& text) {
    keep_earlier({{directory / "a.json", text}, {directory / "a.csv", text + "c"}});
    write_file(directory / "a.json", text);
    write_file(directory / "a.csv", text + "c");
  };
  run("one");
  EXPECT_FALSE(std::filesystem::exists(directory / "a.1.json"));
  run("one");  // the same again is the same run
  EXPECT_FALSE(std::filesystem::exists(directory / "a.1.json"));
  write_file(directory / "a.1.csv", "somebody else's");
  testing::internal::CaptureStderr();
  run("two");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("a.2.json"), std::string::npos) << said;
  run("three");
  EXPECT_EQ(text_of(directory / "a.json"), "three");
  EXPECT_EQ(text_of(directory / "a.2.json"), "one");
  EXPECT_EQ(text_of(directory / "a.2.csv"), "onec");
  EXPECT_EQ(text_of(directory / "a.3.csv"), "twoc");
  EXPECT_EQ(text_of(directory / "a.1.csv"), "somebody else's");
  keep_earlier({{"/dev/null", "x"}, {directory / "none", "x"}});  // nothing to keep
  EXPECT_TRUE(std::filesystem::exists("/dev/null"));
}

TEST_F(Files, OfManyRunsAtOnceAreKept) {
  constexpr int runs = 24;
  setenv("MUSTER_PLOT", "", 1);
  testing::internal::CaptureStderr();
  for (int run = 0; run < runs; ++run) {
    if (fork() != 0) continue;
    int code = 1;
    try {
      ResultFiles{directory, "a", ""}.write("j" + std::to_string(run), "c" + std::to_string(run),
                                            "");
      code = 0;
    } catch (const Error&) {
    }
    _exit(code);
  }
  int status = 0;
  while (wait(&status) > 0) EXPECT_EQ(status, 0);
  testing::internal::GetCapturedStderr();
  unsetenv("MUSTER_PLOT");
  std::set<std::string> kept;
  for (const std::string& name : names()) {
    if (!name.ends_with(".json")) continue;
    const std::string run = text_of(directory / name).substr(1);
    kept.insert(run);
    const std::string table = name.substr(0, name.size() - 4) + "csv";
    EXPECT_EQ(text_of(directory / table), "c" + run) << name;
  }
  EXPECT_EQ(kept.size(), std::size_t{runs});
}

TEST_F(Files, ThatCannotBeDrawnAreAFailureInALine) {
  if (std::system("/usr/bin/python3 -c 'import matplotlib' 2>/dev/null") != 0) {
    GTEST_SKIP() << "package python3-matplotlib";
  }
  for (const char* const script : {"plot_barrier.py", "plot_lock.py", "plot_measure.py",
                                   "plot_mpi.py", "plot_sim.py", "plot_sim_lock.py"}) {
    const ResultFiles files{directory, "x", script, "csv"};
    files.prepare();
    testing::internal::CaptureStderr();
    EXPECT_THROW(files.write("{}", "x", ""), Error) << script;
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(said.starts_with(std::string(script) + ": ")) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2) << said;  // and what is written
  }
}

TEST_F(Files, StayWithoutPicturesWhereMatplotlibDoesNotLoad) {
  setenv("PYTHONPATH", directory.c_str(), 1);
  const ResultFiles files{directory / "run", "x", "plot_lock.py", "csv"};
  for (const auto& [raised, told] : std::map<std::string, std::string>{
           {"ModuleNotFoundError('none', name='matplotlib')", "install python3-matplotlib"},
           {"ModuleNotFoundError('none', name='numpy')", "broken: ModuleNotFoundError: none"},
           {"AttributeError('of\\nnumpy')", "broken: AttributeError: of numpy"},
           {"OSError('lib')", "broken: OSError: lib"}}) {
    write_file(directory / "matplotlib.py", "raise " + raised + "\n");
    files.prepare();
    testing::internal::CaptureStderr();
    EXPECT_NO_THROW(files.write("{}", "x", "")) << raised;
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(said.starts_with("plot_lock.py: no plot: ")) << said;
    EXPECT_NE(said.find(told + "\nWritten: "), std::string::npos) << said;
    EXPECT_EQ(text_of(directory / "run" / "x.json"), "{}");
  }
  unsetenv("PYTHONPATH");
}

TEST_F(Files, AreDrawnToTheEndThoughCtrlCIsPressed) {
  const std::filesystem::path script = directory / "plot.py";
  write_file(script,
             "import os, signal, sys\nos.kill(os.getpid(), signal.SIGINT)\n"
             "open(sys.argv[2] + '/drawn', 'w')\n");
  setenv("MUSTER_PLOT", script.c_str(), 1);
  const ResultFiles files{directory, "x", "plot.py", "csv"};
  EXPECT_NO_THROW(files.write("{}", "x", ""));
  unsetenv("MUSTER_PLOT");
  EXPECT_TRUE(std::filesystem::exists(directory / "drawn"));
}

/// What a child writes to a terminal that is its standard error; 0 columns: it does not tell.
std::string on_a_terminal(void (*body)(), unsigned short columns = 0) {
  int ours = -1;
  int terminal = -1;
  const winsize size{25, columns, 0, 0};
  if (openpty(&ours, &terminal, nullptr, nullptr, &size) != 0) return "no terminal";
  const pid_t child = fork();
  if (child == 0) {
    dup2(terminal, STDERR_FILENO);
    body();
    _exit(0);
  }
  close(terminal);
  std::string text;
  char part[256];
  for (ssize_t got = 0; (got = read(ours, part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
  }
  close(ours);
  waitpid(child, nullptr, 0);
  return text;
}

TEST(ProgressLine, TellsOnATerminalHowMuchIsDoneAndHowLongTheRestTakes) {
  const std::string text = on_a_terminal([] {
    ProgressLine line;
    line.show(0.2, "in the first second");
    usleep(1'100'000);
    line.show(0.0001, "too early to tell");
    usleep(250'000);
    line.show(0.25, "by the time since the start");
    line.show(0.26, "at once");
    usleep(250'000);
    line.show(0.5, "as told", 7.0);
    usleep(250'000);
    line.show(0.001, "long", 3601.0);
    line.clear();
  });
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      text, found, std::regex("\r 25 %, ([0-9]+) s left: by the time since the start *")))
      << text;
  EXPECT_GE(std::stoi(found[1]), 4);  // three times the 1.1 s and more that a quarter took
  EXPECT_LT(std::stoi(found[1]), 60);
  EXPECT_NE(text.find("\r  0 %: too early to tell"), std::string::npos) << text;
  EXPECT_NE(text.find("\r 50 %, 7 s left: as told"), std::string::npos) << text;
  EXPECT_NE(text.find("\r  0 %, 61 min left: long"), std::string::npos) << text;
  EXPECT_EQ(text.find("in the first second"), std::string::npos) << text;
  EXPECT_EQ(text.find("at once"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\r" + std::string(78, ' ') + "\r")) << "it is not cleared";
}

TEST(ProgressLine, FitsANarrowTerminal) {
  const std::string text = on_a_terminal(
      [] {
        ProgressLine line;
        usleep(1'100'000);
        line.show(0.5, "longer than the line", 7.0);
      },
      20);
  EXPECT_EQ(text, "\r 50 %, 7 s left: lo\r" + std::string(19, ' ') + "\r");
}

}  // namespace
}  // namespace muster
