// SPDX-License-Identifier: BSD-3-Clause
#include "cli/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <regex>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "machine/error.hpp"

namespace muster {
namespace {

char** arguments = nullptr;  ///< of this program

enum ExitCode { kSuccess = 0, kFailure = 1, kUsage = 2 };

/// The innermost command that was named: its help is the one to point at.
const CLI::App* named_command(const CLI::App* app) {
  for (const CLI::App* command : app->get_subcommands()) return named_command(command);
  return app;
}

std::string full_name(const CLI::App* command) {
  const CLI::App* const parent = command->get_parent();
  return parent == nullptr ? "muster" : full_name(parent) + " " + command->get_name();
}

std::string names_of(const CLI::App* command) {
  std::string names;
  for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; })) {
    names += (names.empty() ? "" : ", ") + sub->get_name();
  }
  return names;
}

/// Of the command's options the one that is meant by `word`: one has more letters than the other.
std::string meant(const CLI::App* command, const std::string& word) {
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) {
      const std::string whole = "--" + name;
      if (word.size() > 3 && (whole.starts_with(word) || word.starts_with(whole))) {
        return "; there is " + whole;
      }
    }
  }
  return "";
}

/// What no option takes; the "--" before a program is none of it.
std::vector<std::string> extras_of(const CLI::App* command) {
  std::vector<std::string> extras = command->remaining();
  std::erase(extras, "--");
  return extras;
}

/// CLI11's words, in ours.
std::string reworded(const CLI::App* command, const CLI::ParseError& error) {
  std::string text = error.what();
  static const std::pair<std::regex, const char*> words[] = {
      {std::regex("Could not convert: (\\S+) = (-?[0-9]+)"), "$1: $2 is out of range"},
      {std::regex("Could not convert: (\\S+) = (-?[0-9]*[.][0-9]+)"), "$1: $2 is no whole number"},
      {std::regex("Could not convert: (\\S+) = (.*)"), "$1: \"$2\" is no number"},
      {std::regex("(\\S+): Value (.*) not in range (.*)"), "$1: $2 is not in $3"},
      {std::regex("(\\S+): 1 required .* missing"), "$1: its value is missing"},
      {std::regex("(\\S+) excludes (\\S+)"), "$1 and $2 exclude each other"},
  };
  for (const auto& [theirs, ours] : words) {
    if (std::regex_match(text, theirs)) return std::regex_replace(text, theirs, ours);
  }
  const std::vector<std::string> extras = extras_of(command);
  if (!extras.empty() && error.get_name() != "ValidationError") {
    return extras.front().substr(0, 1) == "-"
               ? fmt::format("no option {}{}", extras.front(), meant(command, extras.front()))
               : fmt::format("\"{}\" is one word too many", extras.front());
  }
  static const std::regex lacks("(\\S+) is required");
  if (std::smatch found; std::regex_match(text, found, lacks)) {
    const CLI::Option* const option = command->get_option_no_throw(found[1]);
    if (option != nullptr) return text + ": " + option->get_description();
  }
  static const std::regex after_dashes("The following argument.* not expected: (.*)");
  return std::regex_replace(
      text, after_dashes,
      "\"$1\" is too much: after -- stands a whole program, and a flag's value after =");
}

/// What to say about a command line that CLI11 could not read.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* const command = named_command(&app);
  const std::string names = names_of(command);
  std::string what = reworded(command, error);
  if (!names.empty()) {
    const std::vector<std::string> extras = extras_of(command);
    if (extras.empty()) {
      what = fmt::format("say which command; there are: {}", names);
    } else if (extras.front().substr(0, 1) != "-") {
      what = fmt::format("no command \"{}\"; there are: {}", extras.front(), names);
    }
  }
  return fmt::format("{} (help: {} --help)", what, full_name(command));
}

int fail(int code, const std::string& message) {
  std::fflush(stdout);
  std::fputs(fmt::format("muster: {}\n", printable(message)).c_str(), stderr);  // does not throw
  return code;
}

/// A file that is opened later must not get such a number. Programs that are started find them
/// closed all the same.
void fill_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    const char* const device = stream == STDOUT_FILENO ? "/dev/full" : "/dev/null";
    if (open(device, O_RDWR | O_CLOEXEC) < 0) return;
  }
}

}  // namespace

int run_command_line(int argc, char** argv,
                     const std::function<void(CLI::App&, Command&)>& add_commands) {
  fill_closed_streams();
  arguments = argv;
  CLI::App app{"Muster: shared-memory synchronization that knows where its participants sit."};
  app.set_version_flag("--version", "muster " MUSTER_VERSION_TEXT);
  app.set_help_all_flag("--help-all", "Print the help of all commands");
  app.require_subcommand(1);
  app.footer(
      "Results go to standard output, messages to standard error.\n"
      "Exit codes: 0 success, 1 failure, 2 a mistake in the command line, or in\n"
      "what it names to be read.");
  Command root(&app);
  add_commands(app, root);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {  // --help, --version
    std::ostringstream text;
    app.exit(help, text, text);
    std::fputs(for_a_terminal(text.str()).c_str(), stdout);
  } catch (const CLI::ParseError& error) {
    return fail(kUsage, explain(app, error));
  } catch (const Error& error) {
    const bool usage = error.code() == Status::invalid || error.code() == Status::unknown_name;
    return fail(usage ? kUsage : kFailure, error.what());
  } catch (const std::bad_alloc&) {
    return fail(kFailure, "no memory is left for that: see `ulimit -v`");
  } catch (const std::exception& error) {
    if (std::ferror(stdout) == 0) return fail(kFailure, error.what());  // else of fmt::print()
  }
  // A full disk or a closed pipe must not look like success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return fail(kFailure, "the results could not be written to standard output");
  }
  return kSuccess;
}

std::string own_file(const std::vector<std::string>& places) {
  std::error_code none;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  for (const std::string& place : places) {
    const auto file = here / place;
    if (std::filesystem::exists(file, none)) return std::filesystem::canonical(file, none);
  }
  return {};
}

void become_program(const std::string& name) {
  const std::string file = own_file({"cli/" + name, "../libexec/muster/" + name});
  if (file.empty()) {
    throw Error(Status::system, name + " is neither in this program's build tree nor installed");
  }
  execv(file.c_str(), arguments);
  throw Error(Status::system, fmt::format("{}: {}", file, std::strerror(errno)));
}

}  // namespace muster
