// SPDX-License-Identifier: BSD-3-Clause
#include "check/begin.hpp"

namespace muster::check {

Word Beginning::see(Word word) {
  seen_.push_back(word);
  return word;
}

void Beginning::access(Location where) {
  if (where == begun_.next && begun_.accesses-- == 0) throw Over{};
}

Word Beginning::step(const Operation& op) {
  if (op.location == no_location) return see(0);
  access(op.location);
  const Word was = memory_.initial(op.location);
  const bool changes =
      op.update == Update::compare_exchange ? was == op.expected : op.kind == Kind::update_read;
  if (changes || op.kind == Kind::store || op.kind == Kind::plain_write) {
    memory_.set_initial(op.location, op.written_over(was));
  }
  return see(was);
}

Word Beginning::await(Location where, const Predicate& ready) {
  const Word word = memory_.initial(where);
  if (!ready(word)) throw Over{};
  access(where);
  return see(word);
}

std::size_t Beginning::await_first(const std::vector<Awaitable>& any, std::size_t first) {
  // Nobody is to begin in its middle.
  for (std::size_t n = 0; n < any.size(); ++n) {
    const std::size_t index = (first + n) % any.size();
    if (any[index].ready(memory_.initial(any[index].where))) {
      return see(static_cast<Word>(index));
    }
  }
  throw Over{};
}

void begin(Program& program, std::initializer_list<Begun> begun) {
  program.past.assign(program.threads, {});
  for (const Begun& one : begun) {
    Beginning beginning(program, one);
    const std::vector<Word> past = program.past[one.thread];
    Thread face(beginning, past, one.thread);
    try {
      program.body(face);
    } catch (const Beginning::Over&) {  // it is there
    }
  }
}

}  // namespace muster::check
