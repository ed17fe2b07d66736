// SPDX-License-Identifier: BSD-3-Clause
// What the subcommands share: progress on standard error, JSON, and result files with their plots.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster {

/// Says that on standard error. A full one is no failure: what was found is written.
template <class... Values>
void note(fmt::format_string<Values...> text, Values&&... values) {
  std::fputs(fmt::format(text, std::forward<Values>(values)...).c_str(), stderr);
}

/// How far a long measurement is, on standard error: on a terminal one line that is kept up to
/// date, from the first second on; elsewhere a line every ten seconds.
class ProgressLine {
 public:
  ProgressLine() = default;
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `share` of the work is done, 0 to 1; `left_s`, unless given, is what the time since the start
  /// lets expect, once a fiftieth is done.
  void show(double share, const std::string& what, std::optional<double> left_s = {});
  /// Makes room for what is printed next.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  const bool terminal_ = is_terminal();
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + (terminal_ ? std::chrono::seconds(1) : period());
  bool shown_ = false;

  static bool is_terminal();
  std::chrono::milliseconds period() const {
    return std::chrono::milliseconds(terminal_ ? 200 : 10'000);
  }
};

/// `text` in lines of at most 79 columns, broken at spaces and where it has line breaks; further
/// lines begin with `indent` spaces. So many columns are taken on the first line already.
std::string wrapped(const std::string& text, std::size_t indent = 0);

/// Lines of more than 80 columns go on below: where what follows their first two spaces begins,
/// behind a name, or where they begin themselves.
std::string for_a_terminal(const std::string& text);

/// As every `--json` prints it; bytes that are not UTF-8 are replaced. An object begins with the
/// number of its schema: another one if a name goes or means something else than before.
std::string format_json(const nlohmann::ordered_json& json);

/// What a result file has, a JSON object, its texts printable(). Throws Error.
nlohmann::ordered_json read_results(const std::string& path);

/// Of a folder that results are read from. Throws Error(invalid) if it is none.
void check_folder(const std::string& folder);

/// Of whoever reads a file and writes it anew: one at a time has a file of that folder, the others
/// wait, but not for ever: anybody who can read the folder can take this lock. No file is made, and
/// where there are no locks of folders there is none.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int folder_;
};

/// Writes `text` to a file beside `path` first and renames it, so that nobody ever reads half of
/// it. Throws Error(system), naming the file.
void write_file(const std::string& path, const std::string& text);

/// Before anything is measured, since what cannot be written is no use: throws Error(system) if
/// write_file() would, but for a full disk. It is tried, as not only permissions decide; nothing is
/// left of that.
void expect_writable(const std::string& path);

/// write_file(), and says so on standard error.
void write_and_tell(const std::string& path, const std::string& text, const std::string& hint = "");

/// Files that a measurement is about to write: where one is there and reads otherwise, all of them
/// stay as "<stem>.<n>.<type>", the least n that none of them has, and that is said on standard
/// error. So the newest run has the name that was asked for, as with fio and hyperfine, and no run
/// is lost, as with pytest-benchmark; `muster compare` takes any two. `files`: path and new text.
/// The caller has their FolderLock. Throws Error(system).
void keep_earlier(const std::vector<std::pair<std::string, std::string>>& files);

/// write_and_tell() of what a run found: keep_earlier() first, both under a FolderLock.
void write_run(const std::string& path, const std::string& text);

/// Writes, and then prints `said`: whoever reads that may be gone. What cannot be written is
/// printed all the same; then throws what `write` does.
void write_and_print(const std::function<void()>& write, const std::string& said);

/// The files of a measurement: `<folder>/<stem>.json`, the same as a table, and the pictures
/// (`.png`, `.svg`) that plot/`script` makes of the first.
struct ResultFiles {
  std::string folder;  ///< empty: none is wanted, and nothing is done
  std::string stem;
  std::string script;
  std::string table_type = "csv";  ///< of the table's file; empty: there is no table

  /// Before anything is measured: makes the folder, and its parents. Throws Error(system) if that
  /// is not possible, or write() would not be.
  void prepare() const;
  /// Writes the files, prints `said`, whose reader may be gone, and draws: the script is
  /// $MUSTER_PLOT if set, else in share/ beside this program, or above. What an earlier run wrote
  /// is kept (keep_earlier()), but for its pictures, which the script makes again. Says on standard
  /// error what was written, and why there is no picture if there is none. Throws Error(system).
  void write(const std::string& json, const std::string& table, const std::string& said) const;
  /// Of the file of this type.
  std::string path(const std::string& type) const {
    return std::filesystem::path(folder) / (stem + "." + type);
  }
};

}  // namespace muster
