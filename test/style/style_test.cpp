// SPDX-License-Identifier: BSD-3-Clause
// The tree is clean, and every rule is shown to fail on a planted offence.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "style.hpp"

namespace muster::style {
namespace {

namespace fs = std::filesystem;

fs::path root() {
  const char* path = std::getenv("MUSTER_SOURCE");
  return path != nullptr ? fs::path(path) : fs::current_path();
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> tree() {
  // "env": doc/python.md's virtual environment.
  static const std::set<std::string> skipped = {"build", ".git", ".cache", "__pycache__", "env"};
  std::vector<std::string> paths;
  for (auto it = fs::recursive_directory_iterator(root()); it != fs::recursive_directory_iterator();
       ++it) {
    if (it->is_directory() && skipped.contains(it->path().filename().string())) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file()) {
      paths.push_back(fs::relative(it->path(), root()).generic_string());
    }
  }
  return paths;
}

TEST(Style, TreeIsClean) {
  const auto paths = tree();
  ASSERT_GT(paths.size(), 10U) << "not a source tree: " << root();
  for (const std::string& path : paths) {
    for (const Offence& offence : check(path, read(root() / path))) {
      ADD_FAILURE() << offence.path << ":" << offence.line << ": " << offence.what;
    }
  }
}

TEST(Style, ScriptsCanBeRun) {
  for (const std::string& path : tree()) {
    if (!read(root() / path).starts_with("#!")) continue;
    EXPECT_NE(fs::status(root() / path).permissions() & fs::perms::owner_exec, fs::perms::none)
        << path << " is not executable";
  }
}

/// What is called with `make`: in backquotes, indented code and fenced code.
std::set<std::string> make_commands(const std::string& document) {
  static const std::regex quoted("(?:^    |`)make ([a-z-]+)");
  static const std::regex fenced("^ *make ([a-z-]+)");
  std::set<std::string> names;
  bool in_fence = false;
  std::istringstream text(document);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) in_fence = !in_fence;
    const std::regex& command = in_fence ? fenced : quoted;
    for (std::sregex_iterator it(line.begin(), line.end(), command), end; it != end; ++it) {
      names.insert((*it)[1]);
    }
  }
  return names;
}

TEST(Style, MakeCommandsAreFound) {
  EXPECT_EQ(make_commands("say `make a` and `make b-c`\n\n    make d\n```sh\nmake e  # now\n```\n"
                          "we make f\n"),
            (std::set<std::string>{"a", "b-c", "d", "e"}));
}

TEST(Style, CommandsInTheDocsExist) {
  std::set<std::string> targets;
  std::istringstream makefile(read(root() / "Makefile"));
  static const std::regex target("^([a-z-]+):");
  std::smatch match;
  for (std::string line; std::getline(makefile, line);) {
    if (std::regex_search(line, match, target)) targets.insert(match[1]);
  }
  std::set<std::string> seen;
  for (const std::string& path : tree()) {
    if (path != "README.md" && !(path.starts_with("doc/") && path.ends_with(".md"))) continue;
    for (const std::string& name : make_commands(read(root() / path))) {
      EXPECT_TRUE(targets.contains(name)) << path << ": no `make " << name << "`";
      seen.insert(name);
    }
  }
  // README.md shows these in a fenced block: they would go unseen if fences were not read.
  EXPECT_TRUE(seen.contains("demo") && seen.contains("test"));
}

TEST(Style, DocumentsThatAreNamedExist) {
  static const std::regex name("(^|[^A-Za-z0-9_./-])(doc/[A-Za-z0-9_-]+\\.md)");
  unsigned named = 0;
  for (const std::string& path : tree()) {
    static const std::regex text("\\.(h|hpp|c|cpp|py|sh|md|txt|cmake)$");
    if (!std::regex_search(path, text) || path.starts_with("test/style/")) continue;
    const std::string content = read(root() / path);
    for (std::sregex_iterator it(content.begin(), content.end(), name), end; it != end; ++it) {
      ++named;
      EXPECT_TRUE(fs::exists(root() / (*it)[2].str())) << path << " names " << (*it)[2];
    }
  }
  EXPECT_GT(named, 5U);
}

/// Without what layout is: indentation, blank lines, runs of blanks.
std::string flat(const std::string& text) {
  std::istringstream lines(text);
  std::string all = "\n";
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string flat_line;
    for (std::string word; words >> word;) flat_line += (flat_line.empty() ? "" : " ") + word;
    if (!flat_line.empty()) all += flat_line + "\n";
  }
  return all;
}

/// The fenced blocks in C and C++, flat.
std::vector<std::string> code_blocks(const std::string& document) {
  std::vector<std::string> blocks;
  std::istringstream text(document);
  bool in_code = false;
  std::string block;
  for (std::string line; std::getline(text, line);) {
    if (in_code && line == "```") {
      blocks.push_back(flat(block));
      in_code = false;
    } else if (in_code) {
      block += line + "\n";
    } else if (line == "```c" || line == "```cpp") {
      in_code = true;
      block.clear();
    }
  }
  return blocks;
}

TEST(Style, CodeBlocksAreFound) {
  EXPECT_EQ(code_blocks("a\n```c\nint  a;\n\n  b();\n```\n```sh\nmake\n```\n```cpp\nc;\n```\n"),
            (std::vector<std::string>{"\nint a;\nb();\n", "\nc;\n"}));
  EXPECT_EQ(flat("void f() {\n  int  a;\n\n  b();\n}\n").find("\nint a;\nb();\n"), 11U);
}

// What the page shows is compiled and run: it stands, line by line, in an example.
TEST(Style, CodeInTheDelegationPageIsFromAnExample) {
  std::vector<std::string> examples;
  for (const auto& file : fs::directory_iterator(root() / "examples")) {
    const std::string extension = file.path().extension().string();
    if (extension == ".c" || extension == ".cpp") examples.push_back(flat(read(file.path())));
  }
  const auto blocks = code_blocks(read(root() / "doc/delegation.md"));
  EXPECT_GT(blocks.size(), 5U);
  for (const std::string& block : blocks) {
    EXPECT_TRUE(std::any_of(examples.begin(), examples.end(), [&](const std::string& example) {
      return example.find(block) != example.npos;
    })) << block;
  }
}

// An arrow in doc/ARCHITECTURE.md is what the rule enforces, and the other way round.
TEST(Style, LayersAreAsDocumented) {
  std::map<std::string, std::set<std::string>> documented;
  std::istringstream text(read(root() / "doc/ARCHITECTURE.md"));
  static const std::regex arrow("^([a-z/]+/) .* -> (.*)$");
  static const std::regex comma(", *");
  std::smatch match;
  for (std::string line; std::getline(text, line);) {
    if (!std::regex_match(line, match, arrow)) continue;
    std::set<std::string>& right = documented[match[1]];
    const std::string list = match[2];
    if (list == "nothing") continue;
    right.insert(std::sregex_token_iterator(list.begin(), list.end(), comma, -1),
                 std::sregex_token_iterator());
  }
  std::map<std::string, std::set<std::string>> enforced;
  for (const Layer& layer : layers()) {
    enforced[std::string(layer.directory)] = {layer.may_include.begin(), layer.may_include.end()};
    EXPECT_TRUE(fs::is_directory(root() / layer.directory)) << layer.directory;
  }
  EXPECT_EQ(documented, enforced);
}

TEST(Style, IncludeCyclesAreFound) {
  const std::string a = "#include \"lock/a.hpp\"\n";
  const std::string b = "#include \"lock/b.hpp\"\n";
  const std::string c = "#include \"wait/c.hpp\"\n";
  using Cycles = std::set<std::set<std::string>>;
  EXPECT_EQ(Cycles{}, include_cycles({{"src/lock/a.hpp", b + c},
                                      {"src/lock/a.cpp", a + b},
                                      {"src/lock/b.hpp", c},
                                      {"src/wait/c.hpp", "#include <map>\n"}}));
  // A source is as its header; and by way of a third.
  EXPECT_EQ(
      (Cycles{{"src/lock/a", "src/lock/b"}}),
      include_cycles({{"src/lock/a.hpp", b}, {"src/lock/b.hpp", ""}, {"src/lock/b.cpp", b + a}}));
  EXPECT_EQ((Cycles{{"src/lock/a", "src/lock/b", "src/wait/c"}}),
            include_cycles({{"src/lock/a.hpp", b},
                            {"src/lock/b.hpp", c},
                            {"src/wait/c.hpp", a},
                            {"src/lock/d.cpp", a}}));
}

TEST(Style, NoFilesIncludeEachOther) {
  std::map<std::string, std::string> files;
  for (const std::string& path : tree()) files[path] = read(root() / path);
  for (const auto& cycle : include_cycles(files)) {
    std::string names;
    for (const std::string& name : cycle) names += " " + name;
    ADD_FAILURE() << "these include each other:" << names;
  }
}

TEST(Style, LackingIncludesOfCstdintAreFound) {
  const std::string own = "#include <cstdint>\n";
  const std::string word = "enum class A : std::uint8_t { a };\n";
  const std::string a = "#include \"lock/a.hpp\"\n";
  const std::string b = "#include \"lock/b.hpp\"\n";
  EXPECT_EQ(lacking_cstdint({{"src/lock/a.hpp", own},
                             {"src/lock/b.hpp", a},
                             {"src/lock/c.cpp", b + word},
                             {"src/lock/d.cpp", "#include <string>  // not uint64_t\n"}}),
            std::set<std::string>{});
  EXPECT_EQ(lacking_cstdint({{"src/lock/a.hpp", word},
                             {"src/lock/b.hpp", own + a + word},
                             {"src/lock/c.cpp", a + "auto x = SIZE_MAX;\n"}}),
            (std::set<std::string>{"src/lock/a.hpp", "src/lock/c.cpp"}));
}

TEST(Style, NoFileLacksCstdint) {
  std::map<std::string, std::string> files;
  for (const std::string& path : tree()) files[path] = read(root() / path);
  for (const std::string& path : lacking_cstdint(files)) {
    ADD_FAILURE() << path << " wants #include <cstdint>";
  }
}

TEST(Style, TypesDefinedTwiceAreFound) {
  const std::string a = "namespace muster {\nnamespace {\nstruct A {\n};\n}  // namespace\n";
  const std::string b = "struct B {\n  int b;\n};\nclass Declared;\n}  // namespace muster\n";
  EXPECT_EQ(types_defined_twice({{"cli/a.cpp", a + b}, {"cli/b.cpp", a}, {"test/b.cpp", a + b}}),
            (std::map<std::string, std::set<std::string>>{}));
  EXPECT_EQ(
      types_defined_twice({{"cli/a.cpp", a + b}, {"cli/b.cpp", a + b}}),
      (std::map<std::string, std::set<std::string>>{{"muster::B", {"cli/a.cpp", "cli/b.cpp"}}}));
}

TEST(Style, NoTypeIsDefinedTwice) {
  std::map<std::string, std::string> files;
  for (const std::string& path : tree()) files[path] = read(root() / path);
  for (const auto& [type, paths] : types_defined_twice(files)) {
    std::string names;
    for (const std::string& path : paths) names += " " + path;
    ADD_FAILURE() << type << " is defined in" << names;
  }
}

struct Planted {
  const char* path;
  std::string text;  ///< after the SPDX line
  const char* what;  ///< the start of what must be reported; empty: nothing may be
};

std::string spdx(const std::string& path) {
  const bool c = path.ends_with("pp") || path.ends_with(".h") || path.ends_with(".c");
  return std::string(c ? "//" : "#") + " SPDX-License-Identifier: BSD-3-Clause\n" +
         (path.ends_with(".hpp") ? "#pragma once\n" : "");
}

class Plant : public testing::TestWithParam<Planted> {};

TEST_P(Plant, IsReported) {
  const Planted& planted = GetParam();
  const auto offences = check(planted.path, spdx(planted.path) + planted.text);
  if (std::string(planted.what).empty()) {
    for (const Offence& offence : offences) ADD_FAILURE() << offence.line << ": " << offence.what;
    return;
  }
  ASSERT_EQ(offences.size(), 1U);
  EXPECT_EQ(offences[0].what.rfind(planted.what, 0), 0U) << offences[0].what;
}

// Pieces are joined here so that this file passes its own test.
INSTANTIATE_TEST_SUITE_P(
    Offences, Plant,
    testing::Values(
        Planted{"src/a.cpp", std::string(101, '/') + "\n", "more than 100 columns"},
        Planted{"src/a.cpp", "int\ta;\n", "a tab"},
        Planted{"cmake/a.cmake", "set(a) \n", "trailing blank"},
        Planted{"src/a.cpp",
                "// TO"
                "DO: later\n",
                "an unfinished mark"},
        Planted{"doc/a.md",
                "not imple"
                "mented\n",
                "an unfinished mark"},
        Planted{"src/a.cpp",
                "int mas"
                "ter;\n",
                "a word we avoid"},
        Planted{"bench/a.sh",
                "cat /t"
                "mp/x\n",
                "a path of one machine"},
        Planted{"doc/a.md",
                "see is"
                "sue 12\n",
                "a number that means nothing"},
        Planted{"cmake/a.sh",
                "ping deb.deb"
                "ian.org\n",
                "a registry's host"},
        Planted{"src/a.cpp", std::string(600, '\n'), "more than 600 lines"},
        Planted{"src/machine/a.cpp", "volatile int a;\n", "volatile"},
        Planted{"src/memory/a.cpp", "a.load(std::memory_order_seq_cst);\n", "an order that"},
        Planted{"run/a.c", "char* a = getenv(\"A\");\n", "getenv"},
        Planted{"src/barrier/a.hpp", "std::atomic_thread_fence(x);\n", "a fence"},
        Planted{"src/lock/a.hpp", "#include <atomic>\n", "an algorithm goes through"},
        Planted{"src/lock/a.hpp", "if constexpr (requires { m.pu(); })\n", "an algorithm asks"},
        Planted{"src/barrier/a.cpp", "std::atomic<int> a;\n", "an algorithm goes through"},
        Planted{"src/barrier/a.hpp", std::string(150, '\n'), "an algorithm's header"},
        Planted{"src/barrier/a.hpp", "w = m.load(cell);\n", "an access without"},
        Planted{"src/barrier/a.hpp", "m.await(cell,\n  equals(1));\n", "an access without"},
        Planted{"src/barrier/a.hpp", "m.store(a, 1, release); m.store(b, 1, release);\n",
                "two accesses"},
        Planted{"src/machine/a.hpp", "#include \"topology/tree.hpp\"\n", "src/machine/ may not"},
        Planted{"src/barrier/a.hpp", "#include \"topology/topology.hpp\"\n",
                "src/barrier/ may not"},
        Planted{"src/topology/a.hpp", "#include \"machine/machine.hpp\"\n",
                "src/topology/ may not"},
        Planted{"sim/a.hpp", "#include \"check/a.hpp\"\n", "sim/ may not"},
        Planted{"check/a.hpp", "#include \"sim/a.hpp\"\n", "check/ may not"},
        Planted{"check/a.hpp", "namespace muster::locks {\n", "an algorithm of the checker's"},
        Planted{"check/a.hpp", "static constexpr Traits traits{};\n",
                "an algorithm of the checker's"},
        Planted{"bench/a.cpp", "#include \"capi/engine.hpp\"\n", "bench/ may not"},
        Planted{"bench/a.cpp", "#include \"check/graph.hpp\"\n", "bench/ may not"},
        Planted{"src/lock/a.cpp", "#include \"delegation/work.hpp\"\n", "src/lock/ may not"},
        Planted{"src/memory/a.hpp", "#include \"topology/tree.hpp\"\n", "src/memory/ may not"},
        Planted{"mpi/a.c", "#include \"machine/error.hpp\"\n", "mpi/ may not"},
        Planted{"src/barrier/a.hpp", "#include \"sim/a.hpp\"\n", "src/barrier/ may not"},
        Planted{"cli/a.cpp", "#include \"../src/machine/error.hpp\"\n", "an include with .."}));

INSTANTIATE_TEST_SUITE_P(
    Permitted, Plant,
    testing::Values(Planted{"src/machine/a.cpp", "asm volatile(\"pause\");\n", ""},
                    Planted{"src/a.cpp", "// volatile is avoided\nconst char* a = \"volatile\";\n",
                            ""},
                    Planted{"src/a.cpp", "auto a = 1'000'000; int volatile_a;\n", ""},
                    Planted{"src/a.cpp", "// " + std::string(48, 'x') + "\xC3\xA9\xC3\xA9\n", ""},
                    Planted{"src/barrier/a.hpp", "m.await(cell, equals(1),\n  acquire);\n", ""},
                    Planted{"src/barrier/a.hpp", "#include \"topology/tree.hpp\"\n", ""},
                    Planted{"src/topology/a.hpp", "#include \"machine/error.hpp\"\n", ""},
                    Planted{"mpi/a.c", "#include <mpi.h>\n#include <muster/muster.h>\n", ""},
                    Planted{"run/a.c", "char* a = secure_getenv(\"A\");  // not getenv\n", ""},
                    Planted{"check/a.hpp", "namespace muster::check {\n", ""},
                    Planted{"test/a.c", "char* a = getenv(\"A\");\n", ""},
                    Planted{"a.png", "\t\t", ""}));

TEST(Style, LicenceAndGuardAreAskedFor) {
  EXPECT_EQ(check("src/a.cpp", "int a;\n").size(), 1U);
  EXPECT_EQ(check("src/a.hpp", "// SPDX-License-Identifier: BSD-3-Clause\n").size(), 1U);
}

}  // namespace
}  // namespace muster::style
