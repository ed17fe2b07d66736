// SPDX-License-Identifier: BSD-3-Clause
#include "random_machine.hpp"

#include <cmath>
#include <map>

#include "sim/random.hpp"

namespace muster::sim {
namespace {

/// Between low and high, each order of magnitude as likely as the other.
double spread(Random& random, double low, double high) {
  return low * std::pow(high / low, random.unit());
}

Geometry random_geometry(Random& random, unsigned participants) {
  Geometry geometry;
  geometry.dies_ = 1 + random.below(8);
  for (unsigned p = 0; p < participants; ++p) {
    geometry.die_of_.push_back(static_cast<std::uint16_t>(random.below(geometry.dies_)));
  }
  geometry.between_.resize(std::size_t{geometry.dies_} * geometry.dies_);
  for (unsigned a = 0; a < geometry.dies_; ++a) {
    for (unsigned b = 0; b <= a; ++b) {
      const Time latency = from_ns(spread(random, 1, 1000));
      geometry.between_[a * geometry.dies_ + b] = geometry.between_[b * geometry.dies_ + a] =
          latency;
    }
  }
  if (random.below(3) == 0) {
    Geometry::Inner inner{{}, from_ns(spread(random, 1, 50))};
    for (unsigned p = 0; p < participants; ++p) {
      inner.unit_of.push_back(static_cast<std::uint16_t>(random.below(participants)));
    }
    geometry.inner_.push_back(inner);
  }
  return geometry;
}

/// A random partition of the leaders at each level, down to one group.
GroupTree random_groups(Random& random, unsigned participants) {
  GroupTree tree;
  tree.participants = participants;
  std::vector<unsigned> members(participants);
  for (unsigned p = 0; p < participants; ++p) members[p] = p;
  const unsigned levels = random.below(4);
  for (unsigned l = 0; l <= levels; ++l) {
    const unsigned units =
        l == levels ? 1 : 1 + random.below(static_cast<unsigned>(members.size()));
    std::map<unsigned, Group> by_unit;
    for (const unsigned member : members) by_unit[random.below(units)].members.push_back(member);
    GroupLevel level{"L" + std::to_string(l), {}};
    std::map<unsigned, Group> by_leader;
    for (const auto& [unit, group] : by_unit) by_leader[group.leader()] = group;
    members.clear();
    for (const auto& [leader, group] : by_leader) {
      members.push_back(leader);
      level.groups.push_back(group);
    }
    tree.levels.push_back(level);
  }
  return tree;
}

}  // namespace

RandomSetup random_setup(std::uint64_t seed) {
  Random random(seed * 7919 + 17);
  RandomSetup result;
  BarrierSetup& setup = result.setup;
  const unsigned participants = 1 + random.below(random.below(4) == 0 ? 70 : 17);
  setup.geometry = random_geometry(random, participants);
  for (const ParameterInfo& info : parameter_table()) {
    const double low = std::max(info.min, 0.05);
    const double high = info.unit.empty() ? 40 : std::min(info.max, 500.0);
    setup.parameters.*info.value = spread(random, low, high);
  }
  for (int m = 0; m < mechanism_count; ++m) {
    if (random.below(5) == 0) setup.mechanisms = setup.mechanisms.without(Mechanism(m));
  }
  setup.shape.participants = participants;
  setup.shape.radix = 2 + random.below(5);
  setup.shape.first_episode = random.below(3) == 0 ? 0 : Word(0) - 1 - random.below(8);
  setup.seed = random.next();
  setup.warm_up = 1 + random.below(3);
  setup.measured = 4 + random.below(12);
  const unsigned style = random.below(4);
  const double late_ns = spread(random, 1, 20000);
  if (style == 1) {  // everybody at random
    setup.work = [late_ns](Random& r, unsigned, unsigned) { return from_ns(late_ns * r.unit()); };
  } else if (style == 2) {  // now and then somebody is very late
    setup.work = [late_ns](Random& r, unsigned, unsigned) {
      return r.below(8) == 0 ? from_ns(late_ns) : Time{0};
    };
  } else if (style == 3) {  // always the same one
    const unsigned late = random.below(participants);
    setup.work = [late_ns, late](Random&, unsigned p, unsigned) {
      return p == late ? from_ns(late_ns) : Time{0};
    };
  }
  result.groups = random_groups(random, participants);
  result.text = "random_setup(" + std::to_string(seed) + "): " + std::to_string(participants) +
                " participants on " + std::to_string(setup.geometry.dies()) + " dies";
  return result;
}

}  // namespace muster::sim
