// SPDX-License-Identifier: BSD-3-Clause
#include "sim/lock_placements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "machine/error.hpp"
#include "machine/format.hpp"
#include "placement/placer.hpp"

namespace muster::sim {
namespace {

/// What sits on each core, a letter each.
std::vector<char> labels_of(const CoreTree& tree, const LockPlacement& placement) {
  std::vector<unsigned> count(tree.cores(), 0);
  for (const unsigned core : placement.threads) ++count.at(core);
  std::vector<char> labels;
  for (const unsigned threads : count) {
    labels.push_back(threads == 0   ? '.'
                     : threads == 1 ? 'w'
                     : threads < 10 ? static_cast<char>('0' + threads)
                                    : '+');
  }
  if (placement.server) labels.at(*placement.server) = 'S';
  return labels;
}

/// The elements and cores right below each element.
struct Below {
  std::vector<unsigned> elements;
  std::vector<unsigned> cores;
};

std::vector<Below> children_of(const CoreTree& tree) {
  std::vector<Below> below(tree.elements().size());
  for (unsigned e = 1; e < below.size(); ++e) below[tree.element(e).parent].elements.push_back(e);
  for (const unsigned core : tree.order()) below[tree.element_of(core)].cores.push_back(core);
  return below;
}

class Canonical {
 public:
  explicit Canonical(const CoreTree& tree) : tree_(tree), below_(children_of(tree)) {}

  std::string key(const LockPlacement& placement) const {
    const std::vector<char> labels = labels_of(tree_, placement);
    return key(0, labels, placement);
  }

  /// How many placements of 0 threads, 1, ... `threads` a placement without threads can become.
  std::vector<double> ways(const LockPlacement& empty, unsigned threads) const {
    return ways(0, labels_of(tree_, empty), empty, threads);
  }

 private:
  std::vector<double> ways(unsigned element, const std::vector<char>& labels,
                           const LockPlacement& empty, unsigned threads) const {
    // What is below, a symmetry's images together: the ways of one, and how many there are.
    std::map<std::string, std::pair<std::vector<double>, unsigned>> alike;
    for (const unsigned child : below_[element].elements) {
      auto& [of_one, count] = alike[key(child, labels, empty)];
      if (count++ == 0) of_one = ways(child, labels, empty, threads);
    }
    for (const unsigned core : below_[element].cores) {
      const bool free = core != empty.server;
      const bool memory = tree_.numa_of(core) == empty.memory;
      auto& [of_one, count] = alike[fmt::format("{}{}", free, memory)];
      of_one = {1, free ? 1.0 : 0.0};
      ++count;
    }
    std::vector<double> all(threads + 1, 0);
    all[0] = 1;
    for (const auto& [key, each] : alike) {
      all = product(all, multisets(each.first, each.second, threads));
    }
    return all;
  }

  static std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> result(a.size(), 0);
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = 0; i + j < a.size(); ++j) result[i + j] += a[i] * b[j];
    }
    return result;
  }

  /// Of so many that are alike it does not matter which has which of its ways.
  static std::vector<double> multisets(const std::vector<double>& of_one, unsigned count,
                                       unsigned threads) {
    std::vector<std::vector<double>> sums(count + 1, std::vector<double>(threads + 1, 0));
    sums[0][0] = 1;
    for (std::size_t each = 0; each < of_one.size(); ++each) {
      if (of_one[each] == 0) continue;
      const auto before = sums;
      double choices = 1;  // of `taken` ones that have `each` threads
      for (unsigned taken = 1; taken <= count && taken * each <= threads; ++taken) {
        choices = choices * (of_one[each] + taken - 1) / taken;
        for (unsigned n = taken; n <= count; ++n) {
          for (std::size_t t = taken * each; t <= threads; ++t) {
            sums[n][t] += choices * before[n - taken][t - taken * each];
          }
        }
      }
    }
    return sums[count];
  }

  std::string key(unsigned element, const std::vector<char>& labels,
                  const LockPlacement& placement) const {
    std::vector<std::string> parts;
    for (const unsigned child : below_[element].elements) {
      parts.push_back(key(child, labels, placement));
    }
    for (const unsigned core : below_[element].cores) {
      // Where threads are is told by their number: labels stop counting at 9.
      const auto threads = std::count(placement.threads.begin(), placement.threads.end(), core);
      parts.push_back(fmt::format("{}{}{}", labels[core], threads,
                                  tree_.numa_of(core) == placement.memory ? "m" : ""));
    }
    std::sort(parts.begin(), parts.end());
    return fmt::format("({})", fmt::join(parts, ","));
  }

  const CoreTree& tree_;
  std::vector<Below> below_;
};

unsigned core_number(std::string_view text, const std::string& where, const CoreTree& tree) {
  unsigned core = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), core);
  if (error != std::errc{} || end != text.data() + text.size() || core >= tree.cores()) {
    throw Error(Status::invalid,
                fmt::format("{}\"{}\" is no core of this machine: they are 0 to {}", where, text,
                            tree.cores() - 1));
  }
  return core;
}

/// The outermost elements that the machine is split into; the cores, where there is no other.
std::vector<std::vector<unsigned>> parts_of(const CoreTree& tree) {
  const std::vector<Below> below = children_of(tree);
  unsigned element = 0;
  while (below[element].elements.size() == 1 && below[element].cores.empty()) {
    element = below[element].elements.front();
  }
  std::vector<std::vector<unsigned>> parts;
  for (const unsigned child : below[element].elements) {
    const auto begin = tree.order().begin();
    parts.emplace_back(begin + tree.element(child).first, begin + tree.element(child).end);
  }
  for (const unsigned core : below[element].cores) parts.push_back({core});
  return parts;
}

/// Placements of which none is another one's image, in the order in which they come.
struct Distinct {
  explicit Distinct(const Canonical& by) : canonical(by) {}
  void add(const LockPlacement& placement, double weight) {
    const auto [known, is_new] = at.try_emplace(canonical.key(placement), found.size());
    if (is_new) found.push_back({placement, 0});
    found[known->second].weight += weight;
  }

  const Canonical& canonical;
  std::vector<WeightedPlacement> found;
  std::unordered_map<std::string, std::size_t> at;
};

std::vector<WeightedPlacement> empty_placements(const Canonical& canonical, const CoreTree& tree,
                                                std::optional<unsigned> server,
                                                std::optional<unsigned> memory) {
  Distinct distinct(canonical);
  for (unsigned s = 0; s < tree.cores(); ++s) {
    for (unsigned m = 0; m < tree.numa_nodes().size(); ++m) {
      const bool asked = (!server || *server == s) && (!memory || *memory == m);
      if (asked && tree.numa_nodes()[m].os_index) distinct.add({s, {}, m}, 1);
    }
  }
  return distinct.found;
}

/// Of those next to each other, which are each other's image, the first, and how many they are.
std::vector<std::pair<unsigned, unsigned>> free_cores(const CoreTree& tree,
                                                      const LockPlacement& placement) {
  std::vector<std::pair<unsigned, unsigned>> free;
  for (unsigned core = 0; core < tree.cores(); ++core) {
    const std::vector<unsigned>& taken = placement.threads;
    if (core == placement.server) continue;
    if (std::find(taken.begin(), taken.end(), core) != taken.end()) continue;
    const auto beside = std::find_if(free.begin(), free.end(), [&](const auto& first) {
      return tree.element_of(first.first) == tree.element_of(core) &&
             tree.numa_of(first.first) == tree.numa_of(core);
    });
    if (beside == free.end()) {
      free.emplace_back(core, 1);
    } else {
      ++beside->second;
    }
  }
  return free;
}

}  // namespace

std::string placement_text(const CoreTree& tree, const LockPlacement& placement) {
  const std::vector<char> labels = labels_of(tree, placement);
  const std::vector<std::vector<unsigned>> parts = parts_of(tree);
  std::string text;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const std::vector<unsigned>& cores = parts[part];
    if (part > 0 && cores.size() > 1) text += '|';
    for (std::size_t at = 0; at < cores.size(); ++at) {
      // A cache of several cores, but not the whole part, is set apart.
      const unsigned element = tree.element_of(cores[at]);
      if (at > 0 && element != tree.element_of(cores[at - 1]) &&
          (tree.element(element).size() > 1 ||
           tree.element(tree.element_of(cores[at - 1])).size() > 1)) {
        text += ' ';
      }
      text += labels[cores[at]];
      const bool last_of_memory =
          at + 1 == cores.size() || tree.numa_of(cores[at + 1]) != placement.memory;
      const bool memory_ends_here = tree.numa_of(cores[at]) == placement.memory && last_of_memory &&
                                    tree.numa_nodes()[placement.memory].cores.size() < tree.cores();
      if (memory_ends_here) text += 'm';
    }
  }
  return text;
}

std::string placement_key(const CoreTree& tree, const LockPlacement& placement) {
  return Canonical(tree).key(placement);
}

std::vector<double> count_placements(const CoreTree& tree, unsigned threads,
                                     std::optional<unsigned> server,
                                     std::optional<unsigned> memory) {
  const Canonical canonical(tree);
  std::vector<double> counts(threads + 1, 0);
  for (const WeightedPlacement& empty : empty_placements(canonical, tree, server, memory)) {
    const std::vector<double> its = canonical.ways(empty.placement, threads);
    for (unsigned t = 0; t <= threads; ++t) counts[t] += its[t];
  }
  return counts;
}

std::vector<WeightedPlacement> all_placements(const CoreTree& tree, unsigned threads,
                                              std::optional<unsigned> server,
                                              std::optional<unsigned> memory) {
  if (threads + 1 > tree.cores()) {
    throw Error(Status::invalid,
                fmt::format("a server and {} do not have a core each on {}",
                            counted(threads, "threads"), counted(tree.cores(), "cores")));
  }
  const std::vector<double> counts = count_placements(tree, threads, server, memory);
  const auto many =
      std::find_if(counts.begin(), counts.end(), [](double n) { return n > placements_max; });
  if (many != counts.end()) {
    throw Error(Status::invalid,
                fmt::format("{:.2g} placements of {} threads, or of fewer, are more than the {} "
                            "that the model tries: ask for {} threads at most, or for one "
                            "placement (--placements one, --affinity apart)",
                            *std::max_element(many, counts.end()), threads, placements_max,
                            many - counts.begin() - 1));
  }
  const Canonical canonical(tree);
  std::vector<WeightedPlacement> found = empty_placements(canonical, tree, server, memory);
  // One thread after another, each on every core that is left.
  for (unsigned thread = 0; thread < threads; ++thread) {
    Distinct distinct(canonical);
    for (const WeightedPlacement& from : found) {
      for (const auto& [core, alike] : free_cores(tree, from.placement)) {
        LockPlacement placement = from.placement;
        placement.threads.push_back(core);
        std::sort(placement.threads.begin(), placement.threads.end());
        distinct.add(placement, from.weight * alike);
      }
    }
    found = std::move(distinct.found);
  }
  const double sum = std::accumulate(found.begin(), found.end(), 0.0,
                                     [](double s, const auto& w) { return s + w.weight; });
  for (WeightedPlacement& each : found) each.weight /= sum;
  return found;
}

LockPlacement apart_placement(const CoreTree& tree, unsigned threads) {
  LockPlacement placement;
  placement.memory = tree.numa_of(0);
  const std::vector<NumaCores>& numa = tree.numa_nodes();
  if (numa.size() > 1) {
    placement.server = numa[placement.memory == 0 ? 1 : 0].cores.front();
  } else {
    const std::vector<std::vector<unsigned>> parts = parts_of(tree);
    placement.server = parts.at(parts.size() > 1 ? 1 : 0).front();
  }
  std::vector<unsigned> others = tree.order();
  others.erase(std::find(others.begin(), others.end(), *placement.server));
  if (others.empty()) throw Error(Status::invalid, "one core is not enough: a server needs one");
  for (unsigned t = 0; t < threads; ++t) placement.threads.push_back(others[t % others.size()]);
  return placement;
}

LockPlacement hierarchical_placement(const CoreTree& tree, unsigned threads, unsigned server,
                                     unsigned memory) {
  Placer placer(tree);
  placer.add_server_at(server);
  return {server, placer.add_threads(threads), memory};
}

LockPlacement with_bound_memory(const CoreTree& tree, LockPlacement placement) {
  const MemoryDecision then = Placer(tree).add_server_at(*placement.server).memory;
  if (then.binding == MemoryDecision::Binding::bind) placement.memory = *then.numa;
  return placement;
}

LockPlacement with_chosen_server(const CoreTree& tree, LockPlacement placement) {
  const unsigned chosen = Placer(tree).add_server(ServerPolicy::pack).core;
  std::replace(placement.threads.begin(), placement.threads.end(), chosen, *placement.server);
  placement.server = chosen;
  return with_bound_memory(tree, std::move(placement));
}

LockPlacement with_aware_memory(const CoreTree& tree, LockPlacement placement) {
  Placer placer(tree);
  const BlockDecision block = decide_block(tree, placer.now());
  const MemoryDecision then = placer.add_server_at(*placement.server).memory;
  if (block.numa) placement.memory = *block.numa;
  if (block.remember && then.migrate) placement.memory = *then.numa;
  return placement;
}

LockPlacement parse_placement(const std::string& text, const std::string& source,
                              const CoreTree& tree, unsigned threads) {
  std::optional<unsigned> server;
  std::optional<unsigned> allocator;
  std::vector<unsigned> cores;
  std::istringstream stream(text);
  unsigned number = 0;
  for (std::string line; std::getline(stream, line);) {
    const std::string where = fmt::format("{}:{}: ", source, ++number);
    std::istringstream words(line.substr(0, line.find('#')));
    std::string key;
    std::string value;
    std::string more;
    if (!(words >> key)) continue;
    if (!(words >> value) || words >> more) {
      throw Error(Status::invalid, where +
                                       "a line is \"server CORE\", \"allocator CORE\" or "
                                       "\"threads CORE,CORE,...\"");
    }
    if ((key == "server" && server) || (key == "allocator" && allocator) ||
        (key == "threads" && !cores.empty())) {
      throw Error(Status::invalid, where + "a second line with \"" + key + "\"");
    }
    if (key == "server") {
      server = core_number(value, where, tree);
    } else if (key == "allocator") {
      allocator = core_number(value, where, tree);
    } else if (key == "threads") {
      std::istringstream list(value);
      for (std::string each; std::getline(list, each, ',');) {
        cores.push_back(core_number(each, where, tree));
      }
    } else {
      throw Error(Status::invalid, where + "\"" + key + "\" is none of server, allocator, threads");
    }
  }
  if (!server || !allocator || cores.empty()) {
    throw Error(Status::invalid, source + " has to say server, allocator and threads");
  }
  LockPlacement placement{*server, {}, tree.numa_of(*allocator)};
  for (unsigned t = 0; t < threads; ++t) placement.threads.push_back(cores[t % cores.size()]);
  return placement;
}

}  // namespace muster::sim
