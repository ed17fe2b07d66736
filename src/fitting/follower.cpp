// SPDX-License-Identifier: BSD-3-Clause
#include "fitting/follower.hpp"

#include <algorithm>
#include <map>

namespace muster {
namespace {

constexpr double worth = 0.97;
constexpr std::int64_t rest_per_work = 99;
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

std::vector<Algorithm> candidates_on(const Topology& topology,
                                     const std::vector<Profile::Team>& teams) {
  std::vector<std::string> sets = topology.level_sets();
  sets.emplace_back("MACHINE");
  std::vector<Algorithm> candidates;
  for (const std::string_view recipe : fitted_recipes()) {
    for (const std::string& levels : sets) {
      candidates.push_back(parse_algorithm("scheduled-" + levels + ":" + std::string(recipe)));
    }
  }
  for (const Profile::Team& team : teams) candidates.push_back(parse_algorithm(team.algorithm));
  return candidates;
}

}  // namespace

bool Follower::pays_on(const Topology& topology) {
  for (const unsigned home : homes_of(topology)) {
    if (home != nowhere && home != 0) return true;
  }
  return false;
}

Follower::Follower(const Topology& topology, unsigned participants, MachineCosts costs, Clock clock,
                   std::vector<Profile::Team> teams)
    : topology_(topology),
      costs_(std::move(costs)),
      clock_(std::move(clock)),
      teams_(std::move(teams)),
      candidates_(candidates_on(topology, teams_)),
      home_of_pu_(homes_of(topology)),
      homes_(participants, nowhere),
      bindings_(participants),
      profiled_(none()),
      running_(unplaced_schedule(participants)),
      composed_(none()) {}

std::span<const Word> Follower::look(std::span<const Word> pus) noexcept {
  try {
    const std::int64_t begin = clock_();
    if (begin < next_ns_) return {};
    unsigned candidate = composed_.load(std::memory_order_relaxed);
    const bool moved = have_moved(pus);
    if (moved) learn(pus);
    if (moved && profiled_ != none()) {
      candidate = profiled_;
    } else if (!moved || candidate == none()) {
      if (untried_ == 0) return {};
      --untried_;
      candidate = tried_ = (tried_ + 1) % fitted();
    }
    const std::span<const Word> next = compose(candidate);
    const std::int64_t end = clock_();
    next_ns_ = end + rest_per_work * (end - begin);
    return next;
  } catch (...) {  // no memory: it goes on as it is
    return {};
  }
}

/// Not if somebody is where nobody can be, or has not said.
bool Follower::have_moved(std::span<const Word> pus) const {
  bool moved = false;
  for (std::size_t rank = 0; rank < pus.size(); ++rank) {
    const Word said = pus[rank];
    if (said == 0 || said > home_of_pu_.size() || home_of_pu_[said - 1] == nowhere) return false;
    moved = moved || home_of_pu_[said - 1] != homes_[rank];
  }
  return moved;
}

void Follower::learn(std::span<const Word> pus) {
  for (std::size_t rank = 0; rank < pus.size(); ++rank) {
    homes_[rank] = home_of_pu_[pus[rank] - 1];
    bindings_[rank] = {pus[rank] - 1};
  }
  seats_ = seats_of(topology_, bindings_, costs_);
  running_ns_ = estimate_ns(running_, seats_, costs_.costs);
  profiled_ = profiled();
  untried_ = profiled_ == none() ? fitted() : 0;
}

/// What is no schedule cannot be handed over.
unsigned Follower::profiled() const {
  if (teams_.empty()) return none();
  const Profile::Team& nearest = nearest_team(teams_, topology_, bindings_);
  const unsigned candidate = fitted() + static_cast<unsigned>(&nearest - teams_.data());
  return candidates_[candidate].name == "scheduled" ? candidate : none();
}

std::span<const Word> Follower::compose(unsigned candidate) {
  const Algorithm& algorithm = candidates_[candidate];
  const Grouping grouping = group_ranks(
      topology_.place(bindings_, topology_.active_levels(parse_level_mask(algorithm.levels))));
  if (grouping.status != Status::ok) return {};
  const bool is_profiled = candidate == profiled_;
  // The model, which estimates better, has chosen it; the same one for other places is estimated.
  const bool is_worth_it = is_profiled && algorithm.text() != state().algorithm;
  const double least_ns = is_worth_it ? HUGE_VAL : worth * running_ns_;
  try {
    Schedule next = muster::compose(grouping.tree, algorithm.recipe, Room::cells);
    const double ns = estimate_ns(next, seats_, costs_.costs, least_ns);
    if (ns >= least_ns) return {};
    std::vector<Word> packed;
    if (check_schedule(next).empty()) packed = pack(next);
    if (!packed.empty()) {
      packed_ = std::move(packed);
      running_ = std::move(next);
      running_ns_ = ns;
      composed_.store(candidate, std::memory_order_relaxed);
      changes_.fetch_add(1, std::memory_order_relaxed);
      return packed_;
    }
  } catch (const Error& error) {
    if (error.code() != Status::invalid) throw;  // else no room for so many cells
  }
  if (is_profiled) untried_ = fitted();
  return {};
}

Follower::State Follower::state() const {
  const unsigned candidate = composed_.load(std::memory_order_relaxed);
  if (candidate == none()) return {};
  return {candidates_[candidate].text(), changes_.load(std::memory_order_relaxed)};
}

}  // namespace muster
