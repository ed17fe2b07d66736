// SPDX-License-Identifier: BSD-3-Clause
#include "barrier/registry.hpp"

#include <charconv>

#include "machine/format.hpp"
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

Choice choose_barrier(const Situation& s) {
  const auto chosen = [](std::string_view name, std::string why) {
    return Choice{parse_algorithm(name), std::move(why)};
  };
  if (s.participants == 1) return chosen("sense-reversing", "one participant waits for nobody");
  if (s.participants + s.others > s.usable_cpus) {
    const std::string more = counted(s.participants, "participants") +
                             (s.others > 0 ? " and " + counted(s.others, "others") : "") + " on " +
                             counted(s.usable_cpus, "CPUs");
    if (s.bound && s.share_cores) {
      return chosen("topo-counter-CORE",
                    more + ", bound: whoever arrives last on a core speaks for it");
    }
    return chosen("sense-reversing-pu",
                  more + (s.bound ? ", though none share a core" : ", not bound") +
                      ": whoever arrives last where it runs polls, the others make room");
  }
  const bool plain = !s.needs_split && !s.needs_champion;
  if (plain && s.participants == 2) {
    return chosen("dissemination", "two participants: each tells the other, both at once");
  }
  if (plain && s.bound && s.compose) return s.compose();
  if (plain && !s.bound && s.follows) {
    return chosen("following",
                  "not all are bound: it learns where they sit, and composes for that");
  }
  if (plain && s.participants <= 8) {
    return chosen("dissemination",
                  "few participants, a CPU each: the shortest chain of line transfers");
  }
  return chosen(s.bound ? "topo-counter" : "sense-reversing-pu",
                s.needs_split
                    ? "arrive and depart are called apart: who arrives only adds to counters"
                : s.needs_champion ? "a completion needs somebody who knows that all have arrived"
                                   : "many participants, and it does not matter where they sit");
}

}  // namespace muster
