// SPDX-License-Identifier: BSD-3-Clause
#include "style.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <regex>
#include <sstream>

namespace muster::style {
namespace {

constexpr std::size_t columns_max = 100;
constexpr std::size_t file_lines_max = 600;
constexpr std::size_t algorithm_lines_max = 150;

/// What a rule sees: the file line by line, as written and as code alone.
struct File {
  std::string_view path;
  std::vector<std::string> lines;
  std::vector<std::string> code;
};

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](std::string_view suffix) { return text.ends_with(suffix); });
}

bool is_header(std::string_view path) { return ends_with_any(path, {".h", ".hpp"}); }
bool is_c_or_cpp(std::string_view path) {
  return is_header(path) || ends_with_any(path, {".c", ".cpp"});
}
bool is_source(std::string_view path) {
  return is_c_or_cpp(path) ||
         ends_with_any(path, {".py", ".sh", ".cmake", ".awk", ".f90", ".in"}) ||
         ends_with_any(path, {"CMakeLists.txt", "Makefile"}) || path == ".ci/run";
}
bool is_text(std::string_view path) { return is_source(path) || path.ends_with(".md"); }
bool is_algorithm_dir(std::string_view path) {
  return starts_with_any(path, {"src/barrier/", "src/lock/"});
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t columns(std::string_view line) {  // UTF-8: continuation bytes take no column
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// A pattern that must not occur. The patterns are written in pieces, since this file is checked
/// too.
struct Forbidden {
  std::regex pattern;
  const char* what;
};

Forbidden forbid(const std::string& pattern, const char* what, bool any_case = false) {
  auto flags = std::regex::ECMAScript | std::regex::optimize;
  if (any_case) flags |= std::regex::icase;
  return {std::regex(pattern, flags), what};
}

class Checker {
 public:
  explicit Checker(const File& file) : file_(file) {}

  void report(std::size_t line, std::string what) {
    offences_.push_back({std::string(file_.path), static_cast<int>(line), std::move(what)});
  }

  void forbid_in(const std::vector<std::string>& lines, const std::vector<Forbidden>& rules) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      for (const Forbidden& rule : rules) {
        if (std::regex_search(lines[i], rule.pattern)) report(i + 1, rule.what);
      }
    }
  }

  void layout();
  void words();
  void code();
  void algorithms();
  void includes();

  std::vector<Offence> take() { return std::move(offences_); }

 private:
  const File& file_;
  std::vector<Offence> offences_;
};

void Checker::layout() {
  const auto& lines = file_.lines;
  const auto head =
      lines.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(3, lines.size()));
  const bool licensed = std::any_of(lines.begin(), head, [](const std::string& line) {
    return line.find("SPDX-License-Identifier: BSD-3-Clause") != std::string::npos;
  });
  if (!licensed) report(1, "no SPDX line");
  if (lines.size() > file_lines_max) report(0, "more than 600 lines: split it");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (columns(line) > columns_max) report(i + 1, "more than 100 columns");
    const bool recipe = file_.path.ends_with("Makefile") && line.starts_with('\t');
    if (!recipe && line.find('\t') != std::string::npos) report(i + 1, "a tab");
    if (!line.empty() && (std::isspace(static_cast<unsigned char>(line.back())) != 0)) {
      report(i + 1, "trailing blank");
    }
  }
  if (file_.path.ends_with(".hpp") &&
      std::find(lines.begin(), lines.end(), "#pragma once") == lines.end()) {
    report(1, "no #pragma once");
  }
}

void Checker::words() {
  static const std::vector<Forbidden> rules = {
      forbid("\\b(TO"
             "DO|FIX"
             "ME|XX"
             "X|HA"
             "CK)\\b",
             "an unfinished mark"),
      forbid("\\b(not imple"
             "mented|place"
             "holder)\\b",
             "an unfinished mark", true),
      forbid("\\b(mas"
             "ter|sla"
             "ve)s?\\b",
             "a word we avoid: say leader, server or owner", true),
      forbid("(^|[^A-Za-z0-9_.}])/(wo"
             "rk|ho"
             "me|ro"
             "ot|t"
             "mp|fa"
             "rm)/",
             "a path of one machine"),
      forbid("\\bis"
             "sue #?[0-9]",
             "a number that means nothing outside its tracker", true),
      forbid("deb\\.deb"
             "ian\\.org|py"
             "pi\\.org|python"
             "hosted\\.org",
             "a registry's host"),
  };
  forbid_in(file_.lines, rules);
}

void Checker::code() {
  static const std::vector<Forbidden> rules = {
      forbid("^(?!.*\\basm\\b)(?!.*\\b__asm__\\b).*\\bvolatile\\b",
             "volatile is no synchronization"),
      forbid("\\bmemory_order_(seq_cst|consume)\\b|\\bmemory_order::(seq_cst|consume)\\b",
             "an order that algorithms have no use for: say why in machine/, or weaken it"),
      forbid("\\bgetenv\\b", "getenv: a privileged program trusts it, secure_getenv it does not"),
      forbid("^namespace muster(?!::check\\b)|\\bTraits traits\\b",
             "an algorithm of the checker's own: mutants are patches (check/patch.cmake)"),
  };
  forbid_in(file_.code, {rules[0]});
  if (!starts_with_any(file_.path, {"src/machine/", "src/wait/", "check/", "test/", "bench/"})) {
    forbid_in(file_.code, {rules[1]});
  }
  if (!file_.path.starts_with("test/")) forbid_in(file_.code, {rules[2]});
  if (file_.path.starts_with("check/")) forbid_in(file_.code, {rules[3]});
}

/// Algorithms touch the world through their Machine alone, and write every order.
void Checker::algorithms() {
  static const std::vector<Forbidden> rules = {
      forbid("\\batomic_(thread|signal)_fence\\b", "a fence in an algorithm"),
      forbid("\\brequires\\b", "an algorithm asks what its machine can do"),
      forbid("\\bstd::(atomic|atomic_ref|thread|mutex)\\b|\\bsched_yield\\b|\\bthis_thread\\b",
             "an algorithm goes through its Machine"),
      forbid("#\\s*include\\s*<(atomic|thread|mutex|hwloc\\.h|iostream)>",
             "an algorithm goes through its Machine"),
  };
  forbid_in(file_.code, rules);
  if (!file_.path.ends_with(".hpp")) return;
  if (file_.lines.size() > algorithm_lines_max) {
    report(0, "an algorithm's header has more than 150 lines");
  }
  static const std::regex access(
      "(\\.|->)(template )?(load|store|exchange|fetch_add|compare_exchange|await\\w*)\\s*[(<]");
  static const std::regex order("\\b(relaxed|acquire|release|acq_rel|order|Order)\\b");
  for (std::size_t i = 0; i < file_.code.size(); ++i) {
    const std::string& line = file_.code[i];
    const auto accesses = std::distance(std::sregex_iterator(line.begin(), line.end(), access),
                                        std::sregex_iterator());
    if (accesses == 0) continue;
    if (accesses > 1) report(i + 1, "two accesses on one line: the checker names them by line");
    std::string statement = line;
    for (std::size_t next = i + 1;
         statement.find_first_of(";{") == std::string::npos && next < file_.code.size(); ++next) {
      statement += file_.code[next];
    }
    if (!std::regex_search(statement, order)) report(i + 1, "an access without its memory order");
  }
}

/// The project's own file behind an #include, from the root; nothing for other people's headers.
std::optional<std::string> included(std::string_view from, const std::string& name) {
  static constexpr std::array under_src = {"machine/", "wait/",       "topology/",   "placement/",
                                           "memory/",  "allocation/", "message/",    "barrier/",
                                           "fitting/", "lock/",       "delegation/", "capi/"};
  static constexpr std::array under_root = {"sim/",   "check/", "mpi/",      "cli/", "run/",
                                            "bench/", "test/",  "examples/", "src/"};
  if (name.starts_with("muster/")) return "include/" + name;
  for (std::string_view top : under_src) {
    if (name.starts_with(top)) return "src/" + name;
  }
  for (std::string_view top : under_root) {
    if (name.starts_with(top)) return name;
  }
  if (name.starts_with("../")) return name;
  if (name.find('/') != std::string::npos) return std::nullopt;
  return std::string(from.substr(0, from.rfind('/') + 1)) + name;
}

/// An #include's name, in quotes or the project's own.
std::optional<std::string> own_include(const std::string& line) {
  static const std::regex include("^\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"]");
  std::smatch match;
  if (!std::regex_search(line, match, include)) return std::nullopt;
  const std::string name = match[2];
  if (match[1] == "<" && !name.starts_with("muster/")) return std::nullopt;
  return name;
}

void Checker::includes() {
  const auto layer = std::find_if(layers().begin(), layers().end(), [&](const Layer& candidate) {
    return file_.path.starts_with(candidate.directory);
  });
  for (std::size_t i = 0; i < file_.lines.size(); ++i) {
    const auto name = own_include(file_.lines[i]);
    if (!name) continue;
    const auto target = included(file_.path, *name);
    if (!target) continue;
    if (target->starts_with("../")) {
      report(i + 1, "an include with .. in it: write it from src/");
      continue;
    }
    if (layer == layers().end() || target->starts_with(layer->directory)) continue;
    const bool allowed =
        std::any_of(layer->may_include.begin(), layer->may_include.end(),
                    [&](std::string_view prefix) { return target->starts_with(prefix); });
    if (!allowed) {
      report(i + 1, std::string(layer->directory) + " may not include " + *target);
    }
  }
}

/// Which of the C and C++ files each of them includes.
std::map<std::string, std::set<std::string>> own_includes(
    const std::map<std::string, std::string>& files) {
  std::map<std::string, std::set<std::string>> includes;
  for (const auto& [path, text] : files) {
    if (!is_c_or_cpp(path)) continue;
    std::set<std::string>& targets = includes[path];
    for (const std::string& line : split_lines(text)) {
      const auto name = own_include(line);
      const auto target = name ? included(path, *name) : std::nullopt;
      if (target && files.contains(*target)) targets.insert(*target);
    }
  }
  return includes;
}

}  // namespace

const std::vector<Layer>& layers() {
  static const std::vector<Layer> all = {
      {"include/muster/", {}},
      {"src/machine/", {"src/wait/"}},
      {"src/wait/",
       {"src/machine/machine.hpp", "src/machine/error.hpp", "src/machine/keep_errno.hpp",
        "src/machine/made_once.hpp"}},
      {"src/topology/", {"src/machine/error.hpp", "src/machine/format.hpp"}},
      {"src/placement/", {"src/machine/error.hpp", "src/machine/format.hpp", "src/topology/"}},
      {"src/memory/", {"src/machine/"}},
      {"src/allocation/",
       {"src/machine/format.hpp", "src/machine/keep_errno.hpp", "src/memory/", "include/muster/"}},
      {"src/message/", {"src/machine/"}},
      {"src/barrier/", {"src/machine/", "src/message/", "src/topology/tree.hpp"}},
      {"src/lock/",
       {"src/machine/", "src/wait/asking.hpp", "src/wait/sleep.hpp", "src/topology/tree.hpp"}},
      {"src/delegation/",
       {"src/machine/", "src/wait/", "src/lock/", "src/placement/", "src/topology/"}},
      {"src/capi/", {"src/", "include/muster/"}},
      {"src/fitting/", {"src/barrier/", "src/topology/"}},
      {"sim/",
       {"src/machine/", "src/wait/asking.hpp", "src/wait/parking.hpp", "src/message/",
        "src/topology/", "src/placement/", "src/barrier/", "src/fitting/", "src/lock/"}},
      {"check/",
       {"src/machine/", "src/wait/", "src/barrier/", "src/lock/", "src/topology/tree.hpp",
        "include/muster/section.hpp"}},
      {"mpi/", {"include/muster/"}},
      {"run/",
       {"src/machine/", "src/wait/", "src/barrier/", "src/lock/", "src/placement/least_busy.hpp",
        "include/muster/"}},
      {"bench/",
       {"src/machine/", "src/wait/", "src/topology/", "src/placement/", "src/memory/pages.hpp",
        "src/barrier/", "src/fitting/", "src/capi/plan.hpp", "src/capi/block.hpp", "sim/",
        "mpi/abi.h", "include/muster/"}},
      {"cli/", {"src/", "sim/", "check/", "bench/", "include/muster/"}},
      {"examples/", {"include/muster/"}},
  };
  return all;
}

std::set<std::set<std::string>> include_cycles(const std::map<std::string, std::string>& files) {
  // A source is one with its header. The C and the C++ face of the library are two.
  const auto without_ending = [](const std::string& path) {
    return path.starts_with("include/") ? path : path.substr(0, path.rfind('.'));
  };
  std::map<std::string, std::set<std::string>> needs;  // directly; then whatever these need, too
  for (const auto& [path, targets] : own_includes(files)) {
    std::set<std::string>& right = needs[without_ending(path)];
    for (const std::string& target : targets) right.insert(without_ending(target));
    right.erase(without_ending(path));
  }
  for (const auto& [through, unused] : needs) {
    for (auto& [unit, right] : needs) {
      if (right.contains(through)) right.insert(needs[through].begin(), needs[through].end());
    }
  }
  std::set<std::set<std::string>> cycles;
  for (const auto& [unit, right] : needs) {
    if (!right.contains(unit)) continue;
    std::set<std::string> cycle;
    for (const std::string& other : right) {
      if (needs[other].contains(unit)) cycle.insert(other);
    }
    cycles.insert(cycle);
  }
  return cycles;
}

std::set<std::string> lacking_cstdint(const std::map<std::string, std::string>& files) {
  static const std::regex header("#\\s*include\\s*<(cstdint|stdint\\.h)>");
  static const std::regex wanted("\\bu?int(8|16|32|64|ptr)_t\\b|\\bSIZE_MAX\\b");
  const auto includes = own_includes(files);
  std::set<std::string> have;
  for (const auto& [path, targets] : includes) {
    if (std::regex_search(files.at(path), header)) have.insert(path);
  }
  for (std::size_t before = 0; before != have.size();) {
    before = have.size();
    for (const auto& [path, targets] : includes) {
      if (std::any_of(targets.begin(), targets.end(),
                      [&](const std::string& target) { return have.contains(target); })) {
        have.insert(path);
      }
    }
  }
  std::set<std::string> lacking;
  for (const auto& [path, targets] : includes) {
    if (!have.contains(path) && std::regex_search(code_only(files.at(path)), wanted)) {
      lacking.insert(path);
    }
  }
  return lacking;
}

std::map<std::string, std::set<std::string>> types_defined_twice(
    const std::map<std::string, std::string>& files) {
  static const std::regex opened(R"(namespace ?([\w:]*) \{.*)");
  static const std::regex type(
      R"((?:struct|class|enum|enum class) (\w+)(?: final)?(?: :.*)? \{.*)");
  std::map<std::string, std::set<std::string>> defined;
  for (const auto& [path, text] : files) {
    if (!is_c_or_cpp(path) || path.starts_with("test/")) continue;  // tests are programs each
    std::vector<std::string> namespaces;
    for (const std::string& line : split_lines(text)) {
      std::smatch match;
      if (std::regex_match(line, match, opened)) {
        // What has no name is the file's own.
        namespaces.push_back(match[1].length() > 0 ? match[1].str() + "::" : path + "::");
      } else if (line.starts_with("}  // namespace") && !namespaces.empty()) {
        namespaces.pop_back();
      } else if (!namespaces.empty() && std::regex_match(line, match, type)) {
        std::string name;
        for (const std::string& part : namespaces) name += part;
        defined[name + match[1].str()].insert(path);
      }
    }
  }
  std::erase_if(defined, [](const auto& each) { return each.second.size() == 1; });
  return defined;
}

std::string code_only(std::string_view text) {
  std::string out(text);
  enum class In { code, line_comment, block_comment, string, character } in = In::code;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const bool digit_separator =
        c == '\'' && i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0;
    if (c == '\n') {
      if (in != In::block_comment) in = In::code;
      continue;
    }
    switch (in) {
      case In::code:
        if (c == '/' && (next == '/' || next == '*')) {
          in = next == '/' ? In::line_comment : In::block_comment;
          out[i] = ' ';
          out[++i] = ' ';
        } else if (c == '"') {
          in = In::string;
        } else if (c == '\'' && !digit_separator) {
          in = In::character;
        }
        break;
      case In::line_comment:
        out[i] = ' ';
        break;
      case In::block_comment:
        out[i] = ' ';
        if (c == '*' && next == '/') {
          out[++i] = ' ';
          in = In::code;
        }
        break;
      case In::string:
      case In::character:
        if (c == '\\' && next != '\n') {
          out[i] = ' ';
          if (i + 1 < out.size()) out[++i] = ' ';
        } else if (c == (in == In::string ? '"' : '\'')) {
          in = In::code;
        } else {
          out[i] = ' ';
        }
        break;
    }
  }
  return out;
}

std::vector<Offence> check(std::string_view path, std::string_view text) {
  if (!is_text(path)) return {};
  File file{path, split_lines(text), {}};
  if (is_c_or_cpp(path)) file.code = split_lines(code_only(text));
  Checker checker(file);
  checker.words();
  if (is_source(path)) checker.layout();
  if (is_c_or_cpp(path)) {
    checker.code();
    checker.includes();
    if (is_algorithm_dir(path)) checker.algorithms();
  }
  return checker.take();
}

}  // namespace muster::style
