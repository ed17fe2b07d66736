// SPDX-License-Identifier: BSD-3-Clause
// The mutation gate: every memory order that an algorithm writes is weakened by one step, and the
// checks must notice. An order that they do not need is either weakened in the source or marked
// there, on the line of the access or in a comment just above it, with
//
//   // stronger: <reason>
#pragma once

#include <functional>
#include <initializer_list>

#include "check/explore.hpp"
#include "check/suite/barriers.hpp"

namespace muster::check {

/// A "stronger:" comment in a source file.
struct Marker {
  const char* file;  ///< from the root of the source tree
  int line;          ///< of the access that it is about
  const char* reason;
};
/// All there are in the sources that this was built from.
const std::vector<Marker>& markers();
/// The marker of an access, nullptr if it has none.
const Marker* marker_of(const Site& site);

/// Whether an order in this file, from the root of the source tree, may be weakened.
bool is_checked_source(std::string_view file);

enum class Fate : std::uint8_t {
  caught,
  stronger,  ///< not caught, but marked
  not_caught,
  marked_in_vain,  ///< marked, though every weakening of it is caught
};
const char* fate_name(Fate fate);

struct Mutation {
  std::string algorithm;
  OrderedAccess access;
  Ordering weaker;
  Fate fate;
  Verdict verdict = Verdict::holds;  ///< if caught: how
  std::string caught_by{};           ///< and in which program
  Fault fault = Fault::none;         ///< the access is not weaker, but wrong
};

/// What the gate runs a mutant through.
struct Rehearsed {
  std::string name;
  std::function<Program(Tuning&)> make;
};

/// A mutant that no order expresses.
struct HandWritten {
  const char* name;
  std::vector<Rehearsed> programs;  ///< one of which has to notice; each name once
};
/// Those of barriers (barrier_mutants.cmake).
std::vector<HandWritten> hand_written_mutants();
/// One of them, with 3 episodes, or as many as there are of changes. `recipe`: of a schedule.
HandWritten mutant_of_barrier(const char* name, Variant variant,
                              std::initializer_list<unsigned> participants,
                              Program (*rehearse)(const Scenario&, Tuning&), const char* recipe);

/// A mutant without an access, for run_mutation().
Mutation hand_written_mutation(const std::string& name);

/// Each access that the programs have (of a file, if `only` names one) with each order that is a
/// step weaker; to be run. Throws Error(invalid) if a program fails before anything is weakened, or
/// no access has an order that could be weaker; Error(unsupported) if none of those is in `only`.
std::vector<Mutation> find_mutations(const std::string& algorithm,
                                     const std::vector<Rehearsed>& programs,
                                     const std::string& only = "");
/// Runs the programs until one notices; what became of it.
Mutation run_mutation(Mutation mutation, const std::vector<Rehearsed>& programs);
/// When all of an algorithm's have been run: those of accesses that are marked in vain.
void judge_markers(std::vector<Mutation>& mutations);
/// All three.
std::vector<Mutation> mutate(const std::string& algorithm, const std::vector<Rehearsed>& programs,
                             const std::string& only = "");

/// Has each store, update and wait of theirs in src/ go wrong, in each way there is, and runs the
/// programs until one notices. Stores are late where C++ does not let them, and their loss is
/// noticed.
std::vector<Mutation> spoil(const std::string& algorithm, const std::vector<Rehearsed>& programs);

/// The programs of one algorithm, cheapest first.
std::vector<Rehearsed> mutation_programs(const std::vector<Algorithm>& variants,
                                         const std::vector<unsigned>& participants,
                                         const std::vector<unsigned>& episodes);
/// Those of the sleep protocol, and of how waits begin and end.
std::vector<Rehearsed> mutation_programs_of_sleep();
std::vector<Rehearsed> mutation_programs_of_lifetime();
inline constexpr const char* sleep_source = "src/wait/sleep.hpp";
inline constexpr const char* lifetime_source = "src/machine/lifetime.hpp";

}  // namespace muster::check
