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
                  " (combining-tree:RADIX and other trees of counters, topo-LEVEL[-LEVEL...] the "
                  "levels, scheduled[-LEVEL...]:RECIPE how each gathers)");
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

unsigned parse_radix(std::string_view text, std::string_view digits) {
  unsigned radix = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), radix);
  if (error == std::errc{} && end == digits.data() + digits.size() && radix >= 2 && radix <= 1024) {
    return radix;
  }
  throw Error(Status::invalid, "the radix in \"" + std::string(text) + "\" has to be 2 to 1024");
}

bool is_crowded(const Situation& s) { return s.participants + s.others > s.usable_cpus; }

/// No completion, and arrive and depart in one.
bool is_plain(const Situation& s) { return !s.needs_champion && !s.needs_split; }

constexpr Rule rules[] = {
    {"one participant", "sense-reversing", "there is nobody to wait for",
     [](const Situation& s) { return s.participants == 1; }},
    {"more participants than usable CPUs, bound, and some share a core", "topo-counter-CORE",
     "whoever arrives last on a core speaks for it",
     [](const Situation& s) { return is_crowded(s) && s.bound && s.share_cores; }},
    {"more participants than usable CPUs, not bound, or none share a core", "sense-reversing-pu",
     "whoever arrives last where it runs polls, the others make room", is_crowded},
    {"two participants, plain", "dissemination", "each tells the other, both at once",
     [](const Situation& s) { return is_plain(s) && s.participants == 2; }},
    {"bound, plain", "scheduled", "it is composed for where they sit",
     [](const Situation& s) { return is_plain(s) && s.bound && s.compose; }},
    {"not all bound, plain, at most 1,024, on several L3s, NUMA nodes or packages", "following",
     "it learns where they sit, and composes for that",
     [](const Situation& s) { return is_plain(s) && !s.bound && s.follows; }},
    {"up to 8 participants, plain", "dissemination", "the shortest chain of line transfers",
     [](const Situation& s) { return is_plain(s) && s.participants <= 8; }},
    {"bound", "topo-counter", "an arrive never waits, and whoever is last can complete",
     [](const Situation& s) { return s.bound; }},
    {"any other", "sense-reversing-pu", "an arrive never waits, and whoever is last can complete",
     [](const Situation&) { return true; }}};

}  // namespace

std::string Algorithm::text() const {
  std::string text = levels.empty() ? name : name + "-" + levels;
  if (!recipe.empty()) return text + ":" + format_recipe(recipe);
  const Traits* const traits = find(name);
  if (traits != nullptr && traits->radix != 0 && traits->radix != radix) {
    text += ":" + std::to_string(radix);
  }
  return text;
}

Algorithm parse_algorithm(std::string_view text) {
  if (text == "auto") return {.name = "auto", .levels = {}};
  const std::size_t colon = std::min(text.find(':'), text.size());
  Algorithm algorithm{.name = std::string(text.substr(0, colon)), .levels = {}};
  for (const std::string_view family : {"topo-counter", "topo", "scheduled"}) {
    const std::string prefix = std::string(family) + '-';
    if (find(algorithm.name) != nullptr || !algorithm.name.starts_with(prefix)) continue;
    algorithm.levels = after(algorithm.name, prefix);
    if (algorithm.levels.empty()) throw_unknown(text);
    algorithm.name = family;
  }
  const Traits* const traits = find(algorithm.name);
  if (traits == nullptr) throw_unknown(text);
  if (traits->radix != 0) algorithm.radix = traits->radix;
  if (colon == text.size()) return algorithm;
  const std::string_view rest = text.substr(colon + 1);
  if (algorithm.name == "scheduled") {
    algorithm.recipe = parse_recipe(rest);
  } else if (traits->radix != 0) {
    algorithm.radix = parse_radix(text, rest);
  } else {
    throw_unknown(text);
  }
  return algorithm;
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
