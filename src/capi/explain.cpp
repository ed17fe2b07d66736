// SPDX-License-Identifier: BSD-3-Clause
#include "capi/explain.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

std::string budget(std::int64_t ns) {
  return ns == WaitPolicy::forever ? "for ever" : fmt::format("{} us", ns / 1000);
}

std::string describe_wait(const WaitPolicy& wait) {
  std::string text;
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

}  // namespace

std::string explain_as_text(const Plan& plan, const BlockLayout& layout) {
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
  if (!plan.dropped.empty()) text += fmt::format("levels left   {}\n", plan.dropped);
  for (const GroupLevel& level : plan.groups.levels) {
    std::string groups;
    for (const Group& group : level.groups) groups += "  {" + format_numbers(group.members) + "}";
    text +=
        fmt::format("level {:<8}{}:{}\n", level.name, count(level.groups.size(), "group"), groups);
  }
  text += fmt::format("memory        {} bytes; {} a rank{}, lines of {}\n", layout.bytes,
                      layout.rank_stride, layout.paged ? " (whole pages: several NUMA nodes)" : "",
                      layout.line);
  return text;
}

std::string explain_as_json(const Plan& plan, const BlockLayout& layout) {
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
  const json object = {
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
      {"memory",
       {{"bytes", layout.bytes},
        {"bytes_per_rank", layout.rank_stride},
        {"paged", layout.paged},
        {"line_bytes", layout.line}}},
  };
  // Texts of another process may not be UTF-8.
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace muster
