// SPDX-License-Identifier: BSD-3-Clause
// Programs around the barriers, registered ones and those over messages: every participant writes
// plain data, waits, and reads everybody's. What a barrier promises is then that this has no race,
// no hang, and the right values.
#pragma once

#include <string>
#include <vector>

#include "check/checked.hpp"
#include "check/suite/scenario.hpp"

namespace muster::check {

/// The program; the tuning must outlive it. Throws Error(unknown_name).
Program make_barrier_program(const Scenario& scenario, Tuning& tuning);

/// Whether this variant says anything about that barrier.
bool has_variant(const Algorithm& algorithm, Variant variant);

/// A group tree from text, bottom up: levels separated by '/', groups by '|', members by ','.
/// Throws Error(invalid), also for what check_tree() finds wrong.
GroupTree parse_groups(const std::string& text);
std::string format_groups(const GroupTree& groups);

/// Group trees for the topo family: flat, paired, crossed, uneven, of three levels, with lifted
/// ranks.
const std::vector<GroupTree>& group_trees(unsigned participants);

/// Where nothing else is asked for: 2, 3, 4, and those that some path takes. A third round or level
/// wants 5, inner vertices of a tree of four 6; where flags leave no choice 8 cost nothing.
std::vector<unsigned> usual_participants(const std::string& algorithm);

/// Everything to be checked about one algorithm for these numbers of participants (none: the usual
/// ones) and episodes; of
/// the topo family with each of the group_trees(), or with `groups` alone and its participants.
std::vector<Scenario> scenarios_of(const Algorithm& algorithm,
                                   const std::vector<unsigned>& participants,
                                   const std::vector<unsigned>& episodes,
                                   const GroupTree* groups = nullptr);

/// The algorithms checked by default: all registered, trees of counters with two radices, schedules
/// of every kind of part, and those over messages.
std::vector<Algorithm> checked_algorithms();
/// Their names, each once.
std::vector<std::string> checked_names();

/// As parse_algorithm() and traits_of(), but knows those over messages, too.
Algorithm parse_checked_algorithm(const std::string& text);
const Traits& checked_traits(const std::string& name);

}  // namespace muster::check
