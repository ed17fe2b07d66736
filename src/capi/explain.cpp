// SPDX-License-Identifier: BSD-3-Clause
#include "capi/explain.hpp"

#include <algorithm>

#include "capi/text.hpp"
#include "machine/format.hpp"

namespace muster {
namespace {

std::string budget(std::int64_t ns) {
  return ns == WaitPolicy::forever ? "for ever" : format("{} us", ns / 1000);
}

std::string describe_wait(const WaitPolicy& wait) {
  std::string text;
  if (wait.learns) {
    if (wait.spin_ns > 0) text = "spins for up to " + budget(wait.spin_ns) + " where that pays";
    if (wait.yield_ns == WaitPolicy::forever) return text + ", then yields where that pays";
    if (wait.yield_ns > 0)
      text += (text.empty() ? "" : ", then ") + std::string("yields for up to ") +
              budget(wait.yield_ns) + " where that pays";
    return text + ", then sleeps";
  }
  if (wait.spin_ns > 0) text += "spins " + budget(wait.spin_ns);
  if (wait.spin_ns != WaitPolicy::forever && wait.yield_ns > 0) {
    text += (text.empty() ? "yields " : ", then yields ") + budget(wait.yield_ns);
  }
  if (wait.spin_ns != WaitPolicy::forever && wait.yield_ns != WaitPolicy::forever) {
    text += text.empty() ? "sleeps at once" : ", then sleeps";
  }
  return text;
}

std::string describe(const Learnt& learnt) {
  std::string text =
      format("{} here: {} may stay awake in full, {} for less, {} not at all; {} slept through",
             counted(learnt.ranks, "ranks"), learnt.ranks - learnt.shorter - learnt.not_awake,
             learnt.shorter, learnt.not_awake, counted(learnt.slept, "waits"));
  if (learnt.yields_banned_ns > 0) {
    text += format("; yields lose whole time slices, none for {} ms",
                   learnt.yields_banned_ns / 1'000'000);
  }
  return text;
}

/// "NUMA, 4 groups of 32"
std::string where(const GroupLevel& level) {
  std::size_t least = level.groups.front().members.size();
  std::size_t most = least;
  for (const Group& group : level.groups) {
    least = std::min(least, group.members.size());
    most = std::max(most, group.members.size());
  }
  return format("{}, {} of {}", level.name, counted(level.groups.size(), "groups"),
                least == most ? format("{}", most) : format("{} to {}", least, most));
}

/// Whether anybody meets anybody there.
bool joins(const GroupLevel& level) {
  return std::any_of(level.groups.begin(), level.groups.end(),
                     [](const Group& group) { return group.members.size() > 1; });
}

std::string gathering(const LevelRecipe& recipe) {
  switch (recipe.gather) {
    case LevelRecipe::Gather::tree:
      return recipe.radix == 0 ? "the leader polls everybody's flag"
                               : format(
                                     "flags climb a tree of {} children a vertex to the "
                                     "leader",
                                     recipe.radix);
    case LevelRecipe::Gather::counter:
      return recipe.radix == 0
                 ? "all add to one counter, and whoever is last goes on"
                 : format("{} add to a counter, and whoever is last goes on", recipe.radix);
    case LevelRecipe::Gather::all:
      return "each tells each, so that all know";
    case LevelRecipe::Gather::rounds:
      return "in rounds each tells the one 1, 2, 4, ... places on, until all know";
  }
  return "";
}

std::string releasing(const LevelRecipe& recipe) {
  std::string text = recipe.readers == 0 ? "one line tells all"
                                         : format("a line tells up to {} of them", recipe.readers);
  if (recipe.fan_out != 0) text += format(", who tell {} further lines each", recipe.fan_out);
  if (recipe.direct) text += ": all ranks below, not the members alone";
  return text;
}

std::vector<std::string> steps_of_schedule(const Plan& plan) {
  const GroupTree groups = groups_or_one(&plan.groups, plan.participants);
  const Recipe recipe = plan.algorithm.recipe.empty() ? recipe_for(groups) : plan.algorithm.recipe;
  std::vector<std::string> up;
  std::vector<std::string> down;
  for (std::size_t level = 0; level < groups.levels.size(); ++level) {
    if (!joins(groups.levels[level])) continue;
    const LevelRecipe& how = part_for(recipe, level, groups.levels.size());
    const std::string at = where(groups.levels[level]) + ": ";
    up.push_back(at + gathering(how));
    if (!how.exchanges()) down.insert(down.begin(), at + releasing(how));
  }
  up.insert(up.end(), down.begin(), down.end());
  return up;
}

/// What happens in an episode, in this order.
std::vector<std::string> steps_of(const Plan& plan) {
  const std::string& name = plan.algorithm.name;
  const unsigned rounds = rounds_of(plan.participants);
  if (plan.participants == 1) return {"nothing: nobody else comes"};
  if (name == "scheduled") return steps_of_schedule(plan);
  if (name == "following") {
    return {"each says where it runs, when that has changed",
            "rank 0 looks at times, and composes another schedule where that pays",
            "from an episode on that all know, all go by that schedule"};
  }
  const std::string counted_in =
      format("{} add to a counter, and whoever is last goes on", plan.algorithm.radix);
  if (name == "topo" || name == "topo-counter") {
    std::vector<std::string> steps;
    for (const GroupLevel& level : plan.groups.levels) {
      if (!joins(level)) continue;
      steps.push_back(where(level) + ": " +
                      (name == "topo" ? "the leader polls a counter of each member" : counted_in));
    }
    steps.emplace_back("who knows that all have arrived reverses one line, which the others poll");
    return steps;
  }
  if (name == "combining-tree") {
    return {format("{} add to a counter, and whoever is last climbs to the next one",
                   plan.algorithm.radix),
            "whoever is last at the top turns back, and releases counter by counter"};
  }
  if (name == "mcs") {
    return {"flags climb a tree of 4 children a rank to rank 0",
            "flags come down a tree of 2 children a rank"};
  }
  if (name == "tournament") {
    return {format("{}: half of those who are left tell the others, and wait",
                   counted(rounds, "rounds")),
            "rank 0 wakes those it has beaten, the last first, and they theirs"};
  }
  if (name == "dissemination") {
    return {format("{}: each tells the one 1, 2, 4, ... ranks on, and then all know",
                   counted(rounds, "rounds"))};
  }
  if (name == "sense-reversing-counter" || name == "sense-reversing-gr") {
    return {"rank 0 polls a counter of each rank",
            name == "sense-reversing-gr" ? "rank 0 stores a flag of each rank"
                                         : "rank 0 reverses one line, which all poll"};
  }
  return {name == "sense-reversing-pu" ? counted_in : "all add to one counter",
          "whoever is last reverses one line, which all others poll"};
}

std::string listed(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ",") + item;
  return "[" + text + "]";
}

}  // namespace

std::string explain_as_text(const Plan& plan, const BlockLayout& layout, const Learnt& learnt,
                            const Whereabouts& where) {
  const Traits& traits = traits_of(plan.algorithm.name);
  std::string text;
  text += format("algorithm     {} (asked for: {})\n", plan.algorithm.text(), plan.asked);
  text += format("because       {}\n", plan.why);
  text += format("cost          {}\n", traits.cost);
  text += format("source        {}\n", traits.source);
  text += format("participants  {} ({}) on {}\n", plan.participants,
                 plan.shared ? "threads or processes" : "threads of one process",
                 counted(plan.usable_cpus, "usable CPUs"));
  text += format("waiting       {}: {} ({})\n", plan.wait.name, describe_wait(plan.wait),
                 plan.wait_why);
  if (learnt.ranks > 0) text += "learnt        " + describe(learnt) + "\n";
  if (!where.pus.empty()) {
    std::string seats;
    for (const Word pu : where.pus) seats += pu == 0 ? " ?" : format(" {}", pu - 1);
    text += format("seats         on CPU, by rank:{}\n", seats);
    if (!where.composed.empty()) {
      text += format("runs          {} ({})\n", where.composed, counted(where.changes, "changes"));
    }
  }
  if (!plan.dropped.empty()) text += format("levels left   {}\n", plan.dropped);
  for (const GroupLevel& level : plan.groups.levels) {
    std::string groups;
    for (const Group& group : level.groups) groups += "  {" + format_numbers(group.members) + "}";
    text +=
        format("level {:<8}{}:{}\n", level.name, counted(level.groups.size(), "groups"), groups);
  }
  const std::vector<std::string> steps = steps_of(plan);
  for (std::size_t n = 0; n < steps.size(); ++n) {
    text += format("step {:<9}{}\n", n + 1, steps[n]);
  }
  text +=
      format("memory        {} bytes; {} a rank{}, lines of {}\n", layout.bytes, layout.rank_stride,
             layout.paged ? " (whole pages: several NUMA nodes)" : "", layout.line);
  return text;
}

std::string explain_as_json(const Plan& plan, const BlockLayout& layout, const Learnt& learnt,
                            const Whereabouts& where) {
  std::vector<std::string> groups;
  for (const GroupLevel& level : plan.groups.levels) {
    for (const Group& group : level.groups) {
      std::vector<std::string> members;
      for (const unsigned member : group.members) members.push_back(std::to_string(member));
      groups.push_back(format(R"({{"level":{},"members":{},"leader":{}}})", quoted(level.name),
                              listed(members), group.leader()));
    }
  }
  std::vector<std::string> steps = steps_of(plan);
  for (std::string& step : steps) step = quoted(step);
  const auto ns = [](std::int64_t value) {
    return value == WaitPolicy::forever ? "null" : std::to_string(value);
  };
  std::string text = format(
      R"({{"algorithm":{},"asked":{},"why":{},"participants":{},"shared":{},"usable_cpus":{},)",
      quoted(plan.algorithm.text()), quoted(plan.asked), quoted(plan.why), plan.participants,
      plan.shared, plan.usable_cpus);
  text += format(R"("wait":{{"policy":{},"why":{},"spin_ns":{},"yield_ns":{}}},)",
                 quoted(plan.wait.name), quoted(plan.wait_why), ns(plan.wait.spin_ns),
                 ns(plan.wait.yield_ns));
  text += format(R"("levels_dropped":{},"groups":{},"steps":{},)", quoted(plan.dropped),
                 listed(groups), listed(steps));
  if (learnt.ranks > 0) {
    text += format(
        R"("learnt":{{"ranks":{},"shorter":{},"not_awake":{},"slept":{},"yields_banned_ns":{}}},)",
        learnt.ranks, learnt.shorter, learnt.not_awake, learnt.slept, learnt.yields_banned_ns);
  }
  if (!where.pus.empty()) {
    std::vector<std::string> pus;
    for (const Word pu : where.pus) pus.push_back(pu == 0 ? "null" : std::to_string(pu - 1));
    text += format(R"("whereabouts":{{"pus":{},"composed":{},"changes":{}}},)", listed(pus),
                   quoted(where.composed), where.changes);
  }
  return text +
         format(R"("memory":{{"bytes":{},"bytes_per_rank":{},"paged":{},"line_bytes":{}}}}})",
                layout.bytes, layout.rank_stride, layout.paged, layout.line);
}

}  // namespace muster
