// SPDX-License-Identifier: BSD-3-Clause
// From options to decisions: which algorithm, which groups, how to wait, and why. Made once by the
// creator; attachers read it.
#pragma once

#include <string>
#include <vector>

#include "barrier/registry.hpp"
#include "fitting/known_machines.hpp"
#include "fitting/profile.hpp"
#include "muster/muster.h"
#include "topology/topology.hpp"
#include "wait/policy.hpp"

namespace muster {

struct Plan {
  unsigned participants = 1;
  bool shared = false;
  bool split = false;
  bool completes = false;  ///< a completion runs once an episode
  Word first_episode = 0;
  std::uint64_t namespaces = 0;  ///< its creator's: whose pids mean something there

  std::string asked;    ///< the algorithm as asked for
  Algorithm algorithm;  ///< the one that serves; never "auto"
  std::string why;      ///< the deciding fact
  GroupTree groups;     ///< for algorithms that use them; no levels otherwise
  Schedule schedule;    ///< for the one that runs schedules; no participants otherwise
  std::string dropped;  ///< levels left out and why, for people

  WaitPolicy wait;
  std::string wait_why;
  unsigned usable_cpus = 1;
  unsigned numa_nodes = 1;  ///< that hold participants; 1 if unknown
  /// The operating system's numbers, for memory binding; empty: unknown.
  std::vector<unsigned> numa_of_rank;

  Shape shape() const {
    return {participants, algorithm.radix, first_episode, groups.levels.empty() ? nullptr : &groups,
            schedule.programs.empty() ? nullptr : &schedule};
  }
  /// Once the algorithm and its groups are known. O(cells log cells).
  void make_schedule();
};

/// Where participants are who do not say it: on MUSTER_TOPOLOGY's machine, or this one. Throws
/// Error.
const Topology& whole_machine();

/// As read_profiles(), once a process.
Profiles known_profiles(const Topology& topology, bool progresses);

/// `elsewhere`: the costs of the machine that options.topology describes, whose CPUs count then;
/// nobody will wait here. Throws Error: invalid, unknown_name, declined, unsupported.
Plan make_plan(const muster_options& options, const MachineCosts* elsewhere = nullptr);

}  // namespace muster
