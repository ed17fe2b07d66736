// SPDX-License-Identifier: BSD-3-Clause
#include "barrier/registry.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "machine/hardware.hpp"
#include "machine/made_once.hpp"

namespace muster {
namespace {

template <class... B>
std::vector<const Traits*> all_traits(std::tuple<B...>*) {
  return {&B::traits...};
}

const std::vector<const Traits*>& table() {
  static constinit MadeOnce<std::vector<const Traits*>> traits;
  return traits.get([] { return all_traits(static_cast<Barriers<Hardware>*>(nullptr)); });
}

[[noreturn]] void throw_unknown(std::string_view name) {
  std::string message = "no barrier \"" + std::string(name) + "\"; there are: auto";
  for (const std::string_view known : barrier_names()) message.append(", ").append(known);
  throw Error(Status::unknown_name,
              message +
                  " (combining-tree:K sets the radix, topo-LEVEL[-LEVEL...] the levels, "
                  "scheduled[-LEVEL...]:RECIPE how each gathers)");
}

const Traits* find(std::string_view name) {
  for (const Traits* traits : table()) {
    if (traits->name == name) return traits;
  }
  return nullptr;
}

std::string_view after(std::string_view text, std::string_view prefix) {
  return text.substr(prefix.size());
}

bool is_crowded(const Situation& s) { return s.participants + s.others > s.usable_cpus; }

constexpr Rule rules[] = {
    {"one participant", "sense-reversing", "there is nobody to wait for",
     [](const Situation& s) { return s.participants == 1; }},
    {"arrive and depart called apart (MUSTER_SPLIT)", "sense-reversing", "its arrive never waits",
     [](const Situation& s) { return s.needs_split; }},
    {"more participants than usable CPUs, bound, and some share a core", "topo-counter-CORE",
     "whoever arrives last on a core speaks for it",
     [](const Situation& s) { return is_crowded(s) && s.bound && s.share_cores; }},
    {"more participants than usable CPUs, not bound, or none share a core", "sense-reversing-pu",
     "whoever arrives last where it runs polls, the others make room", is_crowded},
    {"two participants, no completion", "dissemination", "each tells the other, both at once",
     [](const Situation& s) { return s.participants == 2 && !s.needs_champion; }},
    {"bound, no completion", "scheduled", "it is composed for where they sit",
     [](const Situation& s) { return s.bound && s.compose && !s.needs_champion; }},
    {"bound to several NUMA nodes", "topo", "only leaders' stores cross between them",
     [](const Situation& s) { return s.bound && s.numa_nodes > 1; }},
    {"not all bound, at most 1,024, no completion, on several L3s, NUMA nodes or packages",
     "following", "it learns where they sit, and composes for that",
     [](const Situation& s) { return !s.bound && s.follows && !s.needs_champion; }},
    {"up to 8 participants, no completion", "dissemination", "the shortest chain of line transfers",
     [](const Situation& s) { return s.participants <= 8 && !s.needs_champion; }},
    {"any other", "combining-tree",
     "somebody knows that all have arrived, and on one package it was the fastest of [K22, Fig. 4]",
     [](const Situation&) { return true; }}};

}  // namespace

std::string Algorithm::text() const {
  if (name == "combining-tree" && radix != 2) return name + ":" + std::to_string(radix);
  return (levels.empty() ? name : name + "-" + levels) +
         (recipe.empty() ? "" : ":" + format_recipe(recipe));
}

Algorithm parse_algorithm(std::string_view text) {
  if (text == "auto" || find(text) != nullptr) return {.name = std::string(text), .levels = {}};
  constexpr std::string_view with_radix = "combining-tree:";
  if (text.starts_with(with_radix)) {
    const std::string_view digits = after(text, with_radix);
    unsigned radix = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), radix);
    if (error != std::errc{} || end != digits.data() + digits.size() || radix < 2 || radix > 1024) {
      throw Error(Status::invalid,
                  "the radix in \"" + std::string(text) + "\" has to be 2 to 1024");
    }
    return {.name = "combining-tree", .radix = radix, .levels = {}};
  }
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  for (const std::string_view family : {"topo-counter", "topo", "scheduled"}) {
    if (!name.starts_with(family)) continue;
    const std::string_view levels = after(name, family);
    const bool has_levels = levels.size() > 1 && levels.front() == '-';
    if ((!has_levels && !levels.empty()) || (colon < text.size() && family != "scheduled"))
      continue;
    return {.name = std::string(family),
            .levels = std::string(has_levels ? levels.substr(1) : levels),
            .recipe = colon < text.size() ? parse_recipe(text.substr(colon + 1)) : Recipe{}};
  }
  throw_unknown(text);
}

const std::vector<std::string_view>& barrier_names() {
  static constinit MadeOnce<std::vector<std::string_view>> names;
  return names.get([] {
    std::vector<std::string_view> all;
    for (const Traits* traits : table()) all.push_back(traits->name);
    return all;
  });
}

const Traits& traits_of(std::string_view name) {
  if (const Traits* traits = find(name)) return *traits;
  throw_unknown(name);
}

std::span<const Rule> rules_of_auto() { return rules; }

Choice choose_barrier(const Situation& s) {
  const Rule& rule = *std::find_if(std::begin(rules), std::end(rules),
                                   [&](const Rule& each) { return each.fits(s); });
  if (rule.takes == "scheduled") return s.compose();
  return {parse_algorithm(rule.takes), std::string(rule.when) + ": " + std::string(rule.since)};
}

}  // namespace muster
