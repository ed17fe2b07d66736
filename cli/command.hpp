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

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option* capture_default_str();
  Option* default_str(const std::string& text);
  Option* delimiter(char between);
  Option* excludes(Option* other);
  Option* group(const std::string& name);
  Option* one_of(const std::vector<std::string>& words);
  Option* required();
  template <class T>
  Option* check(const Range<T>& range);

 private:
  CLI::Option* option_;
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

 private:
  CLI::App* app_;
  std::list<Command> commands_;
  std::list<Option> options_;
};

}  // namespace muster
