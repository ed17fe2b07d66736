// SPDX-License-Identifier: BSD-3-Clause
#include "cli/command.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

namespace muster {

Option* Option::capture_default_str() { return option_->capture_default_str(), this; }
Option* Option::default_str(const std::string& text) { return option_->default_str(text), this; }
Option* Option::delimiter(char between) { return option_->delimiter(between), this; }
Option* Option::excludes(Option* other) { return option_->excludes(other->option_), this; }
Option* Option::group(const std::string& name) { return option_->group(name), this; }
Option* Option::required() { return option_->required(), this; }

Option* Option::one_of(const std::vector<std::string>& words) {
  return option_->check(CLI::IsMember(words)), this;
}

template <class T>
Option* Option::check(const Range<T>& range) {
  return option_->check(CLI::Range(range.least, range.largest)), this;
}
template Option* Option::check(const Range<unsigned>&);
template Option* Option::check(const Range<std::uint64_t>&);
template Option* Option::check(const Range<double>&);

Command* Command::add_subcommand(const std::string& name, const std::string& about) {
  return &commands_.emplace_back(app_->add_subcommand(name, about));
}

template <class T>
Option* Command::add_option(const std::string& name, T& value, const std::string& about) {
  return &options_.emplace_back(app_->add_option(name, value, about));
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

}  // namespace muster
