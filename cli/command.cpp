// SPDX-License-Identifier: BSD-3-Clause
#include "cli/command.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>

namespace muster {

Option* Option::capture_default_str() { return option_->capture_default_str(), this; }
Option* Option::default_str(const std::string& text) { return option_->default_str(text), this; }
Option* Option::delimiter(char between) { return option_->delimiter(between), this; }
Option* Option::excludes(Option* other) { return option_->excludes(other->option_), this; }
Option* Option::group(const std::string& name) { return option_->group(name), this; }
Option* Option::required() { return option_->required(), this; }

Option* Option::words(const std::vector<std::string>& words) {
  completion_.words.insert(completion_.words.end(), words.begin(), words.end());
  return this;
}
Option* Option::listed(const std::vector<std::string>& kinds) {
  return completion_.kinds = kinds, this;
}
Option* Option::or_file() { return completion_.file = true, this; }

Option* Option::one_of(const std::vector<std::string>& choices) {
  return option_->check(CLI::IsMember(choices)), words(choices);
}

template <class T>
Option* Option::check(const Range<T>& range) {
  option_->check(CLI::Range(range.least, range.largest));
  if constexpr (std::is_same_v<T, double>) {
    option_->check([](const std::string& text) {  // it is neither less nor more
      return std::isnan(std::strtod(text.c_str(), nullptr)) ? "\"" + text + "\" is no number" : "";
    });
  }
  return this;
}
template Option* Option::check(const Range<unsigned>&);
template Option* Option::check(const Range<std::uint64_t>&);
template Option* Option::check(const Range<double>&);

Command* Command::add_subcommand(const std::string& name, const std::string& about) {
  return &commands_.emplace_back(app_->add_subcommand(name, about));
}

namespace {

/// What CLI11 takes for one value, and is none: nothing, as of a script's variable that is not set;
/// for 64 bits without a sign also "-1" and what is too large, which it wraps and cuts; for a text
/// the next option, or the "--" that ends them.
template <class T>
std::string fault_of(const std::string& text) {
  if (text.empty()) return "its value is empty";
  if (std::is_same_v<T, std::string> && text.starts_with("--")) return "its value is missing";
  if constexpr (std::is_same_v<T, std::uint64_t> ||
                std::is_same_v<T, std::optional<std::uint64_t>>) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc::result_out_of_range || text.front() == '-') {
      return text + " is out of range";
    }
  }
  return "";
}

}  // namespace

template <class T>
Option* Command::add_option(const std::string& name, T& value, const std::string& about) {
  CLI::Option* const option = app_->add_option(name, value, about);
  if constexpr (!std::is_same_v<T, std::vector<std::string>>) option->check(fault_of<T>);
  return &options_.emplace_back(option);
}
template Option* Command::add_option(const std::string&, std::string&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<std::string>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, unsigned&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<unsigned>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option* Command::add_option(const std::string&, double&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<double>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, std::optional<unsigned>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, std::optional<std::uint64_t>&,
                                     const std::string&);
Option* Command::add_flag(const std::string& name, bool& value, const std::string& about) {
  return &options_.emplace_back(app_->add_flag(name, value, about));
}
Option* Command::add_flag(const std::string& name, std::string& value, const std::string& about) {
  return &options_.emplace_back(app_->add_flag(name, value, about));
}
Command* Command::callback(const std::function<void()>& function) {
  return app_->callback(function), this;
}
Command* Command::footer(const std::string& text) { return app_->footer(text), this; }
Command* Command::require_subcommand(std::size_t count) {
  return app_->require_subcommand(static_cast<int>(count)), this;
}

Completion Command::completion_of(const CLI::Option& option) const {
  for (const Option& one : options_) {
    if (one.wrapped() == &option) return one.completion();
  }
  for (const Command& command : commands_) {
    Completion found = command.completion_of(option);
    if (!found.words.empty() || !found.kinds.empty()) return found;
  }
  return {};
}

}  // namespace muster
