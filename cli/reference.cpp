// SPDX-License-Identifier: BSD-3-Clause
// `muster man` and `muster completion`: the manual page and what shells complete, from what the
// commands say of themselves in their help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output.hpp"
#include "cli/subcommands.hpp"

namespace muster {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option*) { return true; });
}

/// Calls visit(path, command) for the program and each command below it, "muster bench lock".
void walk(const CLI::App& app, const std::string& path,
          const std::function<void(const std::string&, const CLI::App&)>& visit) {
  visit(path, app);
  for (const CLI::App* command : commands_of(app))
    walk(*command, path + " " + command->get_name(), visit);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// ---- the manual page ----

/// For troff: nothing in it is a request.
std::string escaped(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = i == 0 || text[i - 1] == '\n';
    if (begins && (text[i] == '.' || text[i] == '\'')) result += "\\&";
    if (text[i] == '\\') {
      result += "\\e";
    } else if (text[i] == '-') {
      result += "\\-";
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string name_of(const CLI::Option& option) {
  std::string name = option.get_positional() ? option.get_name(true) : "";
  for (const std::string& one : option.get_snames()) name += (name.empty() ? "-" : ", -") + one;
  for (const std::string& one : option.get_lnames()) name += (name.empty() ? "--" : ", --") + one;
  if (takes_value(option) && !option.get_positional()) name += " " + option.get_type_name();
  return name;
}

std::string manual(const CLI::App& root) {
  std::string text = fmt::format(
      ".TH MUSTER 1 \"\" \"muster {}\" \"User Commands\"\n.SH NAME\nmuster \\- barriers and locks "
      "that "
      "know where their participants sit\n.SH SYNOPSIS\n.B muster\n.I command\n[\n.I options\n]\n"
      ".SH DESCRIPTION\n{}\n.PP\n{}\n.SH COMMANDS\n",
      MUSTER_VERSION_TEXT, escaped(root.get_description()), escaped(root.get_footer()));
  walk(root, "muster", [&](const std::string& path, const CLI::App& command) {
    if (&command == &root) return;
    text += fmt::format(".SS {}\n{}.\n", escaped(path), escaped(command.get_description()));
    for (const CLI::Option* option : options_of(command)) {
      if (option->check_lname("help") || option->check_lname("help-all")) continue;
      text += fmt::format(".TP\n.B {}\n{}", escaped(name_of(*option)),
                          escaped(option->get_description()));
      const std::string otherwise = option->get_default_str();
      if (!otherwise.empty()) text += escaped(fmt::format(" (default: {})", otherwise));
      text += "\n";
    }
    if (!command.get_footer().empty() && command.get_footer() != root.get_footer())
      text += fmt::format(".PP\n.nf\n{}.fi\n", escaped(for_a_terminal(command.get_footer())));
  });
  return text + ".SH SEE ALSO\nThe documents that are installed with it, README.md first.\n";
}

// ---- completion ----

/// In single quotes, for every shell here.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string patterns(const CLI::App& root, const char* between, bool in_quotes) {
  std::string text;
  walk(root, "muster", [&](const std::string& path, const CLI::App& command) {
    if (&command == &root) return;
    text += (text.empty() ? "" : between) + (in_quotes ? quoted(path) : path);
  });
  return text;
}

std::string for_bash(const CLI::App& root) {
  std::string cases;
  walk(root, "muster", [&](const std::string& path, const CLI::App& command) {
    std::string words;
    for (const CLI::App* sub : commands_of(command)) words += " " + sub->get_name();
    for (const CLI::Option* option : options_of(command)) {
      for (const std::string& name : option->get_lnames()) words += " --" + name;
    }
    cases += fmt::format("    {}) words={} ;;\n", quoted(path),
                         quoted(words.empty() ? words : words.substr(1)));
  });
  return fmt::format(
      "# Completion of muster for bash: source it, or put it into bash-completion's folder.\n"
      "_muster() {{\n"
      "  local path=muster word words=\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    case \"$path $word\" in\n"
      "      {}) path=\"$path $word\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case $path in\n{}  esac\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\")\n"
      "}}\n"
      "complete -o default -F _muster muster\n",
      patterns(root, "|", true), cases);
}

std::string for_zsh(const CLI::App& root) {
  std::string cases;
  walk(root, "muster", [&](const std::string& path, const CLI::App& command) {
    std::string commands;
    std::string options;
    for (const CLI::App* sub : commands_of(command)) {
      commands += " " + quoted(sub->get_name() + ":" + first_line(sub->get_description()));
    }
    for (const CLI::Option* option : options_of(command)) {
      for (const std::string& name : option->get_lnames())
        options += " " + quoted("--" + name + ":" + first_line(option->get_description()));
    }
    cases +=
        fmt::format("    {}) commands=({}) options=({}) ;;\n", quoted(path), commands, options);
  });
  return fmt::format(
      "#compdef muster\n"
      "# Completion of muster for zsh: as _muster in a folder of $fpath.\n"
      "_muster() {{\n"
      "  local path=muster word\n"
      "  local -a commands options\n"
      "  for word in ${{words[2,CURRENT-1]}}; do\n"
      "    case \"$path $word\" in\n"
      "      {}) path=\"$path $word\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case $path in\n{}  esac\n"
      "  [[ $PREFIX == -* ]] && {{ _describe -o option options; return }}\n"
      "  (( $#commands )) && {{ _describe command commands; return }}\n"
      "  _files\n"
      "}}\n"
      "_muster \"$@\"\n",
      patterns(root, "|", true), cases);
}

std::string for_fish(const CLI::App& root) {
  std::string lines;
  walk(root, "muster", [&](const std::string& path, const CLI::App& command) {
    const std::string when =
        fmt::format("complete -c muster -n \"test (__muster_path) = '{}'\"", path);
    for (const CLI::App* sub : commands_of(command)) {
      lines += fmt::format("{} -f -a {} -d {}\n", when, sub->get_name(),
                           quoted(first_line(sub->get_description())));
    }
    for (const CLI::Option* option : options_of(command)) {
      for (const std::string& name : option->get_lnames()) {
        lines += fmt::format("{} -l {}{} -d {}\n", when, name, takes_value(*option) ? " -r" : "",
                             quoted(first_line(option->get_description())));
      }
    }
  });
  return fmt::format(
      "# Completion of muster for fish: as muster.fish in ~/.config/fish/completions.\n"
      "function __muster_path\n"
      "  set -l path muster\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    switch \"$path $word\"\n"
      "      case {}\n"
      "        set path \"$path $word\"\n"
      "    end\n"
      "  end\n"
      "  echo $path\n"
      "end\n{}",
      patterns(root, " ", true), lines);
}

}  // namespace

void add_reference(CLI::App& root) {
  root.add_subcommand("man", "Print the manual page, for man(1)")->callback([&root] {
    fmt::print("{}", manual(root));
  });
  CLI::App* const completion =
      root.add_subcommand("completion", "Print what a shell needs to complete these commands");
  completion->require_subcommand(1);
  using Printer = std::string (*)(const CLI::App&);
  const std::pair<const char*, Printer> shells[] = {
      {"bash", for_bash}, {"zsh", for_zsh}, {"fish", for_fish}};
  for (const auto& [shell, print] : shells) {
    completion->add_subcommand(shell, fmt::format("For {}", shell))
        ->callback([&root, print = print] { fmt::print("{}", print(root)); });
  }
}

}  // namespace muster
