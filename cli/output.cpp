// SPDX-License-Identifier: BSD-3-Clause
#include "cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "machine/error.hpp"
#include "topology/text_file.hpp"

namespace muster {
namespace {

std::string find_plot_script(const std::string& name) {
  if (const char* const set = secure_getenv("MUSTER_PLOT"); set != nullptr) return set;
  std::error_code none;
  auto above = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  for (int levels = 0; levels < 3; ++levels, above = above.parent_path()) {
    const auto script = above / "share/muster" / name;
    if (std::filesystem::exists(script, none)) return script;
  }
  return {};
}

enum class Plot { drawn, left_out, failed };

/// Runs the plot script; says on standard error what is missing, if anything is.
Plot plot(const std::string& name, const std::string& data, const std::string& folder) {
  const std::string script = find_plot_script(name);
  if (script.empty()) {
    note("muster: no plot: {} was not found\n", name);
    return Plot::left_out;
  }
  // Debian's matplotlib belongs to Debian's Python, which need not be the first on PATH.
  const char* const python = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
  const pid_t child = fork();
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    std::signal(SIGINT, SIG_IGN);  // it takes a second, and what it draws is whole
    execlp(python, python, script.c_str(), data.c_str(), folder.c_str(),
           static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = -1;
  if (child > 0) waitpid(child, &status, 0);
  if (status == 0) return Plot::drawn;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == 127) note("muster: no plot: install python3 and python3-matplotlib\n");
  // 3 and 4: why, the script has said.
  return code == 127 || code == 3 || code == 4 ? Plot::left_out : Plot::failed;
}

/// A device, a pipe or a link is written to: in its place a file would be a loss.
bool can_be_replaced(const std::string& path) {
  std::error_code none;
  const auto status = std::filesystem::symlink_status(path, none);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
}

/// Where a file is made before it gets its name.
std::string unfinished(const std::string& path) { return fmt::format("{}.{}", path, getpid()); }

int open_new(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

/// The whole of it; false, with errno, if that failed.
bool write_all(int fd, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = write(fd, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    written += static_cast<std::size_t>(n);
  }
  return true;
}

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

[[noreturn]] void fail_to_write(const std::string& path, int error) {
  throw Error(Status::system, fmt::format("{} cannot be written: {}", path, std::strerror(error)));
}

/// Of the terminal, for a line that is written again: the last one stays free, so nothing wraps.
int columns() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? std::min(78, size.ws_col - 1) : 78;
}

constexpr double share_that_tells = 0.02;

std::string left(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s left", seconds);
  return fmt::format("{:.0f} min left", std::ceil(seconds / 60));
}

}  // namespace

bool ProgressLine::is_terminal() { return isatty(STDERR_FILENO) == 1; }

void ProgressLine::show(double share, const std::string& what, std::optional<double> left_s) {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + period();
  const double passed_s = std::chrono::duration<double>(now - start_).count();
  const double done = std::clamp(share, 0.0, 1.0);
  // The time since the start says nothing of the rest while next to nothing is done.
  const bool is_overdue = !left_s && done >= 0.995;  // than was thought: no share is known
  if (!left_s && done >= share_that_tells) left_s = std::ceil(passed_s / done - passed_s);
  const std::string text = is_overdue ? what
                                      : fmt::format("{:3.0f} %{}: {}", 100 * done,
                                                    left_s ? ", " + left(*left_s) : "", what);
  if (terminal_) {
    note("\r{:<{}.{}}", text, columns(), columns());
    std::fflush(stderr);
    shown_ = true;
  } else {
    note("muster: {}\n", text);
  }
}

void ProgressLine::clear() {
  if (shown_) note("\r{:{}}\r", "", columns());
  shown_ = false;
}

std::string wrapped(const std::string& text, std::size_t indent) {
  constexpr std::size_t kColumns = 79;
  const std::string next_line = "\n" + std::string(indent, ' ');
  std::string lines;
  std::size_t column = indent;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find_first_of(" \n", from), text.size());
    const bool first = column == indent;
    if (!first && column + 1 + to - from > kColumns) {
      lines += next_line;
      column = indent;
    } else if (!first) {
      lines += " ";
      ++column;
    }
    lines.append(text, from, to - from);
    column += to - from;
    if (to < text.size() && text[to] == '\n') {
      lines += next_line;
      column = indent;
    }
    from = to + 1;
  }
  return lines;
}

nlohmann::ordered_json read_results(const std::string& path) {
  using Json = nlohmann::ordered_json;
  // Its texts are printed: they may be anybody's.
  const auto harmless = [&](int, Json::parse_event_t event, Json& value) {
    if (!value.is_string()) return true;
    const auto& written = value.get_ref<const std::string&>();
    std::string text = printable(written);
    if (event == Json::parse_event_t::key && text != written)
      throw Error(Status::invalid, path + " is no result file: a name with control characters");
    value = std::move(text);
    return true;
  };
  auto json = Json::parse(read_text_file(path, "result file"), harmless, false);
  if (!json.is_object()) throw Error(Status::invalid, path + " is no result file: no JSON object");
  return json;
}

void check_folder(const std::string& folder) {
  std::error_code none;
  if (!std::filesystem::is_directory(folder, none)) {
    throw Error(Status::invalid, fmt::format("there is no folder {}", folder));
  }
}

std::string for_a_terminal(const std::string& text) {
  constexpr std::size_t columns = 80;
  std::string all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::size_t begin = line.find_first_not_of(' ');
    if (line.size() > columns) {
      const std::size_t gap = line.find("  ", begin);
      if (gap != std::string::npos) begin = line.find_first_not_of(' ', gap);
      line = line.substr(0, begin) + wrapped(line.substr(begin), begin);
    }
    all += line + "\n";
  }
  return all;
}

std::string format_json(const nlohmann::ordered_json& json) {
  if (json.is_object() && !json.contains("schema")) {
    nlohmann::ordered_json first{{"schema", 1}};
    first.update(json);
    return format_json(first);
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

FolderLock::FolderLock(const std::string& path)
    : folder_(open(std::filesystem::absolute(path).parent_path().c_str(),
                   O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  const auto taken = [&] { return flock(folder_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; };
  for (int tries = 0; tries < 1000 && taken(); ++tries) usleep(10'000);
}

FolderLock::~FolderLock() {
  if (folder_ >= 0) close(folder_);
}

void write_file(const std::string& path, const std::string& text) {
  const std::string made = can_be_replaced(path) ? unfinished(path) : path;
  const int fd = open_new(made);
  bool good = fd >= 0 && write_all(fd, text);
  int error = errno;
  if (fd >= 0 && close(fd) != 0 && good) {
    good = false;
    error = errno;
  }
  if (good && made != path && rename(made.c_str(), path.c_str()) != 0) {
    good = false;
    error = errno;
  }
  if (good) return;
  if (fd >= 0 && made != path) unlink(made.c_str());
  fail_to_write(path, error);
}

void expect_writable(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) fail_to_write(path, EISDIR);
  if (!can_be_replaced(path)) {
    if (access(path.c_str(), W_OK) != 0) fail_to_write(path, errno);
    return;
  }
  const std::string made = unfinished(path);
  const int fd = open_new(made);
  if (fd < 0) fail_to_write(path, errno);
  close(fd);
  unlink(made.c_str());
}

void write_and_tell(const std::string& path, const std::string& text, const std::string& hint) {
  write_file(path, text);
  note("Written: {}{}\n", printable(path), hint);
}

void keep_earlier(const std::vector<std::pair<std::string, std::string>>& files) {
  namespace fs = std::filesystem;
  std::error_code none;
  const auto kept_as = [](const std::string& path, unsigned number) {
    const fs::path from(path);
    return from.parent_path() /
           fmt::format("{}.{}{}", from.stem().string(), number, from.extension().string());
  };
  const auto all_of = [&](const auto& holds) {
    return std::all_of(files.begin(), files.end(), holds);
  };
  // What is no file, such as /dev/stdout, has nothing to keep.
  if (all_of([&](const auto& file) {
        return !fs::is_regular_file(file.first, none) || read_all(file.first) == file.second;
      })) {
    return;
  }
  unsigned number = 1;
  while (!all_of([&](const auto& file) { return !fs::exists(kept_as(file.first, number), none); }))
    ++number;
  std::string names;
  for (const auto& [path, text] : files) {
    if (!fs::is_regular_file(path, none)) continue;
    const fs::path kept = kept_as(path, number);
    fs::rename(path, kept, none);
    if (none) fail_to_write(kept, none.value());
    names += (names.empty() ? "" : ", ") + kept.string();
  }
  note("Kept: the run before, as {}\n", printable(names));
}

void write_run(const std::string& path, const std::string& text) {
  const FolderLock alone(path);
  keep_earlier({{path, text}});
  write_and_tell(path, text);
}

void ResultFiles::prepare() const {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(Status::system, folder + " cannot be made: " + error.message());
  expect_writable(path("json"));
  if (!table_type.empty()) expect_writable(path(table_type));
}

void write_and_print(const std::function<void()>& write, const std::string& said) {
  std::exception_ptr failed;
  try {
    write();
  } catch (...) {
    failed = std::current_exception();
  }
  fmt::print("{}", said);
  std::fflush(stdout);
  if (failed) std::rethrow_exception(failed);
}

void ResultFiles::write(const std::string& json, const std::string& table,
                        const std::string& said) const {
  const auto write_files = [&] {
    if (folder.empty()) return;
    std::vector<std::pair<std::string, std::string>> files{{path("json"), json}};
    if (!table_type.empty()) files.emplace_back(path(table_type), table);
    const FolderLock alone(path("json"));
    keep_earlier(files);
    for (const auto& [file, text] : files) write_file(file, text);
  };
  write_and_print(write_files, said);
  if (folder.empty()) return;
  const Plot plotted = plot(script, path("json"), folder);
  note("Written: {}{}{}\n", printable(path("json")), table_type.empty() ? "" : ", ." + table_type,
       plotted == Plot::drawn ? ", and pictures" : "");
  if (plotted == Plot::failed) throw Error(Status::system, script + " failed: no pictures");
}

}  // namespace muster
