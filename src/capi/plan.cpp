// SPDX-License-Identifier: BSD-3-Clause
#include "capi/plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "fitting/fitting.hpp"
#include "fitting/follower.hpp"
#include "machine/format.hpp"
#include "machine/made_once.hpp"
#include "machine/usable_cpus.hpp"

namespace muster {
namespace {

const char* or_default(const char* text, const char* fallback) {
  return text != nullptr ? text : fallback;
}

/// Topologies do not change while a process runs, and reading one takes milliseconds.
const Topology& cached_topology(const std::string& spec) {
  static constinit Remembered<std::string, const Topology*, ~0U> topologies;
  return *topologies.of(spec, [&] {
    return new Topology(Topology::from_spec_or_environment(spec, Topology::Cpus::of_host));
  });
}

/// A profile's, or what is composed now. `costs`: as far as more is known than the topology.
Choice fitting_choice(const Topology& topology, const std::vector<PuSet>& bindings, bool progresses,
                      const MachineCosts* costs = nullptr) {
  const Profiled profiled = profiled_choice(topology, bindings, progresses);
  if (profiled.choice) return *profiled.choice;
  Choice choice =
      fit_choice(topology, bindings, costs != nullptr ? *costs : costs_for(topology, progresses));
  if (!profiled.ignored.empty()) choice.why += "; " + profiled.ignored;
  return choice;
}

/// The same participants make many barriers, and to fit one takes milliseconds too.
Choice cached_choice(const Topology& topology, const std::vector<PuSet>& bindings,
                     bool progresses) {
  using Key = std::tuple<const Topology*, std::vector<PuSet>, bool>;
  static constinit Remembered<Key, Choice, 64> choices;
  return choices.of(Key(&topology, bindings, progresses),
                    [&] { return fitting_choice(topology, bindings, progresses); });
}

/// Where the ranks are, as far as the options say.
struct Bindings {
  const Topology* topology = nullptr;  // null: nothing is known
  std::vector<PuSet> pus;              // one a rank; an empty set is unbound
  std::vector<PuSet> others;           // one each
};

std::vector<PuSet> read_binding_texts(const Topology& topology, const char* const* bindings,
                                      unsigned count) {
  std::vector<std::string> texts;
  for (unsigned r = 0; r < count; ++r) {
    texts.emplace_back(or_default(bindings != nullptr ? bindings[r] : nullptr, ""));
  }
  return topology.read_bindings(texts);
}

Bindings read_bindings(const muster_options& options) {
  Bindings result;
  const std::string imposed = or_default(options.topology, "");
  if (options.map_by == nullptr && options.bindings == nullptr) {
    // Where nobody is bound it decides little, but a mistake in it is said all the same.
    if (!imposed.empty() || Topology::environment_imposes()) cached_topology(imposed);
    return result;
  }
  result.topology = &cached_topology(imposed);
  result.pus = options.map_by != nullptr
                   ? result.topology->map_ranks(parse_mapping(options.map_by), options.participants)
                   : read_binding_texts(*result.topology, options.bindings, options.participants);
  result.others = read_binding_texts(*result.topology, options.other_bindings, options.others);
  return result;
}

/// Whether some core has several ranks bound to it.
bool share_cores(const Bindings& bindings) {
  const Topology& topology = *bindings.topology;
  std::vector<bool> taken(topology.cores().size());
  for (const PuSet& pus : bindings.pus) {
    if (pus.empty()) continue;
    const unsigned core = topology.core_of(pus.first());
    if (core == kOutside || !pus.is_subset_of(topology.cores()[core].pu_set())) continue;
    if (taken[core]) return true;
    taken[core] = true;
  }
  return false;
}

/// The levels of a mask; CORE by name groups even where each core has one PU, if ranks share cores.
ActiveLevels levels_for(const Bindings& bindings, const LevelMask& mask) {
  const Topology& topology = *bindings.topology;
  ActiveLevels active = topology.active_levels(mask);
  const bool asked =
      std::find(mask.kinds.begin(), mask.kinds.end(), LevelKind::core) != mask.kinds.end();
  const bool there = std::any_of(active.levels.begin(), active.levels.end(),
                                 [](const Level& level) { return level.kind == LevelKind::core; });
  const Level* cores = topology.level(LevelKind::core);
  if (asked && !there && cores != nullptr && share_cores(bindings)) {
    active.levels.insert(active.levels.begin(), *cores);
    std::erase_if(active.dropped, [](const DroppedLevel& level) { return level.name == "CORE"; });
  }
  return active;
}

/// The NUMA node that each rank's memory should be on; empty where a rank spans several.
std::vector<unsigned> numa_nodes_of(const Bindings& bindings) {
  std::vector<unsigned> nodes;
  const Level* numa =
      bindings.topology != nullptr ? bindings.topology->level(LevelKind::numa) : nullptr;
  if (numa == nullptr) return {};
  for (const PuSet& pus : bindings.pus) {
    const unsigned id = pus.empty() ? kOutside : numa->unit_of_binding(pus);
    const auto unit = std::find_if(numa->units.begin(), numa->units.end(),
                                   [&](const Unit& candidate) { return candidate.id == id; });
    if (unit == numa->units.end()) return {};
    nodes.push_back(unit->os_index);
  }
  return nodes;
}

bool all_bound(const Bindings& bindings) {
  if (bindings.topology == nullptr) return false;
  const PuSet& all = bindings.topology->pus();
  return std::none_of(bindings.pus.begin(), bindings.pus.end(), [&](const PuSet& pus) {
    return pus.empty() || (bindings.topology->cores().size() > 1 && pus == all);
  });
}

/// Control groups are read once a process: it takes some 100 us, and they seldom change.
unsigned limited_by_quota(unsigned cpus) {
  static constinit MadeOnce<std::optional<unsigned>> read;
  const std::optional<unsigned>& quota = read.get([] { return cpu_quota(); });
  return quota ? std::min(cpus, *quota) : cpus;
}

/// How many of `sets` can have a PU of their own at once: a maximum matching (Kuhn). Two that are
/// bound to one PU cannot, however many others there are.
unsigned own_pus(const std::vector<PuSet>& sets) {
  std::map<unsigned, std::size_t> owner;  // PU -> whose
  std::set<unsigned> tried;
  const auto place = [&](auto&& self, std::size_t who) -> bool {
    for (unsigned pu = sets[who].first(); pu != PuSet::kEnd; pu = sets[who].next(pu + 1)) {
      if (owner.emplace(pu, who).second) return true;
    }
    for (unsigned pu = sets[who].first(); pu != PuSet::kEnd; pu = sets[who].next(pu + 1)) {
      if (tried.insert(pu).second && self(self, owner[pu])) {
        owner[pu] = who;
        return true;
      }
    }
    return false;
  };
  unsigned placed = 0;
  for (std::size_t who = 0; who < sets.size(); ++who) {
    tried.clear();
    if (place(place, who)) ++placed;
  }
  return placed;
}

/// CPUs the participants, and the others, share. Bound ones use those they are bound to, whatever
/// this thread's own mask; the rest may be anywhere. `machine`: theirs, if it is not this one.
unsigned cpus_for(const Bindings& bindings, const Topology* machine) {
  const auto is_bound = [](const PuSet& pus) { return !pus.empty(); };
  if (bindings.topology == nullptr ||
      (machine == nullptr && !bindings.topology->is_this_machine()) ||
      (std::none_of(bindings.pus.begin(), bindings.pus.end(), is_bound) &&
       std::none_of(bindings.others.begin(), bindings.others.end(), is_bound))) {
    return machine != nullptr ? machine->pus().count() : affinity_cpus();
  }
  std::vector<PuSet> sets = bindings.pus;
  sets.insert(sets.end(), bindings.others.begin(), bindings.others.end());
  PuSet used;
  for (PuSet& pus : sets) {
    if (pus.empty()) pus = bindings.topology->pus();
    used |= pus;
  }
  const unsigned all = used.count();
  const unsigned own = all < sets.size() ? all : own_pus(sets);
  return own < sets.size() ? std::max(1U, own) : all;
}

std::string join_dropped(const std::vector<DroppedLevel>& dropped) {
  std::string text;
  for (const DroppedLevel& level : dropped) {
    text += format("{}{}: {}", text.empty() ? "" : "; ", level.name, level.reason);
  }
  return text;
}

void check(const muster_options& o) {
  if (o.participants < 1 || o.participants > participants_max) {
    throw Error(Status::invalid,
                format("{} participants: 1 to {} are possible", o.participants, participants_max));
  }
  if (o.others > participants_max) {
    throw Error(Status::invalid,
                format("{} others: 0 to {} are possible", o.others, participants_max));
  }
  if (o.map_by != nullptr && o.bindings != nullptr) {
    throw Error(Status::invalid, "map_by and bindings contradict each other: set one of them");
  }
  if (o.segment != nullptr && o.memory != nullptr) {
    throw Error(Status::invalid, "segment and memory contradict each other: set one of them");
  }
  if ((o.flags & ~(MUSTER_SHARED | MUSTER_SPLIT | MUSTER_EXACT | MUSTER_APART)) != 0) {
    throw Error(Status::invalid, format("unknown flags {:#x}", o.flags));
  }
}

}  // namespace

const Topology& whole_machine() { return cached_topology(""); }

Profiles known_profiles(const Topology& topology, bool progresses) {
  static constinit Remembered<std::pair<const Topology*, bool>, Profiles, 8> profiles;
  return profiles.of(std::pair(&topology, progresses),
                     [&] { return read_profiles(topology, progresses); });
}

void Plan::make_schedule() {
  if (algorithm.name != "scheduled") return;
  schedule = compose_proved(&groups, participants, algorithm.recipe);
}

Plan make_plan(const muster_options& options, const MachineCosts* elsewhere) {
  check(options);
  Plan plan;
  plan.participants = options.participants;
  plan.shared = (options.flags & MUSTER_SHARED) != 0 || options.segment != nullptr;
  plan.split = (options.flags & MUSTER_SPLIT) != 0;
  plan.completes = options.completion != nullptr;
  plan.first_episode = options.first_episode;
  plan.asked = or_default(options.algorithm, "auto");
  plan.algorithm = parse_algorithm(plan.asked);
  const LevelMask mask = parse_level_mask(plan.algorithm.levels);

  const Bindings bindings = read_bindings(options);
  const bool bound = all_bound(bindings);
  const unsigned cpus =
      cpus_for(bindings,
               elsewhere != nullptr ? &cached_topology(or_default(options.topology, "")) : nullptr);
  plan.usable_cpus = elsewhere != nullptr ? cpus : limited_by_quota(cpus);
  if (bound && bindings.topology->is_this_machine()) plan.numa_of_rank = numa_nodes_of(bindings);
  if (bound) {
    const std::vector<unsigned> nodes = numa_nodes_of(bindings);
    plan.numa_nodes = std::max<unsigned>(
        1, static_cast<unsigned>(std::set<unsigned>(nodes.begin(), nodes.end()).size()));
  }
  const char* wait = or_default(options.wait, "auto");
  // By the CPUs alone: a quota limits their time, and who spins for a moment uses less of it than
  // who sleeps and is woken.
  plan.wait = WaitPolicy::by_name(wait, plan.participants + options.others, cpus,
                                  options.progress != nullptr);
  if (wait != std::string_view("auto")) {
    plan.wait_why = "as asked for";
  } else {
    plan.wait_why =
        format("{}{} on {}", counted(plan.participants, "participants"),
               options.others > 0 ? format(" and {}", counted(options.others, "others")) : "",
               counted(cpus, "usable CPUs"));
    if (plan.usable_cpus < cpus) {
      plan.wait_why += format(", whose time a quota limits to that of {}", plan.usable_cpus);
    }
    if ((options.flags & MUSTER_APART) != 0 && plan.wait.sharers > 1) {
      plan.wait = WaitPolicy::sleep();
      plan.wait_why += ", in scheduling groups that a yield does not leave";
    } else if (options.progress != nullptr) {
      plan.wait_why += ", and progress to make";
    }
  }

  Situation situation{.participants = plan.participants,
                      .others = options.others,
                      .usable_cpus = plan.usable_cpus,
                      .bound = bound,
                      .share_cores = bound && share_cores(bindings),
                      .needs_split = plan.split,
                      .needs_champion = plan.completes,
                      .compose = {}};
  if (bound) {
    situation.compose = [&] {
      const bool progresses = options.progress != nullptr;
      return elsewhere != nullptr
                 ? fitting_choice(*bindings.topology, bindings.pus, progresses, elsewhere)
                 : cached_choice(*bindings.topology, bindings.pus, progresses);
    };
  }
  const auto learn = [&] {  // what takes milliseconds is done where it can matter
    const bool wanted = plan.participants > 2 && plan.participants <= followed_max &&
                        plan.participants + options.others <= plan.usable_cpus && !plan.split &&
                        !plan.completes;
    if (situation.bound || !wanted) return;
    const Topology& machine = cached_topology(or_default(options.topology, ""));
    situation.follows = Follower::pays_on(machine);
    if (situation.follows) plan.numa_nodes = std::max(1U, machine.numa_nodes());
  };
  const auto choose = [&](const std::string& prefix) {
    learn();
    Choice choice = choose_barrier(situation);
    plan.algorithm = choice.algorithm;
    plan.why = prefix + choice.why;
    if (plan.algorithm.name != "following") return;
    const Profiles profiles = known_profiles(cached_topology(or_default(options.topology, "")),
                                             options.progress != nullptr);
    if (!profiles.serving.empty()) {
      plan.why += "; what profile '" + profiles.serving.front().path + "' has for that comes first";
    }
    if (!profiles.ignored.empty()) plan.why += "; " + profiles.ignored;
  };
  const auto decline = [&](const std::string& reason) {
    if ((options.flags & MUSTER_EXACT) != 0)
      throw Error(Status::declined, plan.asked + " declines: " + reason);
    situation.bound = false;
    choose(plan.asked + " declines: " + reason + "; instead: ");
  };
  const auto group = [&] {
    const LevelMask levels = parse_level_mask(plan.algorithm.levels);
    const ActiveLevels active = levels_for(bindings, levels);
    Grouping grouping = group_ranks(bindings.topology->place(bindings.pus, active));
    if (grouping.status == Status::ok) {
      plan.groups = std::move(grouping.tree);
      plan.dropped = join_dropped(active.dropped);
    } else {
      decline(grouping.reason);
    }
  };

  if (plan.algorithm.name == "auto")
    choose("");
  else
    plan.why = "as asked for";
  if (plan.algorithm.uses_groups() && plan.participants > 1) {
    if (bindings.topology == nullptr) {
      decline("nothing is known of where the participants sit (set map_by or bindings)");
    } else {
      group();
    }
  }
  const Traits& traits = traits_of(plan.algorithm.name);
  if (plan.split && !traits.splits) {
    throw Error(Status::unsupported,
                format("{} does not split into arrive and depart; \"auto\" chooses one that does",
                       traits.name));
  }
  if (plan.completes && traits.champion == Champion::nobody) {
    throw Error(
        Status::unsupported,
        format("{} has no moment for a completion; \"auto\" chooses one that has", traits.name));
  }
  plan.make_schedule();
  return plan;
}

}  // namespace muster
