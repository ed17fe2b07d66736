// SPDX-License-Identifier: BSD-3-Clause
#include "topology/hwloc_input.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>

#include "machine/error.hpp"
#include "machine/format.hpp"

namespace muster {
namespace {

/// hwloc's time grows faster than the square of them: for 8000 cores side by side it takes 20 s.
constexpr unsigned pus_max = 8192;

/// The product of what it has of each level; what stands in brackets is no level.
double pus_of(const std::string& description) {
  double pus = 1;
  bool in_brackets = false;    // [...]: memory
  bool in_attributes = false;  // (...), which end at the first parenthesis
  char before = ' ';
  for (const char& c : description) {
    const bool begins = std::isspace(static_cast<unsigned char>(before)) != 0 || before == ':' ||
                        before == ')' || before == ']';
    if (in_attributes || c == '(') {
      in_attributes = c != ')';
    } else if (in_brackets || c == '[') {
      in_brackets = c != ']';
    } else if (begins && std::isdigit(static_cast<unsigned char>(c)) != 0) {
      pus *= static_cast<double>(std::strtoull(&c, nullptr, 0));
    }
    before = c;
  }
  return pus;
}

}  // namespace

bool is_too_large(const std::string& description) {
  return pus_of(description) > pus_max ||
         std::count(description.begin(), description.end(), '[') > pus_max;
}

std::string how_to_describe() {
  return format(
      "write one of at most {} PUs, outermost first and down to these, like 'package:2 numa:2 l3:1 "
      "core:32 pu:1', or give a file made by 'lstopo file.xml'",
      pus_max);
}

void check_xml(const std::string& text, const std::string& path) {
  for (std::size_t at = 0; (at = text.find("<object", at)) != std::string::npos; ++at) {
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) {
      throw Error(Status::invalid,
                  format("topology file '{}' is damaged: an object does not end", path));
    }
    std::string object = text.substr(at, end - at);
    std::ranges::replace_if(
        object, [](unsigned char c) { return std::isspace(c) != 0; }, ' ');
    const auto has = [&](const std::string& name) {
      return object.find(" " + name + "=") != std::string::npos;
    };
    for (const std::string set : {"cpuset", "nodeset"}) {
      if (!has(set) || has("complete_" + set)) continue;
      throw Error(Status::invalid,
                  format("topology file '{}' is damaged: an object has no complete_{}", path, set));
    }
  }
}

}  // namespace muster
