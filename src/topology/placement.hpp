// SPDX-License-Identifier: BSD-3-Clause
// Where the ranks are, and the group tree that follows [K22, section 2.1, steps 2 and 3].
// Plain data, no hwloc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "machine/error.hpp"
#include "topology/levels.hpp"
#include "topology/tree.hpp"

namespace muster {

/// Which unit of each level every rank uses: procloc[l][i] of [K22, step 2].
struct Placement {
  unsigned participants = 0;
  std::vector<std::string> levels;          ///< names, bottom up
  std::vector<std::vector<unsigned>> unit;  ///< unit[level][rank]: an id, kSeveralUnits or kOutside
  std::vector<unsigned> unbound;            ///< ranks that may run anywhere, ascending
};

/// A tree, or why there is none.
struct Grouping {
  Status status = Status::ok;  ///< ok or declined
  std::string reason;          ///< for people, if declined
  GroupTree tree;              ///< empty if declined
};

/// [K22, step 3]: from the lowest level up, ranks that share a unit form a group, led by its lowest
/// rank; the leaders go on to the next level, and so do ranks that span several units or use none;
/// one more group, MACHINE, joins who is left. Groups are by unit, never by whether two ranks'
/// bindings meet, which is not transitive. Unbound ranks: declined. O(L(C + P)); thread-safe.
/// Throws Error(Status::invalid) if there are no participants.
Grouping group_ranks(const Placement& placement);

/// One rank's PMIX_LOCALITY_STRING, e.g. "SK0:L31:L232:L132:CR32:HT32:NM1"; ids may be lists and
/// ranges ("L20-1,4").
struct Locality {
  /// Ids by level, ascending; empty where the string does not name the level.
  std::vector<unsigned> package, l3, l2, l1, core, numa;
  std::vector<unsigned> pu;  ///< hwloc's logical indices, like all ids here
  bool unbound = true;       ///< the string was empty
};

/// Throws Error(Status::invalid) for what is no locality string. An optional "hwloc:" in front and
/// unknown two-letter resources are skipped; "" is an unbound rank.
Locality parse_locality(std::string_view text);

}  // namespace muster
