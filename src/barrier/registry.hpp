// SPDX-License-Identifier: BSD-3-Clause
// The barriers by name: one list for the C ABI, the command line, the benchmarks, the tests, the
// model and the checker. A barrier not in `Barriers` does not exist; one that is gets all of these.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "barrier/combining_tree.hpp"
#include "barrier/dissemination.hpp"
#include "barrier/flat_tree.hpp"
#include "barrier/following.hpp"
#include "barrier/mcs.hpp"
#include "barrier/scheduled.hpp"
#include "barrier/sense_reversing.hpp"
#include "barrier/sense_reversing_pu.hpp"
#include "barrier/topo.hpp"
#include "barrier/topo_counter.hpp"
#include "barrier/tournament.hpp"
#include "machine/by_name.hpp"
#include "machine/error.hpp"

namespace muster {

/// All barriers over one machine, in the order in which they are listed.
template <class M>
using Barriers = std::tuple<SenseReversing<M>, SenseReversingCounter<M>, SenseReversingGr<M>,
                            CombiningTree<M>, Mcs<M>, Tournament<M>, Dissemination<M>, Topo<M>,
                            TopoCounter<M>, SenseReversingPu<M>, Scheduled<M>, Following<M>>;

/// An algorithm as it is asked for: its registered name and what the name carries besides.
struct Algorithm {
  std::string name;    ///< Traits::name, or "auto"
  unsigned radix = 2;  ///< of a tree of counters: "combining-tree:4" has 4
  std::string levels;  ///< "topo-NUMA-SOCKET" has "NUMA-SOCKET"; empty: the default levels
  Recipe recipe = {};  ///< "scheduled:tree8+line16/all" has one; empty: recipe_for() the groups
  bool uses_groups() const {
    return name == "topo" || name == "topo-counter" || name == "scheduled";
  }
  std::string text() const;  ///< the name it can be asked for by
};

/// "mcs", "combining-tree:4", "topo", "topo-NUMA", "topo-counter-CORE",
/// "scheduled-NUMA:tree8+line16/all", "auto", ... Throws Error(unknown_name), listing the names.
/// Levels are checked where they are used, against a topology (topology/topology.hpp).
Algorithm parse_algorithm(std::string_view text);

/// The names of all barriers, as listed; "auto" is not among them.
const std::vector<std::string_view>& barrier_names();

/// The traits of a registered barrier. Throws Error(unknown_name).
const Traits& traits_of(std::string_view name);

/// Calls `fn.template operator()<B>()` with the barrier of that name over M and returns what it
/// returns. Throws Error(unknown_name).
template <class M, class Fn>
decltype(auto) with_barrier(std::string_view name, Fn&& fn) {
  return with_named<Barriers<M>>(name, fn, [&] { static_cast<void>(traits_of(name)); });
}

struct Choice {
  Algorithm algorithm;
  std::string why;  ///< the deciding fact, one sentence
};

/// What `auto` decides by.
struct Situation {
  unsigned participants = 1;
  unsigned others = 0;  ///< that want CPUs too
  unsigned usable_cpus = 1;
  bool bound = false;           ///< every participant's binding is known
  bool share_cores = false;     ///< several of them are bound to one core
  bool follows = false;         ///< if not: it matters where they sit, and that can be learnt
  bool needs_split = false;     ///< arrive and depart are called apart
  bool needs_champion = false;  ///< a completion runs between arrivals and departures
  /// Composes what fits where they sit (fitting/fitting.hpp), which takes milliseconds; empty where
  /// that is not known.
  std::function<Choice()> compose = {};
};

/// What `auto` takes when; also what documents say of it.
struct Rule {
  std::string_view when;
  std::string_view takes;
  std::string_view since;
  bool (*fits)(const Situation&);
};
/// The first that fits counts. The last one always does.
std::span<const Rule> rules_of_auto();

Choice choose_barrier(const Situation& situation);

}  // namespace muster
