// SPDX-License-Identifier: BSD-3-Clause
// `muster man` and `muster completion`: the manual page and what shells complete, from what the
// commands say of themselves in their help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.hpp"
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
std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// "--algorithms", "-a": all ways to write an option.
std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> all;
  for (const std::string& name : option.get_lnames()) all.push_back("--" + name);
  for (const std::string& name : option.get_snames()) all.push_back("-" + name);
  return all;
}

bool has_positionals(const CLI::App& command) {
  return std::ranges::any_of(options_of(command), &CLI::Option::get_positional);
}

/// What a shell offers as an option's value.
struct Value {
  std::vector<std::string> words;
  bool file = false;
  bool list = false;    ///< several, separated by commas
  bool needed = false;  ///< else "--option=VALUE" is the only way to give one
  bool exists() const { return needed || !words.empty(); }
};

Value value_of(const CLI::Option& option, const Command& commands) {
  const Completion completion = commands.completion_of(option);
  Value value{completion.words, completion.file, option.get_items_expected_max() > 1,
              takes_value(option)};
  const std::vector<std::string> listed = listed_names(completion.kinds);
  value.words.insert(value.words.end(), listed.begin(), listed.end());
  if (value.words.empty()) value.file = option.get_type_name().starts_with("TEXT");
  return value;
}

/// All commands as patterns of `case`.
std::string patterns(const CLI::App& root, const char* between) {
  std::string text;
  walk(root, "muster", [&](const std::string& path, const CLI::App& command) {
    if (&command != &root) text += (text.empty() ? "" : between) + in_quotes(path);
  });
  return text;
}

/// For bash and zsh: branches of `case $at` that set what may follow a command.
std::string followers(const CLI::App& root) {
  std::string cases;
  walk(root, "muster", [&](const std::string& path, const CLI::App& command) {
    std::string subcommands;
    std::string options;
    for (const CLI::App* sub : commands_of(command))
      subcommands += " " + in_quotes(sub->get_name() + ":" + first_line(sub->get_description()));
    for (const CLI::Option* option : options_of(command)) {
      for (const std::string& name : option->get_lnames())
        options += " " + in_quotes("--" + name + ":" + first_line(option->get_description()));
    }
    cases += fmt::format("    {}) subs=({}) opts=({}) files={} ;;\n", in_quotes(path), subcommands,
                         options, has_positionals(command) ? "yes" : "");
  });
  return cases;
}

/// For bash and zsh: branches of `case "$at $option"` that set what an option takes.
std::string takers(const CLI::App& root, const Command& commands) {
  std::map<std::string, std::string> by_value;
  walk(root, "muster", [&](const std::string& path, const CLI::App& command) {
    for (const CLI::Option* option : options_of(command)) {
      const Value value = value_of(*option, commands);
      if (!value.exists()) continue;
      std::string words;
      for (const std::string& word : value.words) words += " " + in_quotes(word);
      const char* const takes = !value.needed ? "maybe" : value.list ? "list" : "one";
      std::string& options = by_value[fmt::format("takes={} files={} values=({})", takes,
                                                  value.file ? "yes" : "", words)];
      for (const std::string& name : spellings(*option))
        options += (options.empty() ? "" : "|") + in_quotes(path + " " + name);
    }
  });
  std::string cases;
  for (const auto& [value, options] : by_value)
    if (!options.empty()) cases += fmt::format("    {}) {} ;;\n", options, value);
  return cases;
}

/// For bash and zsh: _muster_read reads the words before the cursor into `at`, the command, and
/// `option`, whose value comes next; _muster_value says which.
std::string reader(const CLI::App& root, const Command& commands) {
  return fmt::format(
      "_muster_value() {{\n"
      "  takes= files= values=()\n"
      "  case \"$at $option\" in\n{}"
      "  esac\n"
      "}}\n"
      "_muster_read() {{\n"
      "  local word\n"
      "  at=muster option= takes=\n"
      "  for word; do\n"
      "    case \"$at $word\" in\n"
      "      {})\n"
      "        [[ $takes == one ]] || {{ at=\"$at $word\" takes=; continue; }} ;;\n"
      "    esac\n"
      "    if [[ $takes == one ]]; then\n"
      "      takes=\n"
      "    elif [[ $word == -- ]]; then\n"
      "      at=-- takes=\n"
      "      return\n"
      "    elif [[ $word == -* ]]; then\n"
      "      option=$word\n"
      "      _muster_value\n"
      "      [[ $takes != maybe ]] || takes=\n"
      "    fi\n"
      "  done\n"
      "}}\n"
      "_muster_next() {{\n"
      "  subs=() opts=() files=yes\n"
      "  case $at in\n{}"
      "  esac\n"
      "}}\n",
      takers(root, commands), patterns(root, "|"), followers(root));
}

std::string for_bash(const CLI::App& root, const Command& commands) {
  return "# Completion of muster for bash: source it, or put it into bash-completion's folder.\n" +
         reader(root, commands) +
         R"(_muster() {
  local at option takes files part broken word
  local -a subs opts values typed words=()
  read -a typed <<<"${COMP_LINE:0:COMP_POINT}"
  [[ ${COMP_LINE:0:COMP_POINT} != *[[:space:]] ]] || typed+=('')
  part=${typed[${#typed[@]} - 1]}
  # What bash itself takes for words before the last one: at "=" and ":".
  broken=${part%"${part##*[${COMP_WORDBREAKS//[[:space:]]/}]}"}
  _muster_read "${typed[@]:1:${#typed[@]} - 2}"
  if [[ $takes == one || $takes == list && $part != -* ]]; then
    words=("${values[@]}")
  elif [[ $at != -- && $part == --*=* ]]; then
    option=${part%%=*}
    _muster_value
    words=("${values[@]/#/$option=}")
  else
    _muster_next
    words=("${subs[@]%%:*}")
    [[ $part != -* && ( $files == yes || ${#words[@]} -gt 0 ) ]] || words=("${opts[@]%%:*}")
  fi
  [[ $takes != list || $part != *,* ]] || words=("${values[@]/#/${part%,*},}")
  COMPREPLY=()
  for word in "${words[@]}"; do
    [[ $word == "$part"* ]] || continue
    [[ $word != *: ]] || compopt -o nospace
    word=${word#"$broken"}
    [[ $word != *' '* ]] || printf -v word %q "$word"
    COMPREPLY+=("$word")
  done
  [[ $files != yes ]] || compopt -o default
}
complete -F _muster muster
)";
}

std::string for_zsh(const CLI::App& root, const Command& commands) {
  return "#compdef muster\n"
         "# Completion of muster for zsh: source it, or as _muster in a folder of $fpath.\n" +
         reader(root, commands) +
         R"(_muster() {
  local at option takes files
  local -a subs opts values
  _muster_read "${(@)words[2,CURRENT-1]}"
  if [[ $at != -- && $takes != one && $PREFIX == --*=* ]]; then
    option=${PREFIX%%=*}
    _muster_value
    compset -P 1 '*='
  elif [[ -z $takes || $takes == list && $PREFIX == -* ]]; then
    _muster_next
    if [[ $PREFIX == -* || -z $files && $#subs -eq 0 ]]; then
      _describe -o option opts
    elif (( $#subs )); then
      _describe command subs
    else
      _files
    fi
    return
  fi
  [[ $takes != list ]] || compset -P '*,'
  if [[ $values[1] == *: ]]; then compadd -S '' -a values; else compadd -a values; fi
  [[ $files != yes ]] || _files
}
if [[ $funcstack[1] == _muster ]]; then _muster "$@"; else compdef _muster muster; fi
)";
}

std::string for_fish(const CLI::App& root, const Command& commands) {
  std::string lines;
  walk(root, "muster", [&](const std::string& path, const CLI::App& command) {
    const std::string when =
        fmt::format("complete -c muster -n \"test (__muster_path) = '{}'\"", path);
    if (has_positionals(command)) lines += when + " -F\n";
    for (const CLI::App* sub : commands_of(command)) {
      lines += fmt::format("{} -a {} -d {}\n", when, sub->get_name(),
                           in_quotes(first_line(sub->get_description())));
    }
    for (const CLI::Option* option : options_of(command)) {
      std::string names;
      for (const std::string& name : option->get_lnames()) names += " -l " + name;
      for (const std::string& name : option->get_snames()) names += " -s " + name;
      if (names.empty()) continue;
      const Value value = value_of(*option, commands);
      std::string words;
      for (const std::string& word : value.words) {
        const std::string quote = word.find(' ') == std::string::npos ? "" : "\"";
        words += (words.empty() ? "" : " ") + quote + word + quote;
      }
      if (value.list && !words.empty()) words = "(__muster_list " + words + ")";
      if (!words.empty()) words = " -a " + in_quotes(words);
      const char* const takes = !value.needed ? "" : value.file ? " -rF" : " -x";
      lines += fmt::format("{}{}{}{} -d {}\n", when, names, takes, words,
                           in_quotes(first_line(option->get_description())));
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
      "end\n"
      "function __muster_list\n"
      "  set -l before (commandline -ct | string replace -r '^--[^=]*=' '' |"
      " string replace -r '[^,]*$' '')\n"
      "  printf '%s\\n' \"$before\"$argv\n"
      "end\n"
      "complete -c muster -f\n{}",
      patterns(root, " "), lines);
}

}  // namespace

void add_reference(CLI::App& root, const Command& commands) {
  root.add_subcommand("man", "Print the manual page, for man(1)")->callback([&root] {
    fmt::print("{}", manual(root));
  });
  CLI::App* const completion =
      root.add_subcommand("completion", "Print what a shell needs to complete these commands");
  completion->require_subcommand(1);
  using Printer = std::string (*)(const CLI::App&, const Command&);
  const std::pair<const char*, Printer> shells[] = {
      {"bash", for_bash}, {"zsh", for_zsh}, {"fish", for_fish}};
  for (const auto& [shell, print] : shells) {
    completion->add_subcommand(shell, fmt::format("For {}", shell))->callback([&, print = print] {
      fmt::print("{}", print(root, commands));
    });
  }
}

}  // namespace muster
