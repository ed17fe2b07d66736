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

Choice choose_barrier(const Situation& s) {
  const auto chosen = [](std::string_view name, std::string why) {
    return Choice{parse_algorithm(name), std::move(why)};
  };
  if (s.participants == 1) return chosen("sense-reversing", "one participant waits for nobody");
  if (s.needs_split) {
    return chosen("sense-reversing",
                  "arrive and depart are called apart, and only this one's arrive never waits");
  }
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
  if (s.participants == 2 && !s.needs_champion) {
    return chosen("dissemination", "two participants: each tells the other, both at once");
  }
  if (s.bound && s.compose && !s.needs_champion) return s.compose();
  if (s.bound && s.numa_nodes > 1) {
    return chosen("topo", "participants are bound to " + std::to_string(s.numa_nodes) +
                              " NUMA nodes: only leaders' stores cross between them");
  }
  if (!s.bound && s.follows && !s.needs_champion) {
    return chosen("following",
                  "not all are bound: it learns where they sit, and composes for that");
  }
  if (s.participants <= 8 && !s.needs_champion) {
    return chosen("dissemination",
                  "few participants, a CPU each: the shortest chain of line transfers");
  }
  return chosen(
      "combining-tree",
      s.needs_champion
          ? "a completion needs somebody who knows that all have arrived"
          : "many participants in one NUMA node: O(log P) steps, the fastest of [K22, Fig. 4]");
}

}  // namespace muster
