// SPDX-License-Identifier: BSD-3-Clause
#include "topology/placement.hpp"

#include <algorithm>
#include <numeric>

#include "machine/format.hpp"

namespace muster {

Grouping group_ranks(const Placement& placement) {
  const unsigned participants = placement.participants;
  if (participants == 0) throw Error(Status::invalid, "a barrier has at least one participant");
  Grouping result;
  if (!placement.unbound.empty()) {
    result.status = Status::declined;
    result.reason = format(
        "unbound: {} may run on any core, so which caches and NUMA nodes the ranks share is "
        "unknown; "
        "bind every rank to a core, NUMA node or package, or use another algorithm",
        placement.unbound.size() == 1 ? format("rank {}", placement.unbound[0])
                                      : format("ranks {}", format_numbers(placement.unbound)));
    return result;
  }
  GroupTree& tree = result.tree;
  tree.participants = participants;
  std::vector<unsigned> climbing(participants);  // ascending: leaders and lifted ranks
  std::iota(climbing.begin(), climbing.end(), 0U);

  for (std::size_t l = 0; l < placement.levels.size(); ++l) {
    const std::vector<unsigned>& unit = placement.unit[l];
    unsigned units = 0;
    for (const unsigned rank : climbing) {
      if (is_unit(unit[rank])) units = std::max(units, unit[rank] + 1);
    }
    constexpr unsigned kNone = ~0U;
    std::vector<unsigned> group_of_unit(units, kNone);
    GroupLevel level{placement.levels[l], {}};
    std::vector<unsigned> next;
    for (const unsigned rank : climbing) {
      if (!is_unit(unit[rank])) {
        next.push_back(rank);
        continue;
      }
      unsigned& group = group_of_unit[unit[rank]];
      if (group == kNone) {
        group = static_cast<unsigned>(level.groups.size());
        level.groups.emplace_back();
        next.push_back(rank);  // the first is the lowest: the leader
      }
      level.groups[group].members.push_back(rank);
    }
    if (!level.groups.empty()) tree.levels.push_back(std::move(level));
    climbing = std::move(next);
  }
  tree.levels.push_back({"MACHINE", {Group{std::move(climbing)}}});
  return result;
}

Locality parse_locality(std::string_view text) {
  Locality locality;
  const auto fail = [&](const std::string& why) {
    throw Error(Status::invalid, format("locality string '{}': {}; it is written like "
                                        "SK0:L30:L20-1:L10-1:CR0-1:HT0-3:NM0",
                                        text, why));
  };
  std::string_view rest = text;
  constexpr std::string_view kPrefix = "hwloc:";
  if (rest.substr(0, kPrefix.size()) == kPrefix) rest.remove_prefix(kPrefix.size());
  if (rest.empty()) return locality;
  locality.unbound = false;
  bool any = false;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const std::string_view piece = rest.substr(0, colon);
    if (colon + 1 == rest.size()) fail("it ends in ':'");
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    if (piece.size() < 3) fail(format("'{}' is no resource and number", piece));
    const std::string_view resource = piece.substr(0, 2);
    const PuSet ids = [&] {
      try {
        return PuSet::parse(piece.substr(2));
      } catch (const Error&) {
        fail(format("'{}' has no list of numbers after {}", piece, resource));
        return PuSet{};
      }
    }();
    if (ids.empty()) fail(format("'{}' has no list of numbers after {}", piece, resource));
    struct Known {
      std::string_view resource;
      std::vector<unsigned> Locality::*ids;
    };
    constexpr Known kKnown[] = {{"SK", &Locality::package}, {"L3", &Locality::l3},
                                {"L2", &Locality::l2},      {"L1", &Locality::l1},
                                {"CR", &Locality::core},    {"HT", &Locality::pu},
                                {"NM", &Locality::numa}};
    for (const Known& known : kKnown) {
      if (known.resource != resource) continue;
      if (!(locality.*known.ids).empty()) fail(format("it names {} twice", resource));
      locality.*known.ids = ids.to_vector();
      any = true;
    }
  }
  if (!any) fail("it names none of SK L3 L2 L1 CR HT NM");
  return locality;
}

}  // namespace muster
