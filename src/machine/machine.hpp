// SPDX-License-Identifier: BSD-3-Clause
// What an algorithm may do to the world. Every barrier and lock is written once, as a template over
// a Machine, and runs unchanged on hardware (machine/hardware.hpp), on the modelled machine (sim/)
// and on the checked one (check/).
//
// `M&` is the participant's own port to its machine and is passed explicitly, so the model knows
// which core acts. Waiting is one operation, never a loop: hardware spins, yields and sleeps in it,
// the model parks the core until the line changes, the checker blocks the thread until a satisfying
// store exists. Every wait returns false when it has to give up (deadline, broken barrier, dead
// participant): the algorithm then returns false at once and stores nothing more.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace muster {

/// What a cell holds. 32 bits: what a futex waits on, on every architecture.
using Word = std::uint32_t;

/// The memory orders algorithms use. There is no seq_cst among them: nothing here needs it.
enum class Order : std::uint8_t { relaxed, acquire, release, acq_rel };

template <Order O>
using OrderTag = std::integral_constant<Order, O>;

inline constexpr OrderTag<Order::relaxed> relaxed{};
inline constexpr OrderTag<Order::acquire> acquire{};
inline constexpr OrderTag<Order::release> release{};
inline constexpr OrderTag<Order::acq_rel> acq_rel{};

/// Where in the source an access stands: the checker reports executions and weakens orders by it.
/// One access a line.
struct Site {
  const char* file;
  int line;
  static constexpr Site here(const char* file = __builtin_FILE(),
                             int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

/// Predicates for waits: pure functions of the word, plain data so that the other machines can look
/// inside.
struct Equals {
  Word wanted;
  constexpr bool operator()(Word seen) const noexcept { return seen == wanted; }
};
constexpr Equals equals(Word wanted) noexcept { return {wanted}; }

/// At or past `bound` on the circle of 2^32: counters wrap, a 32-bit one in minutes. Holds while no
/// counter runs 2^31 ahead.
struct AtLeast {
  Word bound;
  constexpr bool operator()(Word seen) const noexcept {
    return static_cast<std::int32_t>(seen - bound) >= 0;
  }
};
constexpr AtLeast at_least(Word bound) noexcept { return {bound}; }

/// Anything but one word.
struct Differs {
  Word from;
  constexpr bool operator()(Word seen) const noexcept { return seen != from; }
};

/// Who can end a wait: anyone; only participants on other PUs, so that giving up one's own PU to
/// its other participants cannot help; or, most likely soon, the partner in an exchange, who awaits
/// what this participant has just stored; or a combiner, who executes this participant's section
/// among its own, and has the lines to itself while nobody looks. A hint for hardware; the other
/// machines ignore it.
enum class Awaited : std::uint8_t { anyone, other_pus, partner, combiner };

/// A set of cells to wait for as one operation, so that their misses overlap.
template <class M>
using CellSet = std::span<typename M::Cell* const>;

/// No cell became ready: the wait gave up.
inline constexpr std::size_t no_cell = static_cast<std::size_t>(-1);

// clang-format off
template <class M>
concept Machine = requires(M& m, typename M::Cell& cell, CellSet<M> set, Word word, Equals pred,
                           typename M::Cells cells, unsigned index,
                           typename M::template Plain<Word>& plain) {
  // Cells: one word each, alone on its line; `global` ones belong to the barrier, `of` to a rank
  // and live near it. All start at 0.
  { cells.global(index) } -> std::same_as<typename M::Cell&>;
  { cells.of(index, index) } -> std::same_as<typename M::Cell&>;
  { m.load(cell, acquire) } -> std::same_as<Word>;
  m.store(cell, word, release);
  { m.exchange(cell, word, acq_rel) } -> std::same_as<Word>;
  { m.fetch_add(cell, word, acq_rel) } -> std::same_as<Word>;
  // on failure the second argument gets what was there
  { m.compare_exchange(cell, word, word, acq_rel) } -> std::same_as<bool>;
  // Waits. The order holds for the read (for `await_all`: the reads) that satisfies.
  { m.await(cell, pred, acquire) } -> std::same_as<bool>;
  { m.await(cell, pred, acquire, Awaited::other_pus) } -> std::same_as<bool>;
  { m.await_all(set, pred, acquire) } -> std::same_as<bool>;
  // an index into the set, or no_cell
  { m.await_any(set, pred, acquire) } -> std::same_as<std::size_t>;
  // Plain data: ordered by the cells alone; on the checked machine a race on it is an error.
  { m.read(plain) } -> std::same_as<Word>;
  m.write(plain, word);
  // Counts itself in where it happens to run, on one of the first cells of so many ranks: whether
  // those who arrived there in the last episode all have. A hint for the wait that follows.
  { m.count_in_on_pu(cells, index, word) } -> std::same_as<Awaited>;
  // Stores there next, and nobody reads it before that. A hint.
  m.expect_store(cell);
  // "Everyone has arrived, nobody has left": runs the completion, if there is one. False gives up,
  // as a wait does.
  { m.all_arrived() } -> std::same_as<bool>;
};

/// What participants that move need besides.
template <class M>
concept MovingMachine = Machine<M> && requires(M& m, typename M::Cells cells, unsigned index) {
  // plain words of the barrier, one after another
  { cells.word(index) } -> std::same_as<typename M::template Plain<Word>&>;
  // Where it happens to run: 1 + the PU's number, 0 where that is not known. A hint.
  { m.pu() } -> std::same_as<Word>;
  // What is to run from now on where the ranks sit now, as pu() has told of each: a packed schedule
  // (barrier/packed.hpp). Empty: what runs.
  { m.compose(std::span<const Word>{}) } -> std::same_as<std::span<const Word>>;
};
// clang-format on

}  // namespace muster
