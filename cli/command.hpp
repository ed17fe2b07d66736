// SPDX-License-Identifier: BSD-3-Clause
// What the subcommands use of CLI11, as it stands there, compiled once: a file that includes CLI11
// itself takes five times as long to compile, and there would be seventeen.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace muster {

/// A number from `least` to `largest`, both included.
template <class T>
struct Range {
  T least;
  T largest;
  Range(T from, T to) : least(from), largest(to) {}
};

/// What a shell offers as an option's value.
struct Completion {
  std::vector<std::string> words;
  std::vector<std::string> kinds;  ///< and all names that `muster list` shows of these kinds
  bool file = false;               ///< besides; a text without either is taken for a file's name
};

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option* capture_default_str();
  Option* default_str(const std::string& text);
  Option* delimiter(char between);
  Option* excludes(Option* other);
  /// For shells, as Completion says.
  Option* words(const std::vector<std::string>& words);
  Option* listed(const std::vector<std::string>& kinds);
  Option* or_file();
  Option* group(const std::string& name);
  Option* one_of(const std::vector<std::string>& choices);
  Option* required();
  template <class T>
  Option* check(const Range<T>& range);

  const CLI::Option* wrapped() const { return option_; }
  const Completion& completion() const { return completion_; }

 private:
  CLI::Option* option_;
  Completion completion_;
};

/// Owns its subcommands' and options' wrappers, as CLI11's owns what they wrap.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Command* add_subcommand(const std::string& name, const std::string& about);
  /// `value`: of the types that command.cpp names; it must outlive the parse.
  template <class T>
  Option* add_option(const std::string& name, T& value, const std::string& about);
  Option* add_flag(const std::string& name, bool& value, const std::string& about);
  /// "--name{value}": that value without one, else what stands after "=".
  Option* add_flag(const std::string& name, std::string& value, const std::string& about);
  Command* callback(const std::function<void()>& function);
  Command* footer(const std::string& text);
  Command* require_subcommand(std::size_t count);
  /// Of this command's options or a subcommand's.
  Completion completion_of(const CLI::Option& option) const;

 private:
  CLI::App* app_;
  std::list<Command> commands_;
  std::list<Option> options_;
};

}  // namespace muster
