// SPDX-License-Identifier: BSD-3-Clause
#include "describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

namespace muster::test {

namespace fs = std::filesystem;

namespace {

void describe_levels(const Topology& topology, const std::string& mask, std::string& text) {
  const ActiveLevels active = topology.active_levels(parse_level_mask(mask));
  text += fmt::format("\nlevels {}\n", mask.empty() ? "default" : mask);
  for (const Level& level : active.levels) {
    text += fmt::format("  {}: {} units of {}-{} cores\n", level.name, level.units.size(),
                        level.cores_per_unit_min(), level.cores_per_unit_max());
  }
  for (const DroppedLevel& level : active.dropped) {
    text += fmt::format("  no {}: {}\n", level.name, level.reason);
  }
}

// Wrapped after blanks and commas, indented.
void append_wrapped(const std::string& content, std::string& text) {
  std::string line = "  ";
  std::size_t at = 0;
  while (at < content.size()) {
    const std::size_t end = std::min(content.find_first_of(" ,", at), content.size() - 1) + 1;
    if (line.size() + end - at > 100) {
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line = "     ";
    }
    line += content.substr(at, end - at);
    at = end;
  }
  text += line + "\n";
}

// A line per level: NUMA {0-31} {32-63}
void describe_groups(const Topology& topology, const std::string& name,
                     const std::vector<PuSet>& bindings, std::string& text,
                     const std::string& mask = "") {
  const Placement placement =
      topology.place(bindings, topology.active_levels(parse_level_mask(mask)));
  const Grouping grouping = group_ranks(placement);
  text += fmt::format("\n{} ranks {}\n", bindings.size(), name);
  if (grouping.status != Status::ok) {
    text +=
        fmt::format("  declined: {}\n", grouping.reason.substr(0, grouping.reason.find(", so")));
    return;
  }
  for (const GroupLevel& level : grouping.tree.levels) {
    std::string line = level.name;
    for (const Group& group : level.groups) {
      line += fmt::format(" {{{}}}", format_numbers(group.members));
    }
    append_wrapped(line, text);
  }
}

}  // namespace

std::vector<PuSet> bind_to_units(const Level& level, unsigned per_unit) {
  std::vector<PuSet> bindings;
  for (unsigned turn = 0; turn < per_unit; ++turn) {
    for (const Unit& unit : level.units) bindings.push_back(unit.pus);
  }
  return bindings;
}

std::string describe(const Topology& topology) {
  const auto cores = static_cast<unsigned>(topology.cores().size());
  std::string text = fmt::format("cores {}\nPUs {}\nunusable PUs {}\nNUMA nodes {}\n", cores,
                                 topology.pus().to_string(), topology.unusable_pus().to_string(),
                                 topology.numa_nodes());
  const Level* const numa = topology.level(LevelKind::numa);
  if (numa != nullptr) {
    for (const Unit& unit : numa->units) {
      text += fmt::format("NUMA {} (OS {}{}): PUs {}\n", unit.id, unit.os_index,
                          unit.other_ids.empty() ? "" : ", also " + format_numbers(unit.other_ids),
                          unit.pus.to_string());
    }
  }
  for (const char* const mask :
       {"", "NUMA-SOCKET", "SOCKET", "CORE-L1-L2-L3-GROUP-DIE-NUMA-PACKAGE"}) {
    describe_levels(topology, mask, text);
  }
  for (const Mapping mapping : {Mapping::core, Mapping::numa, Mapping::socket}) {
    for (const unsigned ranks : std::set<unsigned>{14U, cores}) {
      describe_groups(topology, fmt::format("mapped by {}", mapping_name(mapping)),
                      topology.map_ranks(mapping, ranks), text);
    }
  }
  describe_groups(topology, "mapped by numa, levels SOCKET",
                  topology.map_ranks(Mapping::numa, cores), text, "SOCKET");
  for (const LevelKind kind : {LevelKind::numa, LevelKind::package}) {
    const Level* const level = topology.level(kind);
    if (level == nullptr) continue;
    describe_groups(topology, fmt::format("bound to {}", level->name), bind_to_units(*level, 2),
                    text);
  }
  return text;
}

Topology machine(const std::string& file) {
  return Topology::from_file((machines / file).string());
}

std::vector<std::string> files(const fs::path& folder, const std::vector<std::string>& endings) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (std::count(endings.begin(), endings.end(), entry.path().extension().string()) != 0) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> machine_files() { return files(machines, {".txt", ".xml"}); }

void expect_golden(const std::string& actual, const fs::path& golden, const char* target) {
  if (std::getenv("MUSTER_REGENERATE_GOLDEN") != nullptr) {
    std::ofstream(golden, std::ios::binary) << actual;
    return;
  }
  std::ifstream file(golden, std::ios::binary);
  const std::string expected{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(expected, actual) << "If the new text of " << golden << " is right: cmake --build "
                              << "<build folder> --target " << target;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (const char c : info.param) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

}  // namespace muster::test
