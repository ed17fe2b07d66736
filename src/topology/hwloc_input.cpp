// SPDX-License-Identifier: BSD-3-Clause
#include "topology/hwloc_input.hpp"

#include <cctype>
#include <cstddef>
#include <cstdlib>

#include "machine/error.hpp"
#include "machine/format.hpp"

namespace muster {
namespace {

/// hwloc's time grows faster than the square of them: for 8000 cores side by side it takes 20 s.
constexpr double pus_max = 8192;

/// The product of what it has of each level; what stands in brackets is no level.
double pus_of(const std::string& description) {
  double pus = 1;
  int brackets = 0;
  char before = ' ';
  for (const char& c : description) {
    brackets += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
    const bool begins = before == ':' || std::isspace(static_cast<unsigned char>(before)) != 0;
    if (brackets == 0 && begins && std::isdigit(static_cast<unsigned char>(c)) != 0) {
      pus *= static_cast<double>(std::strtoull(&c, nullptr, 0));
    }
    before = c;
  }
  return pus;
}

}  // namespace

void check_synthetic(const std::string& description) {
  if (pus_of(description) <= pus_max) return;
  throw Error(Status::invalid,
              format("'{}' has more than {:.0f} PUs: hwloc would take minutes, or hours",
                     description, pus_max));
}

void check_xml(const std::string& text, const std::string& path) {
  for (std::size_t at = 0; (at = text.find("<object ", at)) != std::string::npos; ++at) {
    const std::string object = text.substr(at, text.find('>', at) - at);
    const auto has = [&](const std::string& name) {
      return object.find(" " + name + "=\"") != std::string::npos;
    };
    for (const std::string set : {"cpuset", "nodeset"}) {
      if (!has(set) || has("complete_" + set)) continue;
      throw Error(Status::invalid,
                  format("topology file '{}' is damaged: an object has no complete_{}", path, set));
    }
  }
}

}  // namespace muster
