// SPDX-License-Identifier: BSD-3-Clause
#include "fitting/follower.hpp"

#include <algorithm>
#include <map>

namespace muster {
namespace {

constexpr double worth = 0.97;
constexpr unsigned nowhere = UINT32_MAX;

/// Of each PU's groups, by all the levels that group: equal where all of them are.
std::vector<unsigned> homes_of(const Topology& topology) {
  std::vector<PuSet> each;
  for (const unsigned pu : topology.pus().to_vector()) each.push_back({pu});
  const Placement placement = topology.place(each, topology.active_levels());
  std::map<std::vector<unsigned>, unsigned> homes;
  std::vector<unsigned> home_of_pu;
  for (std::size_t n = 0; n < each.size(); ++n) {
    std::vector<unsigned> units;
    for (const std::vector<unsigned>& level : placement.unit) units.push_back(level[n]);
    const unsigned pu = each[n].first();
    if (home_of_pu.size() <= pu) home_of_pu.resize(pu + 1, nowhere);
    home_of_pu[pu] = homes.emplace(units, static_cast<unsigned>(homes.size())).first->second;
  }
  return home_of_pu;
}

}  // namespace

Follower::Follower(const Topology& topology, unsigned participants, bool progresses, Clock clock)
    : topology_(topology),
      like_(nearest_machine(topology)),
      costs_(costs_on(like_, progresses)),
      room_(Room::of(participants)),
      clock_(std::move(clock)),
      home_of_pu_(homes_of(topology)) {}

const Schedule* Follower::look(std::span<const Word> pus) noexcept {
  const auto home = [&](Word said) {
    return said == 0 || said > home_of_pu_.size() ? nowhere : home_of_pu_[said - 1];
  };
  try {
    for (const Word said : pus) {
      if (home(said) == nowhere) return nullptr;
    }
    const bool first = made_for_.empty();
    std::vector<Word> settled = first ? std::vector<Word>(pus.begin(), pus.end()) : made_for_;
    bool moved = first;
    for (std::size_t rank = 0; rank < pus.size() && !first; ++rank) {
      if (home(pus[rank]) != home(last_[rank]) || home(pus[rank]) == home(settled[rank])) continue;
      settled[rank] = pus[rank];
      moved = true;
    }
    last_.assign(pus.begin(), pus.end());
    const std::int64_t now = clock_();
    if (!moved || !(search_.is_due(now) || regroup_.is_due(now))) return nullptr;
    made_for_ = std::move(settled);
    return compose(now);
  } catch (...) {  // no memory: it goes on as it is
    return nullptr;
  }
}

const Schedule* Follower::compose(std::int64_t now) {
  std::vector<PuSet> bindings;
  for (const Word said : made_for_) bindings.push_back({said - 1});
  const Seats seats = seats_of(topology_, bindings, like_);
  const bool searches = search_.is_due(now);
  std::string algorithm = state().algorithm;
  if (searches) {
    algorithm = fit_barrier(all_groups(topology_, bindings), seats, costs_, [&](const Schedule& s) {
                  return room_.fits(s);
                }).algorithm;
  }
  if (algorithm.empty()) return nullptr;
  const Algorithm parsed = parse_algorithm(algorithm);
  const Grouping grouping = group_ranks(
      topology_.place(bindings, topology_.active_levels(parse_level_mask(parsed.levels))));
  if (grouping.status != Status::ok) return nullptr;
  const auto participants = static_cast<unsigned>(bindings.size());
  Schedule next = compose_proved(&grouping.tree, participants, parsed.recipe);
  const bool pays = running_.programs.empty() ||
                    estimate_ns(next, seats, costs_) < worth * estimate_ns(running_, seats, costs_);
  (searches ? search_ : regroup_).took(now, clock_());
  if (!pays || !room_.fits(next)) return nullptr;
  running_ = std::move(next);
  const std::scoped_lock lock(mutex_);
  state_ = {std::move(algorithm), state_.changes + 1};
  return &running_;
}

Follower::State Follower::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

}  // namespace muster
