// SPDX-License-Identifier: BSD-3-Clause
// A schedule (schedule.hpp) as words in shared memory, which is small and can be handed over while
// a barrier is in use. It begins with where each rank's program is. A program is its size, where
// its departures begin, then its steps; a step says how many flags it awaits and stores, of how
// many adders its counter is, and then has its cells. A cell is a number: Room::cells a rank.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "barrier/compose.hpp"
#include "barrier/shape.hpp"

namespace muster {

/// What there is for a packed schedule. A rank's cells may lie at others.
struct Room {
  static constexpr unsigned cells = 8;           ///< of each rank
  static constexpr unsigned words = 56;          ///< for each rank, on average
  static constexpr unsigned program_words = 62;  ///< of the longest program
};

/// For participants of whom nobody knows where they sit.
inline Schedule unplaced_schedule(unsigned participants) {
  const char* const recipe = participants <= 8 ? "all" : "tree8+line16x8";
  return compose_proved(nullptr, participants, parse_recipe(recipe), Room::cells);
}

/// Empty if there is no room for that. `schedule` is one that check_schedule() accepts.
inline std::vector<Word> pack(const Schedule& schedule) {
  if (schedule.cells_per_rank > Room::cells) return {};
  std::vector<Word> words(schedule.participants());
  for (unsigned rank = 0; rank < schedule.participants(); ++rank) {
    const Schedule::Program& program = schedule.programs[rank];
    const std::size_t begin = words.size();
    const auto size = [&] { return static_cast<Word>(words.size() - begin); };
    words[rank] = static_cast<Word>(begin);
    words.insert(words.end(), 2, 0);
    for (unsigned s = program.arrivals; s < program.end; ++s) {
      if (s == program.departures) words[begin + 1] = size();
      const Step& step = schedule.steps[s];
      words.insert(words.end(), {step.awaits, step.stores, step.adders});
      const unsigned cells = step.awaits + step.stores + (step.adders > 0 ? 1 : 0);
      for (unsigned at = step.first_cell; at < step.first_cell + cells; ++at) {
        words.push_back(schedule.cells[at].rank * Room::cells + schedule.cells[at].index);
      }
    }
    if (program.departures == program.end) words[begin + 1] = size();
    words[begin] = size();
    if (size() > Room::program_words) return {};
  }
  if (words.size() > std::size_t{schedule.participants()} * Room::words) return {};
  return words;
}

/// One rank's.
using Program = std::array<Word, Room::program_words>;

/// Copies a rank's program. False if that is none: another process may have written there, and
/// nothing that it says leads elsewhere.
template <class ReadFn>  // Word read(Word at)
bool take_packed(ReadFn&& read, unsigned participants, unsigned rank, Program& program) {
  Word taken = 0;
  bool good = true;
  Word from = read(rank);
  const auto next = [&](Word end) -> Word {
    const bool is_there = from < participants * Room::words && taken < Room::program_words;
    const Word word = is_there ? read(from++) : end;
    good = good && word < end;
    if (!good) return 0;
    return program[taken++] = word;
  };
  const Word size = next(Room::program_words + 1);
  const Word departures = next(size + 1);
  bool departs = departures == size;
  while (good && taken < size) {
    departs = departs || taken == departures;
    Word cells = next(size);
    cells += next(size);
    const Word adders = next(participants + 1);
    if (adders > 0) ++cells;
    for (; good && cells > 0; --cells) next(participants * Room::cells);
    // Who is not the last to count goes on from there, never back.
    good = good && (adders == 0 || taken <= departures);
  }
  return good && departs && taken == size;
}

/// An episode of a program that pack() made, or take_packed() took. The first is number 1: its
/// cells are 0. Invariants and orders are those of scheduled.hpp.
template <Machine M, class CellFn>  // M::Cell& cell(Word number)
bool run_packed(M& m, const Program& program, Word episode, CellFn&& cell) {
  std::array<typename M::Cell*, Room::program_words> awaited;
  for (Word at = 2; at < program[0];) {
    const Word awaits = program[at];
    const Word stores = program[at + 1];
    const Word adders = program[at + 2];
    at += 3;
    for (Word n = 0; n < awaits; ++n, ++at) awaited[n] = &cell(program[at]);
    if (awaits == 1) {
      if (!m.await(*awaited[0], at_least(episode), acquire)) return false;  // pairs with the store
    } else if (awaits > 1) {
      if (!m.await_all({awaited.data(), awaits}, at_least(episode), acquire))
        return false;  // pairs with each one's store
    }
    for (Word n = 0; n < stores; ++n, ++at) {
      m.store(cell(program[at]), episode, release);  // pairs with the awaits above
    }
    if (adders > 0) {
      // Releases what this one and those it stands for wrote; the last one acquires it.
      const Word before = m.fetch_add(cell(program[at++]), 1, acq_rel);
      if (before + 1 != episode * adders) at = program[1];
    }
  }
  return true;
}

}  // namespace muster
