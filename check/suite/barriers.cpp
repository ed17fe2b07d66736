// SPDX-License-Identifier: BSD-3-Clause
#include "check/suite/barriers.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "barrier/anyone.hpp"
#include "barrier/base_barriers.hpp"
#include "barrier/openmp_peers.hpp"
#include "check/suite/rehearsal.hpp"

namespace muster::check {
namespace {

/// The barriers that muster_options cannot name: those over messages, pthread_barrier_wait()'s, and
/// the OpenMP runtimes'.
template <class Fn>
void for_each_other_barrier(Fn&& fn) {
  for_each_base_barrier<Checked>(fn);
  fn.template operator()<Anyone<Checked>>();
  for_each_openmp_peer<Checked>(fn);
}

/// Arrivals that try again make many executions, minutes where others have seconds: it is not among
/// checked_algorithms().
bool is_anyone(std::string_view algorithm) { return algorithm == Anyone<Checked>::traits.name; }

/// Calls `fn.template operator()<B>()` with that one of them.
template <class Fn>
bool with_other_barrier(std::string_view name, Fn&& fn) {
  bool found = false;
  for_each_other_barrier([&]<class B>() {
    if (name != B::traits.name) return;
    fn.template operator()<B>();
    found = true;
  });
  return found;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t at = text.find(separator); at != std::string::npos;
       at = text.find(separator, from)) {
    parts.push_back(text.substr(from, at - from));
    from = at + 1;
  }
  parts.push_back(text.substr(from));
  return parts;
}

}  // namespace

std::string Scenario::name() const {
  return groups.levels.empty() ? algorithm.text() : algorithm.text() + " " + format_groups(groups);
}

Program make_barrier_program(const Scenario& scenario, Tuning& tuning) {
  Program program;
  const auto make = [&]<class B>() { program = rehearse<B>(scenario, tuning); };
  if (!with_other_barrier(scenario.algorithm.name, make)) {
    with_barrier<Checked>(scenario.algorithm.name, make);
  }
  return program;
}

bool has_variant(const Algorithm& algorithm, Variant variant) {
  if (variant == Variant::changes) return algorithm.name == "following";
  return variant != Variant::split || checked_traits(algorithm.name).splits;
}

GroupTree parse_groups(const std::string& text) {
  GroupTree tree;
  for (const std::string& level_text : split(text, '/')) {
    GroupLevel& level = tree.levels.emplace_back();
    level.name = "level " + std::to_string(tree.levels.size());
    for (const std::string& group_text : split(level_text, '|')) {
      Group& group = level.groups.emplace_back();
      for (const std::string& member : split(group_text, ',')) {
        unsigned rank = max_threads;
        const char* const end = member.data() + member.size();
        if (std::from_chars(member.data(), end, rank).ptr != end || rank >= max_threads) {
          throw Error(Status::invalid,
                      "groups are written like 0,1|2,3/0,2 with ranks below 8, "
                      "not \"" +
                          text + "\"");
        }
        group.members.push_back(rank);
        tree.participants = std::max(tree.participants, rank + 1);
      }
    }
  }
  const std::string fault = check_tree(tree);
  if (!fault.empty()) throw Error(Status::invalid, "the groups " + text + ": " + fault);
  return tree;
}

std::string format_groups(const GroupTree& groups) {
  std::string text;
  for (const GroupLevel& level : groups.levels) {
    if (!text.empty()) text += '/';
    for (std::size_t g = 0; g < level.groups.size(); ++g) {
      if (g > 0) text += '|';
      const auto& members = level.groups[g].members;
      for (std::size_t m = 0; m < members.size(); ++m) {
        if (m > 0) text += ',';
        text += std::to_string(members[m]);
      }
    }
  }
  return text;
}

const std::vector<GroupTree>& group_trees(unsigned participants) {
  static const std::map<unsigned, std::vector<GroupTree>> all = [] {
    const std::map<unsigned, std::vector<const char*>> texts = {
        {2, {"0,1", "0|1/0,1"}},
        {3, {"0,1,2", "0,1|2/0,2", "0|1,2/0,1", "0,2|1/0,1", "1,2/0,1"}},
        {4,
         {"0,1,2,3", "0,1|2,3/0,2", "0,2|1,3/0,1", "0,1,2|3/0,3", "0,1|2|3/0,2|3/0,3",
          "2,3/0,1,2"}},
        {5, {"0,1,2|3,4/0,3", "0,1|2,3|4/0,2|4/0,4"}},
        {6, {"0,1|2,3|4,5/0,2,4", "0,1|2,3|4,5/0,2|4/0,4"}},
        {8, {"0,1|2,3|4,5|6,7/0,2|4,6/0,4"}},
    };
    std::map<unsigned, std::vector<GroupTree>> trees;
    for (const auto& [n, list] : texts) {
      for (const char* text : list) trees[n].push_back(parse_groups(text));
    }
    return trees;
  }();
  static const std::vector<GroupTree> flat(1);
  const auto found = all.find(participants);
  return found == all.end() ? flat : found->second;
}

std::vector<unsigned> usual_participants(const std::string& algorithm) {
  if (algorithm == "combining-tree" || algorithm == "scheduled" || algorithm == "base-linear") {
    return {2, 3, 4, 5};
  }
  if (algorithm == "following") return {2, 3};  // more of schedules is scheduled's
  if (algorithm.starts_with("base-")) return {2, 3, 4, 5, 6};
  if (is_anyone(algorithm)) return {2, 3};
  const bool any_order = checked_traits(algorithm).champion == Champion::last_to_arrive;
  return any_order ? std::vector{2U, 3U, 4U} : std::vector{2U, 3U, 4U, 5U, 6U, 7U, 8U};
}

std::vector<Scenario> scenarios_of(const Algorithm& algorithm,
                                   const std::vector<unsigned>& participants,
                                   const std::vector<unsigned>& episodes, const GroupTree* groups) {
  std::vector<Scenario> all;
  const auto add = [&](unsigned n, const GroupTree& tree) {
    for (const unsigned e : episodes) all.push_back({algorithm, n, e, Variant::plain, tree});
    // The other variants are about single waits, and no more about many participants.
    if (n > (is_anyone(algorithm.name) ? 2 : 3)) return;
    for (const Variant v : {Variant::wraps, Variant::split, Variant::gives_up, Variant::timed,
                            Variant::destroy, Variant::changes, Variant::reuse}) {
      const unsigned e = v == Variant::changes ? episodes_of_changes(n) : 2;
      if (has_variant(algorithm, v)) all.push_back({algorithm, n, e, v, tree});
    }
  };
  if (groups != nullptr) {
    add(groups->participants, *groups);
    return all;
  }
  for (const unsigned n :
       participants.empty() ? usual_participants(algorithm.name) : participants) {
    if (!algorithm.uses_groups()) {
      add(n, {});
      continue;
    }
    for (const GroupTree& tree : group_trees(n)) add(n, tree);
  }
  return all;
}

std::vector<Algorithm> checked_algorithms() {
  std::vector<Algorithm> all;
  for (const std::string_view name : barrier_names()) {
    all.push_back(parse_algorithm(name));
    if (traits_of(name).radix != 0) {  // with few participants another one makes another tree
      all.push_back(parse_algorithm(std::string(name) + (name == "combining-tree" ? ":3" : ":2")));
    }
    if (name != "scheduled") continue;
    // Every kind of part: the default one is trees whose leaders tell each other.
    for (const char* recipe : {"tree2+line1x1/rounds", "count2+line1/count+line",
                               "count+line/flat+direct2", "flat+line/count+line1"}) {
      all.push_back(parse_algorithm(std::string("scheduled:") + recipe));
    }
  }
  for_each_base_barrier<Checked>(
      [&]<class B>() { all.push_back({.name = std::string(B::traits.name), .levels = {}}); });
  return all;
}

std::vector<std::string> checked_names() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : checked_algorithms()) {
    if (names.empty() || names.back() != algorithm.name) names.push_back(algorithm.name);
  }
  return names;
}

Algorithm parse_checked_algorithm(const std::string& text) {
  const bool other = with_other_barrier(text, []<class B>() {});
  return other ? Algorithm{.name = text, .levels = {}} : parse_algorithm(text);
}

const Traits& checked_traits(const std::string& name) {
  const Traits* traits = nullptr;
  with_other_barrier(name, [&]<class B>() { traits = &B::traits; });
  return traits != nullptr ? *traits : traits_of(name);
}

}  // namespace muster::check
