// SPDX-License-Identifier: BSD-3-Clause
#include "capi/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace muster {
namespace {

std::string budget(std::int64_t ns) {
  return ns == WaitPolicy::forever ? "for ever" : fmt::format("{} us", ns / 1000);
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

std::string count(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string describe(const Learnt& learnt) {
  std::string text = fmt::format(
      "{} here: {} may stay awake in full, {} for less, {} not at all; {} slept through",
      count(learnt.ranks, "rank"), learnt.ranks - learnt.shorter - learnt.not_awake, learnt.shorter,
      learnt.not_awake, count(learnt.slept, "wait"));
  if (learnt.yields_banned_ns > 0) {
    text += fmt::format("; yields lose whole time slices, none for {} ms",
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
  return fmt::format(
      "{}, {} of {}", level.name, count(level.groups.size(), "group"),
      least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most));
}

std::string gathering(const LevelRecipe& recipe) {
  switch (recipe.gather) {
    case LevelRecipe::Gather::tree:
      return recipe.radix == 0 ? "the leader polls everybody's flag"
                               : fmt::format(
                                     "flags climb a tree of {} children a vertex to the "
                                     "leader",
                                     recipe.radix);
    case LevelRecipe::Gather::counter:
      return recipe.radix == 0
                 ? "all add to one counter, and whoever is last goes on"
                 : fmt::format("{} add to a counter, and whoever is last goes on", recipe.radix);
    case LevelRecipe::Gather::all:
      return "each tells each, so that all know";
    case LevelRecipe::Gather::rounds:
      return "in rounds each tells the one 1, 2, 4, ... places on, until all know";
  }
  return "";
}

std::string releasing(const LevelRecipe& recipe) {
  std::string text = recipe.readers == 0
                         ? "one line tells all"
                         : fmt::format("a line tells up to {} of them", recipe.readers);
  if (recipe.fan_out != 0) text += fmt::format(", who tell {} further lines each", recipe.fan_out);
  if (recipe.direct) text += ": all ranks below, not the members alone";
  return text;
}

std::vector<std::string> steps_of_schedule(const Plan& plan) {
  const GroupTree groups = groups_or_one(&plan.groups, plan.participants);
  const Recipe recipe = plan.algorithm.recipe.empty() ? recipe_for(groups) : plan.algorithm.recipe;
  std::vector<std::string> up;
  std::vector<std::string> down;
  for (std::size_t level = 0; level < groups.levels.size(); ++level) {
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
  if (name == "topo" || name == "topo-counter") {
    std::vector<std::string> steps;
    for (const GroupLevel& level : plan.groups.levels) {
      steps.push_back(where(level) +
                      (name == "topo" ? ": the leader polls a counter of each member"
                                      : ": all add to one counter, and whoever is last goes on"));
    }
    steps.emplace_back("who knows that all have arrived reverses one line, which the others poll");
    return steps;
  }
  if (name == "combining-tree") {
    return {fmt::format("{} add to a counter, and whoever is last climbs to the next one",
                        plan.algorithm.radix),
            "whoever is last at the top turns back, and releases counter by counter"};
  }
  if (name == "mcs") {
    return {"flags climb a tree of 4 children a rank to rank 0",
            "flags come down a tree of 2 children a rank"};
  }
  if (name == "tournament") {
    return {fmt::format("{}: half of those who are left tell the others, and wait",
                        count(rounds, "round")),
            "rank 0 wakes those it has beaten, the last first, and they theirs"};
  }
  if (name == "dissemination") {
    return {fmt::format("{}: each tells the one 1, 2, 4, ... ranks on, and then all know",
                        count(rounds, "round"))};
  }
  if (name == "sense-reversing-counter" || name == "sense-reversing-gr") {
    return {"rank 0 polls a counter of each rank",
            name == "sense-reversing-gr" ? "rank 0 stores a flag of each rank"
                                         : "rank 0 reverses one line, which all poll"};
  }
  return {"all add to one counter", "whoever is last reverses one line, which all others poll"};
}

}  // namespace

std::string explain_as_text(const Plan& plan, const BlockLayout& layout, const Learnt& learnt) {
  const Traits& traits = traits_of(plan.algorithm.name);
  std::string text;
  text += fmt::format("algorithm     {} (asked for: {})\n", plan.algorithm.text(), plan.asked);
  text += fmt::format("because       {}\n", plan.why);
  text += fmt::format("cost          {}\n", traits.cost);
  text += fmt::format("source        {}\n", traits.source);
  text += fmt::format("participants  {} ({}) on {}\n", plan.participants,
                      plan.shared ? "threads or processes" : "threads of one process",
                      count(plan.usable_cpus, "usable CPU"));
  text += fmt::format("waiting       {}: {} ({})\n", plan.wait.name, describe_wait(plan.wait),
                      plan.wait_why);
  if (learnt.ranks > 0) text += "learnt        " + describe(learnt) + "\n";
  if (!plan.dropped.empty()) text += fmt::format("levels left   {}\n", plan.dropped);
  for (const GroupLevel& level : plan.groups.levels) {
    std::string groups;
    for (const Group& group : level.groups) groups += "  {" + format_numbers(group.members) + "}";
    text +=
        fmt::format("level {:<8}{}:{}\n", level.name, count(level.groups.size(), "group"), groups);
  }
  const std::vector<std::string> steps = steps_of(plan);
  for (std::size_t n = 0; n < steps.size(); ++n) {
    text += fmt::format("step {:<9}{}\n", n + 1, steps[n]);
  }
  text += fmt::format("memory        {} bytes; {} a rank{}, lines of {}\n", layout.bytes,
                      layout.rank_stride, layout.paged ? " (whole pages: several NUMA nodes)" : "",
                      layout.line);
  return text;
}

std::string explain_as_json(const Plan& plan, const BlockLayout& layout, const Learnt& learnt) {
  using nlohmann::json;
  json groups = json::array();
  for (const GroupLevel& level : plan.groups.levels) {
    for (const Group& group : level.groups) {
      groups.push_back(
          {{"level", level.name}, {"members", group.members}, {"leader", group.leader()}});
    }
  }
  const auto ns = [](std::int64_t value) {
    return value == WaitPolicy::forever ? json(nullptr) : json(value);
  };
  json object = {
      {"algorithm", plan.algorithm.text()},
      {"asked", plan.asked},
      {"why", plan.why},
      {"participants", plan.participants},
      {"shared", plan.shared},
      {"usable_cpus", plan.usable_cpus},
      {"wait",
       {{"policy", plan.wait.name},
        {"why", plan.wait_why},
        {"spin_ns", ns(plan.wait.spin_ns)},
        {"yield_ns", ns(plan.wait.yield_ns)}}},
      {"levels_dropped", plan.dropped},
      {"groups", groups},
      {"steps", steps_of(plan)},
      {"memory",
       {{"bytes", layout.bytes},
        {"bytes_per_rank", layout.rank_stride},
        {"paged", layout.paged},
        {"line_bytes", layout.line}}},
  };
  if (learnt.ranks > 0) {
    object["learnt"] = {{"ranks", learnt.ranks},
                        {"shorter", learnt.shorter},
                        {"not_awake", learnt.not_awake},
                        {"slept", learnt.slept},
                        {"yields_banned_ns", learnt.yields_banned_ns}};
  }
  // Texts of another process may not be UTF-8.
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace muster
