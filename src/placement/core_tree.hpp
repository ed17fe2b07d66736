// SPDX-License-Identifier: BSD-3-Clause
// The machine as the placement algorithms see it: the tree of [PS18, section 2], whose leaves are
// the allowed cores. Plain data: copy it, read it from any thread.
//
//   [PS18]   here
//   N, L     cores(), levels()
//   c_lk     element(e).size()
//   p(l,k)   element(e).parent
//   m(i)     numa_of(i)
//   q_i      numa_nodes()[i].cores
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/topology.hpp"

namespace muster {

/// What covers some cores: a cache, a NUMA node, a package..., the machine.
struct Element {
  unsigned level = 0;   ///< position in CoreTree::levels(), 0 is the machine
  unsigned parent = 0;  ///< of the root: itself
  unsigned first = 0;   ///< it covers the cores [first, end) of CoreTree::order()
  unsigned end = 0;
  unsigned size() const { return end - first; }
};

/// A NUMA node with cores. Cores that belong to none (dies without memory) form one more, without a
/// number: servers may sit there, but memory cannot be bound there.
struct NumaCores {
  std::optional<unsigned> os_index;  ///< the system's number, for mbind
  std::vector<unsigned> cores;       ///< ascending
};

class CoreTree {
 public:
  /// A core is its position in Topology::cores(), so SMT siblings are one and only allowed PUs
  /// count. Levels: PACKAGE, NUMA, DIE, GROUP, L3, L2, in the order in which they nest there. A
  /// core outside of all units of a level hangs below the next level up. Where units of two levels
  /// overlap without nesting, the lower level's are cut.
  explicit CoreTree(const Topology& topology);

  unsigned cores() const { return static_cast<unsigned>(order_.size()); }
  /// Names, outermost first: "MACHINE", ..., without the cores themselves.
  const std::vector<std::string>& levels() const { return levels_; }
  /// Parents before children; element 0 is the machine, the root.
  const std::vector<Element>& elements() const { return elements_; }
  const Element& element(unsigned number) const { return elements_[number]; }
  /// The lowest element above a core.
  unsigned element_of(unsigned core) const { return element_of_[core]; }
  /// All cores, so that each element's are next to each other.
  const std::vector<unsigned>& order() const { return order_; }

  /// By the system's number; those without a number last. Never empty.
  const std::vector<NumaCores>& numa_nodes() const { return numa_nodes_; }
  /// Position in numa_nodes().
  unsigned numa_of(unsigned core) const { return numa_of_[core]; }

  /// Cores, nearest first: those of the first element above `core` that covers more than it, in
  /// their order, then what each next one up adds. O(cores + levels).
  enum class Itself { left_out, included };
  std::vector<unsigned> outwards_from(unsigned core, Itself itself) const;

 private:
  void place_cores(const std::vector<std::vector<unsigned>>& path);
  void find_numa(const Topology& topology);

  std::vector<std::string> levels_;
  std::vector<Element> elements_;
  std::vector<unsigned> element_of_;
  std::vector<unsigned> order_;
  std::vector<unsigned> position_;  // in order_, by core
  std::vector<NumaCores> numa_nodes_;
  std::vector<unsigned> numa_of_;
};

}  // namespace muster
