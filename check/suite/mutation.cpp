// SPDX-License-Identifier: BSD-3-Clause
#include "check/suite/mutation.hpp"

#include <algorithm>
#include <utility>

#include "check/report.hpp"
#include "check/suite/sleeping.hpp"

namespace muster::check {
namespace {

#include "check_markers.inc"

/// Adds the stores that C++ does not let come after their participant's next access anyway. It lets
/// those where that access is of another word, and neither releases nor waits.
void add_firm_stores(const Graph& graph, const Tuning& tuning, std::vector<Site>& firm) {
  const auto waits = [&](const Operation& op) {
    return op.kind == Kind::await ||
           std::ranges::any_of(tuning.accesses(), [&](const OrderedAccess& access) {
             return same_site(access.site, op.site) &&
                    std::string_view(access.what).starts_with("await");
           });
  };
  for (const EventId id : graph.order()) {
    const Operation& op = graph.at(id).op;
    int next = id.index + 1;
    while (next < graph.size(id.thread) && graph.at(id.thread, next).op.kind == Kind::choice)
      ++next;
    if (op.kind != Kind::store || next == graph.size(id.thread)) continue;
    const Event& then = graph.at(id.thread, next);
    if (then.op.location != op.location && !releases(then.order()) && !waits(then.op)) continue;
    const auto same = [&](const Site& site) { return same_site(site, op.site); };
    if (std::ranges::none_of(firm, same)) firm.push_back(op.site);
  }
}

/// Every access of the programs, found by running them as they are.
std::vector<OrderedAccess> accesses_of(const std::vector<Rehearsed>& programs,
                                       std::vector<Site>* firm = nullptr) {
  std::vector<OrderedAccess> all;
  for (const Rehearsed& rehearsed : programs) {
    Tuning tuning;
    const Program program = rehearsed.make(tuning);
    Options options;
    if (firm != nullptr) {
      options.on_execution = [&](const Graph& graph) { add_firm_stores(graph, tuning, *firm); };
    }
    const Result result = Explorer(program, options).explore();
    if (result.verdict != Verdict::holds) {
      throw Error(Status::invalid, rehearsed.name + " fails before anything is weakened: " +
                                       verdict_name(result.verdict));
    }
    for (const OrderedAccess& access : tuning.accesses()) {
      const bool known = std::any_of(all.begin(), all.end(), [&](const OrderedAccess& other) {
        return same_site(access.site, other.site) && access.order == other.order &&
               std::string_view(access.what) == other.what;
      });
      if (!known) all.push_back(access);
    }
  }
  return all;
}

/// Those to weaken. There are some: a gate that tries nothing has not been passed.
std::vector<OrderedAccess> accesses_to_weaken(const std::string& algorithm,
                                              const std::vector<Rehearsed>& programs,
                                              const std::string& only) {
  std::vector<OrderedAccess> all = accesses_of(programs);
  std::erase_if(all, [](const OrderedAccess& access) { return weakenings(access.order).empty(); });
  if (all.empty()) {
    throw Error(Status::invalid, algorithm +
                                     ": nothing is weakened, its programs have no order but "
                                     "relaxed; more participants may have one");
  }
  const OrderedAccess first = all.front();
  std::erase_if(all, [&](const OrderedAccess& access) {
    return !format_site(access.site).starts_with(only);
  });
  if (all.empty()) {
    throw Error(Status::unsupported,
                algorithm + ": nothing is weakened, none of its orders is found in " + only +
                    "; the compiler was given one's place as " + first.site.file);
  }
  return all;
}

std::vector<Fault> faults_of(const OrderedAccess& access) {
  const std::string_view what = access.what;
  if (what == "load" || what.ends_with("fence")) return {};
  if (what == "store") return {Fault::drop, Fault::late};
  if (what.starts_with("await")) return {Fault::skip};
  return {Fault::drop, Fault::tear};
}

}  // namespace

const std::vector<Marker>& markers() {
  static const std::vector<Marker> all(std::begin(found_markers) + 1, std::end(found_markers));
  return all;
}

const Marker* marker_of(const Site& site) {
  const std::string at = format_site(site);
  for (const Marker& marker : markers()) {
    if (at == std::string(marker.file) + ":" + std::to_string(marker.line)) return &marker;
  }
  return nullptr;
}

bool is_checked_source(std::string_view file) {
  return std::ranges::find(found_sources, file) != std::end(found_sources);
}

const char* fate_name(Fate fate) {
  constexpr const char* names[] = {"caught", "stronger", "not caught", "marked in vain"};
  return names[static_cast<int>(fate)];
}

HandWritten mutant_of_barrier(const char* name, Variant variant,
                              std::initializer_list<unsigned> participants,
                              Program (*rehearse)(const Scenario&, Tuning&), const char* recipe) {
  HandWritten made{name, {}};
  Algorithm algorithm;
  if (*recipe != '\0') algorithm = parse_algorithm(std::string("scheduled:") + recipe);
  for (const unsigned n : participants) {
    const unsigned e = variant == Variant::changes ? episodes_of_changes(n) : 3;
    made.programs.push_back(
        {"P=" + std::to_string(n) + " E=" + std::to_string(e), [=](Tuning& tuning) {
           return rehearse({algorithm, n, e, variant}, tuning);
         }});
  }
  return made;
}

Mutation hand_written_mutation(const std::string& name) {
  return {name, {{nullptr, 0}, "", Ordering::relaxed}, Ordering::relaxed, Fate::not_caught};
}

std::vector<Mutation> find_mutations(const std::string& algorithm,
                                     const std::vector<Rehearsed>& programs,
                                     const std::string& only) {
  std::vector<Mutation> all;
  for (const OrderedAccess& access : accesses_to_weaken(algorithm, programs, only)) {
    for (const Ordering weaker : weakenings(access.order)) {
      all.push_back({algorithm, access, weaker, Fate::not_caught});
    }
  }
  return all;
}

Mutation run_mutation(Mutation mutation, const std::vector<Rehearsed>& programs) {
  for (const Rehearsed& rehearsed : programs) {
    Tuning tuning;
    const Program program = rehearsed.make(tuning);
    if (mutation.weaker != mutation.access.order) {
      tuning.weaken(mutation.access.site, mutation.weaker);
    }
    Options options;
    options.spoiled = {mutation.access.site, mutation.fault};
    const Result result = Explorer(program, options).explore();
    if (result.verdict == Verdict::holds) continue;
    mutation.fate = Fate::caught;
    mutation.verdict = result.verdict;
    mutation.caught_by = rehearsed.name;
    break;
  }
  return mutation;
}

void judge_markers(std::vector<Mutation>& mutations) {
  for (Mutation& m : mutations) {
    if (marker_of(m.access.site) == nullptr) continue;
    const bool is_stronger = std::ranges::any_of(mutations, [&](const Mutation& other) {
      return same_site(other.access.site, m.access.site) &&
             (other.fate == Fate::not_caught || other.fate == Fate::stronger);
    });
    if (!is_stronger) {
      m.fate = Fate::marked_in_vain;
    } else if (m.fate == Fate::not_caught) {
      m.fate = Fate::stronger;
    }
  }
}

std::vector<Mutation> mutate(const std::string& algorithm, const std::vector<Rehearsed>& programs,
                             const std::string& only) {
  std::vector<Mutation> all = find_mutations(algorithm, programs, only);
  for (Mutation& mutation : all) mutation = run_mutation(std::move(mutation), programs);
  judge_markers(all);
  return all;
}

std::vector<Mutation> spoil(const std::string& algorithm, const std::vector<Rehearsed>& programs) {
  std::vector<Mutation> all;
  std::vector<Site> firm;
  for (const OrderedAccess& access : accesses_of(programs, &firm)) {
    if (!format_site(access.site).starts_with("src/")) continue;
    const auto same = [&](const Site& site) { return same_site(site, access.site); };
    for (const Fault fault : faults_of(access)) {
      // A store that nobody misses is not tried late.
      if (fault == Fault::late &&
          (all.back().fate != Fate::caught || std::ranges::none_of(firm, same))) {
        continue;
      }
      all.push_back({algorithm, access, access.order, Fate::not_caught});
      all.back().fault = fault;
      all.back() = run_mutation(all.back(), programs);
    }
  }
  return all;
}

std::vector<Rehearsed> mutation_programs(const std::vector<Algorithm>& variants,
                                         const std::vector<unsigned>& participants,
                                         const std::vector<unsigned>& episodes) {
  std::vector<Rehearsed> all;
  for (const unsigned e : episodes) {
    for (const unsigned n :
         participants.empty() ? usual_participants(variants.front().name) : participants) {
      for (const Algorithm& algorithm : variants) {
        for (const Scenario& scenario : scenarios_of(algorithm, {n}, {e})) {
          const Variant variant = scenario.variant;
          if (variant != Variant::plain && variant != Variant::split &&
              variant != Variant::changes) {
            continue;
          }
          all.push_back(
              {scenario.name() + " P=" + std::to_string(n) +
                   " E=" + std::to_string(scenario.episodes),
               [scenario](Tuning& tuning) { return make_barrier_program(scenario, tuning); }});
        }
      }
    }
  }
  return all;
}

std::vector<Rehearsed> mutation_programs_of_sleep() {
  std::vector<Rehearsed> all;
  for (const SleepProgram& program : sleep_programs()) {
    const std::string name = program.name;
    all.push_back(
        {"sleep " + name, [name](Tuning& tuning) { return make_sleep_program(name, tuning); }});
  }
  return all;
}

std::vector<Rehearsed> mutation_programs_of_lifetime() {
  std::vector<Rehearsed> all;
  for (const Variant variant : {Variant::destroy, Variant::timed}) {
    for (const char* name : {"sense-reversing", "dissemination", "mcs"}) {
      const Scenario scenario{parse_algorithm(name), 2, 2, variant};
      all.push_back(
          {scenario.name() + " P=2 E=2 " + variant_name(variant),
           [scenario](Tuning& tuning) { return make_barrier_program(scenario, tuning); }});
    }
  }
  return all;
}

}  // namespace muster::check
