// SPDX-License-Identifier: BSD-3-Clause
// The oracle: finds the executions of a small program by brute force. It interleaves the threads in
// every way, lets every read take any store of its location and puts every store anywhere into the
// modification order, and keeps what an axiomatic check of the whole graph, with relations as
// matrices, allows. It shares no code with the explorer and remembers all it has seen.
//
// Source of the axioms: Lahav et al., "Repairing sequential consistency in C/C++11", PLDI 2017
// (RC11), figure 2; release sequences as in C++20 [intro.races].
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "random_program.hpp"

namespace muster::check::test {

struct Truth {
  std::set<std::string> executions;  ///< complete consistent ones, see ExecutionText
  std::set<std::string> hangs;       ///< everyone left waits where the newest store does not do
  bool races = false;
  bool too_large = false;  ///< gave up
};

/// `prune`: check every graph on the way, not only those at the end; both must say the same, since
/// the axioms hold for every prefix of a graph for which they hold.
Truth brute_force(const RandomProgram& program, bool prune, std::size_t states_max);

/// One execution as text, by which the two are compared: per thread what each event read from whom,
/// and per location the modification order.
class ExecutionText {
 public:
  void read(int thread, int location, int from_thread, int from_index, std::uint32_t value);
  void other(int thread, std::uint32_t value);
  void modification(int location, int thread, int index);
  std::string text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace muster::check::test
