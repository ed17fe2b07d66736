// SPDX-License-Identifier: BSD-3-Clause
#include "check/report.hpp"

#include <algorithm>
#include <map>

#include "check/checked.hpp"

namespace muster::check {
namespace {

using Number = std::map<std::pair<int, int>, int>;

/// Program order and reads-from allow this order; it changes ranks only where it has to.
std::vector<EventId> in_order(const Graph& graph) {
  std::vector<EventId> out;
  std::vector<std::int16_t> next(graph.threads(), 0);
  const std::size_t all = graph.order().size();
  while (out.size() < all) {
    const std::size_t before = out.size();
    for (unsigned t = 0; t < graph.threads(); ++t) {
      for (; next[t] < graph.size(t); ++next[t]) {
        const EventId from = graph.at(t, next[t]).from;
        if (from.thread >= 0 && from.index >= next[static_cast<std::size_t>(from.thread)]) break;
        out.push_back({static_cast<std::int16_t>(t), next[t]});
      }
    }
    if (out.size() == before) break;  // no execution: they are all acyclic
  }
  return out;
}

std::string word(Word value) {
  const auto near_wrap = static_cast<std::int32_t>(value);
  return near_wrap < 0 && near_wrap > -1000 ? "2^32" + std::to_string(near_wrap)
                                            : std::to_string(value);
}

std::string source_of(const Event& event, const Number& numbers) {
  if (event.from.is_initial()) return ", as it was at the start";
  const auto number = numbers.find({event.from.thread, event.from.index});
  std::string text = " from rank " + std::to_string(event.from.thread);
  if (number != numbers.end()) text += ", #" + std::to_string(number->second);
  return text;
}

std::string describe(const Program& program, const Graph& graph, EventId id,
                     const Number& numbers) {
  const Event& event = graph.at(id);
  const std::string name =
      event.op.location == no_location ? "" : " " + program.memory.name(event.op.location);
  const std::string order = std::string(" ") + ordering_name(event.order());
  switch (event.op.kind) {
    case Kind::load:
      return "load" + order + name + ": " + word(event.read) + source_of(event, numbers);
    case Kind::await:
      return (event.satisfied ? "await" : "await, in vain,") + order + name + ": " +
             word(event.read) + source_of(event, numbers);
    case Kind::store:
      return "store" + order + name + " = " + word(event.written);
    case Kind::update_read: {
      constexpr const char* names[] = {"", "fetch_add", "fetch_or", "exchange", "compare_exchange"};
      std::string text = names[static_cast<int>(event.op.update)] + order + name + ": ";
      text += word(event.read);
      if (!event.is_updating())
        text += ", fails";
      else if (id.index + 1 < graph.size(static_cast<unsigned>(id.thread))) {
        text += " -> " + word(graph.at(static_cast<unsigned>(id.thread), id.index + 1).written);
      }
      return text + source_of(event, numbers);
    }
    case Kind::update_write:
      return "";  // one line with its reading half
    case Kind::fence:
      return "fence" + order;
    case Kind::plain_read:
      if (event.from == no_event) return "read" + name;  // a race: which value is undefined
      return "read" + name + ": " + word(event.read) + source_of(event, numbers);
    case Kind::plain_write:
      return "write" + name + " = " + word(event.op.operand);  // of a race, too
    case Kind::choice:
      return "chooses " + word(event.read) + " of 0 to " + word(event.op.operand - 1);
  }
  return "";
}

}  // namespace

std::string format_site(const Site& site) {
  if (site.file == nullptr) return "";
  return std::string(path_in_tree(site.file)) + ":" + std::to_string(site.line);
}

std::string format_violation(const Program& program, const Violation& violation) {
  const Graph& graph = violation.graph;
  Number numbers;
  std::string text;
  // The place is at the right edge of a terminal, below where there is no room beside.
  const auto add_line = [&](int number, const std::string& line, const Site& site) {
    constexpr std::size_t columns = 79;
    const std::string digits = std::to_string(number);
    const std::string all =
        std::string(5 - std::min<std::size_t>(4, digits.size()), ' ') + "#" + digits + "  " + line;
    const std::string at = format_site(site);
    const bool fits = all.size() + 2 + at.size() <= columns;
    const std::size_t before = columns - std::min(columns, at.size() + (fits ? all.size() : 0));
    text += all;
    if (!at.empty()) text += (fits ? "" : "\n") + std::string(before, ' ') + at;
    text += "\n";
  };
  int number = 0;
  for (const EventId id : in_order(graph)) {
    const bool second_half = graph.at(id).op.kind == Kind::update_write;
    numbers[{id.thread, id.index}] = second_half ? number : ++number;
    if (second_half) continue;
    add_line(number,
             "rank " + std::to_string(id.thread) + "  " + describe(program, graph, id, numbers),
             graph.at(id).op.site);
  }
  text += violation.message;
  if (violation.first && violation.second) {
    text += ": neither #" +
            std::to_string(numbers[{violation.first->thread, violation.first->index}]) + " nor #" +
            std::to_string(numbers[{violation.second->thread, violation.second->index}]) +
            " happens before the other";
  } else if (const std::string at = format_site(violation.site); !at.empty()) {
    text += " (" + at + ")";
  }
  text += "\n";
  for (const Violation::Waiting& waiting : violation.waiting) {
    text += "  rank " + std::to_string(waiting.thread) + " waits for";
    const char* separator = " ";
    for (const Location l : waiting.locations) {
      text += separator + program.memory.name(l) + " (now " + word(graph.newest_value(l)) + ")";
      separator = ", ";
    }
    text += "  " + format_site(waiting.site) + "\n";
  }
  return text;
}

}  // namespace muster::check
