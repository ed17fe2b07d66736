// SPDX-License-Identifier: BSD-3-Clause
#include "topology/levels.hpp"

#include <algorithm>
#include <cctype>

#include "machine/error.hpp"
#include "machine/format.hpp"

namespace muster {

namespace {

struct Name {
  std::string_view text;
  LevelKind kind;
};

// The first name of a kind is the one shown.
constexpr Name kNames[] = {
    {"CORE", LevelKind::core},      {"SMT", LevelKind::core},    {"L1", LevelKind::l1},
    {"L1CACHE", LevelKind::l1},     {"L2", LevelKind::l2},       {"L2CACHE", LevelKind::l2},
    {"L3", LevelKind::l3},          {"L3CACHE", LevelKind::l3},  {"NUMA", LevelKind::numa},
    {"NUMANODE", LevelKind::numa},  {"NODE", LevelKind::numa},   {"GROUP", LevelKind::group},
    {"CLUSTER", LevelKind::group},  {"DIE", LevelKind::die},     {"PACKAGE", LevelKind::package},
    {"SOCKET", LevelKind::package}, {"PKG", LevelKind::package},
};

std::string upper(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return result;
}

}  // namespace

std::string_view level_name(LevelKind kind) {
  for (const Name& name : kNames) {
    if (name.kind == kind) return name.text;
  }
  return "?";
}

LevelKind parse_level(std::string_view text) {
  const std::string wanted = upper(text);
  for (const Name& name : kNames) {
    if (name.text == wanted) return name.kind;
  }
  throw Error(Status::unknown_name,
              format("no level is called '{}'; levels are CORE (SMT), L1, L2, L3, GROUP, DIE, "
                     "NUMA, PACKAGE (SOCKET)",
                     text));
}

LevelMask parse_level_mask(std::string_view text) {
  LevelMask mask;
  if (text.empty() || upper(text) == "DEFAULT") return mask;
  mask.machine_only = upper(text) == "MACHINE";
  if (mask.machine_only) return mask;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find_first_of("-,", begin), text.size());
    mask.kinds.push_back(parse_level(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return mask;
}

std::vector<LevelKind> wanted_levels(const LevelMask& mask) {
  if (mask.is_default()) {
    return {LevelKind::l2, LevelKind::l3, LevelKind::numa, LevelKind::package};
  }
  std::vector<LevelKind> kinds = mask.kinds;
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  return kinds;
}

unsigned Level::unit_of_binding(const PuSet& pus) const {
  const unsigned unit = unit_of(pus.first());
  for (unsigned pu = pus.first(); pu != PuSet::kEnd; pu = pus.next(pu + 1)) {
    if (unit_of(pu) != unit) return kSeveralUnits;
  }
  return unit;
}

unsigned Level::cores_per_unit_min() const {
  std::size_t result = ~std::size_t{0};
  for (const Unit& unit : units) result = std::min(result, unit.cores.size());
  return units.empty() ? 0 : static_cast<unsigned>(result);
}

unsigned Level::cores_per_unit_max() const {
  std::size_t result = 0;
  for (const Unit& unit : units) result = std::max(result, unit.cores.size());
  return static_cast<unsigned>(result);
}

}  // namespace muster
