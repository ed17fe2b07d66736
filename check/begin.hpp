// SPDX-License-Identifier: BSD-3-Clause
// Programs that begin in the middle, where from nothing they have millions of executions. First
// some participants run their bodies, one after another and each until it is where it shall be:
// what they have stored by then is there at the start, and happens before all that is explored.
#pragma once

#include <initializer_list>
#include <vector>

#include "check/program.hpp"

namespace muster::check {

/// Where a participant is then: at a wait that is not over,
struct Begun {
  unsigned thread;
  Location next = no_location;  ///< or about to access this word,
  unsigned accesses = 0;        ///< when it has done so often; or at its end
};

/// The program has its memory and its body. Throws Error(invalid) if that fails by then, or ends.
void begin(Program& program, std::initializer_list<Begun> begun);

/// A participant alone: it reads what was stored last.
class Beginning {
 public:
  struct Over {};  // thrown through the body

  Beginning(Program& program, const Begun& begun)
      : memory_(program.memory), seen_(program.past[begun.thread]), begun_(begun) {}

  Word step(const Operation& op);
  Word await(Location where, const Predicate& ready);
  std::size_t await_first(const std::vector<Awaitable>& any, std::size_t first);

 private:
  void access(Location where);
  Word see(Word word);

  Memory& memory_;
  std::vector<Word>& seen_;
  Begun begun_;
};

}  // namespace muster::check
