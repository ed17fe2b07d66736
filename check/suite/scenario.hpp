// SPDX-License-Identifier: BSD-3-Clause
// Which barrier is checked, with whom, and what they do.
#pragma once

#include <string>

#include "barrier/registry.hpp"

namespace muster::check {

/// What else is done besides waiting for some episodes.
enum class Variant : std::uint8_t {
  plain,
  wraps,     ///< counters start just below 2^32
  split,     ///< arrive and depart called apart, with work between them
  gives_up,  ///< every wait may give up; whoever does not still sees everybody's data
  timed,     ///< patience may end in any wait; the barrier breaks for all, and nobody hangs
  destroy,   ///< anyone frees the memory as soon as its own last wait has returned
  changes,   ///< rank 0 is given another schedule whenever it looks
  reuse,     ///< when all have left, the cells are cleared and the barrier is set up in them again
};
inline constexpr const char* variant_names[] = {"plain", "wraps",   "split",   "gives-up",
                                                "timed", "destroy", "changes", "reuse"};
constexpr const char* variant_name(Variant variant) {
  return variant_names[static_cast<int>(variant)];
}

/// Of `changes`: two of them, one for more than two participants, and an episode after the last.
constexpr unsigned episodes_of_changes(unsigned participants) { return participants > 2 ? 4 : 6; }

struct Scenario {
  Algorithm algorithm;
  unsigned participants = 2;
  unsigned episodes = 2;
  Variant variant = Variant::plain;
  GroupTree groups{};  ///< for the topo family; no levels: one group of all

  /// "sense-reversing", "topo 0,1|2,3/0,2", ...
  std::string name() const;
};

}  // namespace muster::check
