// SPDX-License-Identifier: BSD-3-Clause
// Profiles: which barriers `muster tune` found for which teams, in a file that `auto` reads.
//
//     muster-profile 1
//     # Behind a barrier: the microseconds that the model predicts. None is measured.
//     machine mpi NUMA:4 PACKAGE:2 CORE:128
//     team 128 NUMA:4 PACKAGE:2 apart:4 takes scheduled-NUMA:tree7/all 1.53 not topo-NUMA 2.52
//
// A statement a line, '#' begins a comment. Teams are of the machine above them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "barrier/registry.hpp"
#include "topology/topology.hpp"

namespace muster {

struct Profile {
  /// How many of something a machine has, or a team uses.
  struct Count {
    std::string of;
    unsigned count = 0;
    bool operator==(const Count&) const = default;
  };
  /// A placement class: how many units, not which. The last is "apart": participants whose next one
  /// is in another unit of the lowest level.
  using Spread = std::vector<Count>;

  struct Team {
    unsigned participants = 0;
    Spread spread;
    std::string algorithm;  ///< as parse_algorithm() takes it
    double us = 0;
    std::string other = {};  ///< the best of the barriers that are not composed, if that one is
    double other_us = 0;
  };
  struct Section {
    bool progresses = false;    ///< participants make an MPI's progress as they wait
    std::vector<Count> levels;  ///< units of each active level, and cores
    std::vector<Team> teams;
  };
  std::vector<Section> sections;

  /// The teams of this machine; a new machine if it has none.
  std::vector<Team>& teams_of(const Topology& topology, bool progresses);
};

/// Throws as Topology::place().
Profile::Spread spread_of(const Topology& topology, const std::vector<PuSet>& bindings);

/// Throws Error(invalid) with `name` and the line. What else stands in the text is not told.
Profile parse_profile(std::string_view text, const std::string& name);
std::string format_profile(const Profile& profile);

/// Those that are for a machine.
struct Profiles {
  struct Serving {
    std::string path;
    std::vector<Profile::Team> teams;  ///< at least one
  };
  std::vector<Serving> serving;  ///< the first that has something goes
  std::string ignored;           ///< profiles that do not serve, and why; empty if there is none
};
/// Of $MUSTER_PROFILE, or where it is not set the user's and the system's. A program with rights
/// that its caller lacks reads none. Throws Error(invalid) if $MUSTER_PROFILE names no profile.
Profiles read_profiles(const Topology& topology, bool progresses);

/// The one most like these participants. `teams` is not empty, and of this machine.
const Profile::Team& nearest_team(const std::vector<Profile::Team>& teams, const Topology& topology,
                                  const std::vector<PuSet>& bindings);

/// What a profile knows.
struct Profiled {
  std::optional<Choice> choice;
  std::string ignored;  ///< as above
};
/// What the first profile that serves has for the nearest team. Throws as read_profiles().
Profiled profiled_choice(const Topology& topology, const std::vector<PuSet>& bindings,
                         bool progresses);

}  // namespace muster
