// SPDX-License-Identifier: BSD-3-Clause
// The house's style as functions of a file's path and text, so that each rule can be shown to fail.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::style {

/// One breach of one rule. `line` counts from 1; 0 stands for the whole file.
struct Offence {
  std::string path;
  int line;
  std::string what;
};

/// All breaches in one file. `path` is relative to the root of the source tree, with '/'.
/// Files of a kind that no rule is about (pictures, golden results) have none.
std::vector<Offence> check(std::string_view path, std::string_view text);

/// Who may include whom; doc/ARCHITECTURE.md says the same. Directories not named may include all.
struct Layer {
  std::string_view directory;
  std::vector<std::string_view> may_include;  ///< directories, or single headers
};
const std::vector<Layer>& layers();

/// Files that include each other, by path and text: each set is one cycle. A header and its source
/// are one, named without what follows the last dot: whoever uses the header needs the source.
std::set<std::set<std::string>> include_cycles(const std::map<std::string, std::string>& files);

/// Files that name integers of a fixed width, by path and text, though neither they nor ours that
/// they include ask for <cstdint>: some standard libraries' other headers have it, others' not.
std::set<std::string> lacking_cstdint(const std::map<std::string, std::string>& files);

/// Types of one qualified name that more than one file defines, by path and text: a program of both
/// files has one of them in the other's place, and no compiler says so.
std::map<std::string, std::set<std::string>> types_defined_twice(
    const std::map<std::string, std::string>& files);

/// The same text with comments and the insides of literals blanked, lines kept: C and C++ only.
std::string code_only(std::string_view text);

}  // namespace muster::style
