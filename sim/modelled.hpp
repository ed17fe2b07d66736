// SPDX-License-Identifier: BSD-3-Clause
// The modelled machine: a participant's port to the engine, under the concept that every algorithm
// is written over. The very headers of src/barrier run on it.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "barrier/shape.hpp"
#include "lock/ask.hpp"
#include "machine/lock_machine.hpp"
#include "message/mailboxes.hpp"
#include "sim/engine.hpp"
#include "wait/asking.hpp"

namespace muster::sim {

class Modelled : public NobodySleeps<Modelled> {
 public:
  using Cell = Line;

  /// Private to the model: plain data costs nothing, its lines are not modelled.
  template <class T>
  struct Plain {
    T value;
  };

  /// `global` cells first, then `cells_per_rank` of each rank.
  class Cells {
   public:
    Cells() = default;
    Cells(Engine& engine, unsigned global_cells, unsigned cells_per_rank)
        : engine_(&engine), global_cells_(global_cells), cells_per_rank_(cells_per_rank) {}
    Cells(Engine& engine, const Layout& layout)
        : Cells(engine, layout.global_cells, layout.cells_per_rank) {
      words_->resize(layout.words);
    }
    Line& global(unsigned index) const { return engine_->line(index); }
    Line& of(unsigned rank, unsigned index) const {
      return engine_->line(global_cells_ + std::size_t{rank} * cells_per_rank_ + index);
    }

    Plain<Word>& word(unsigned index) const { return words_->at(index); }

   private:
    Engine* engine_ = nullptr;
    unsigned global_cells_ = 0;
    unsigned cells_per_rank_ = 0;
    std::shared_ptr<std::vector<Plain<Word>>> words_ = std::make_shared<std::vector<Plain<Word>>>();
  };

  Modelled(Engine& engine, unsigned participant) : engine_(&engine), participant_(participant) {}

  /// Called by the champion of each episode; false gives up.
  void set_all_arrived(std::function<bool()> hook) { all_arrived_ = std::move(hook); }
  /// compose(); told of its port.
  using Composer = std::function<std::span<const Word>(Modelled& m, std::span<const Word> pus)>;
  void set_composer(Composer composer) { composer_ = std::move(composer); }
  Engine& engine() const { return *engine_; }
  unsigned participant() const { return participant_; }

  template <Order O>
  Word load(const Cell& cell, OrderTag<O>, Site = Site::here()) {
    return engine_->load(participant_, cell);
  }
  template <Order O>
  void store(Cell& cell, Word word, OrderTag<O>, Site = Site::here()) {
    engine_->store(participant_, cell, word);
  }
  template <Order O>
  Word exchange(Cell& cell, Word word, OrderTag<O>, Site = Site::here()) {
    return engine_->update(participant_, cell, Engine::Update::exchange, word);
  }
  template <Order O>
  Word fetch_add(Cell& cell, Word delta, OrderTag<O>, Site = Site::here()) {
    return engine_->update(participant_, cell, Engine::Update::add, delta);
  }
  template <Order O>
  bool compare_exchange(Cell& cell, Word& expected, Word desired, OrderTag<O>,
                        Site = Site::here()) {
    const Word seen =
        engine_->update(participant_, cell, Engine::Update::compare_exchange, desired, expected);
    const bool same = seen == expected;
    expected = seen;
    return same;
  }
  template <class Pred, Order O>
  bool await(Cell& cell, Pred pred, OrderTag<O>, Awaited = Awaited::anyone, Site = Site::here()) {
    return engine_->await(participant_, cell, Test::of(pred));
  }
  template <class Pred, Order O>
  bool await_all(CellSet<Modelled> cells, Pred pred, OrderTag<O>, Site = Site::here()) {
    return engine_->await_all(participant_, cells, Test::of(pred));
  }
  template <class Pred, Order O>
  std::size_t await_any(CellSet<Modelled> cells, Pred pred, OrderTag<O>, std::size_t from = 0,
                        Site = Site::here()) {
    return engine_->await_any(participant_, cells, Test::of(pred), from);
  }
  template <class T>
  T read(const Plain<T>& plain, Site = Site::here()) {
    return plain.value;
  }
  template <class T>
  void write(Plain<T>& plain, T value, Site = Site::here()) {
    plain.value = value;
  }
  /// Plain data that is modelled: an access to one element of an array of `element_bytes` each.
  struct Array {
    std::uint64_t address = 0;  ///< as DataMemory::allocate() returned it
    std::uint32_t element_bytes = 4;
  };
  void touch(const Array& array, std::uint64_t index, bool writes) {
    engine_->touch(participant_, array.address + index * array.element_bytes, writes);
  }
  using NobodySleeps<Modelled>::await_either;
  /// As on hardware, but nobody is woken: where Asking would sleep the core watches both lines.
  int await_either(Cell& own, Cell& held, OrderTag<Order::acquire>, Cell& wanted, const Cell&,
                   const Expectation<Cell>& expected) {
    Pace pace{*this, Asking(false, false, expected.lost)};
    return locks::ask(*this, &own, expected.answer, held, wanted, pace, [&] {
      Cell* const both[] = {&own, &held};
      return await_any(CellSet<Modelled>(both), equals(0), acquire) != no_cell;
    });
  }
  bool is_near(Word participant) const {
    const Geometry& where = engine_->geometry();
    return where.share_memory(where.die_of(participant_), where.die_of(participant));
  }
  void expect_load(const Cell& cell) { engine_->expect_load(participant_, cell); }
  /// What locks wait before they try again.
  void linger(unsigned turns) {
    engine_->delay(participant_, from_ns(static_cast<double>(turns * linger_turn_ns)));
  }
  std::int64_t time_ns() const {
    return static_cast<std::int64_t>(to_ns(engine_->clock(participant_)));
  }
  /// What src/message charges for the software around a message.
  void message() { engine_->message(participant_); }
  /// Each has a PU of its own.
  Awaited count_in_on_pu(const Cells&, unsigned, Word) const { return Awaited::other_pus; }
  /// Cores have the numbers of the engine's participants.
  Word pu() const { return participant_ + 1; }
  std::span<const Word> compose(std::span<const Word> pus) {
    if (!composer_) return {};
    return composer_(*this, pus);
  }
  static void expect_store(const Cell&) {}
  bool all_arrived() { return !all_arrived_ || all_arrived_(); }

 private:
  /// How a client paces itself that asks for a lock.
  struct Pace {
    Modelled& m;
    Asking asking;

    Asking::Next next(auto said) {
      const Asking::Next next = asking.next(said());
      return m.engine_->is_abandoned() ? Asking::Next::sleep : next;
    }
    bool pause(Asking::Next, auto until) {
      const std::int64_t until_ns = m.time_ns() + Asking::poll_ns;
      while (!until() && m.time_ns() < until_ns && !m.engine_->is_abandoned()) m.linger(4);
      return true;
    }
  };

  Engine* engine_;
  unsigned participant_;
  std::function<bool()> all_arrived_;
  Composer composer_;
};

static_assert(LockMachine<Modelled> && MortalMachine<Modelled>);

}  // namespace muster::sim

namespace muster {

/// Messages as Open MPI's transport in shared memory has them, which [K22] measured: a message
/// takes a slot of half a line; who sends clears the slot behind it first, so that its reader stops
/// there; and who has received looks at that one at once. So each second message costs a line more
/// than its own to be written and to be read (opal/mca/btl/sm/btl_sm_fbox.h of version 5.0.0rc2: 8
/// bytes of header, 16 of envelope, rounded to 32). Two lines in turn stand for its ring of 64.
template <>
class Mailboxes<sim::Modelled> {
 public:
  struct Traffic {
    unsigned rank;
    std::vector<Word> sent;
    std::vector<Word> received;
    std::vector<unsigned> open;          ///< who has not been heard yet
    std::vector<sim::Line*> open_lines;  ///< the slots of their messages
  };

  static constexpr unsigned cells_per_rank(unsigned ranks) { return 2 * ranks; }

  Mailboxes(unsigned ranks, Word first, sim::Modelled::Cells cells)
      : ranks_(ranks), first_(first), cells_(std::move(cells)) {}

  void prepare(sim::Modelled& m) const {
    for (unsigned to = 0; to < ranks_; ++to) {
      for (unsigned cell = 0; cell < 2 * ranks_; ++cell) {
        m.store(cells_.of(to, cell), first_, relaxed);
      }
    }
  }

  Traffic traffic(unsigned rank) const {
    return {rank, std::vector<Word>(ranks_, first_), std::vector<Word>(ranks_, first_), {}, {}};
  }

  void send(sim::Modelled& m, Traffic& t, unsigned to) const {
    m.message();
    put(m, t, to);
  }

  bool receive(sim::Modelled& m, Traffic& t, unsigned from) const {
    if (!take(m, t, from)) return false;
    m.message();
    return true;
  }

  /// A receipt takes a slot as messages do, but no layers of a call: the receiver's library writes
  /// it while it receives, the sender's reads it while it waits. Nothing tells it from a message:
  /// in between, the receiver has no other for the sender.
  bool send_synchronously(sim::Modelled& m, Traffic& t, unsigned to) const {
    send(m, t, to);
    return take(m, t, to);
  }

  bool receive_and_confirm(sim::Modelled& m, Traffic& t, unsigned from) const {
    if (!receive(m, t, from)) return false;
    put(m, t, from);
    return true;
  }

  bool receive_from_others(sim::Modelled& m, Traffic& t) const {
    t.open.clear();
    t.open_lines.clear();
    Word next = first_;
    for (unsigned from = 0; from < ranks_; ++from) {
      if (from == t.rank) continue;
      next = ++t.received[from];
      t.open.push_back(from);
      t.open_lines.push_back(&line(m, t.rank, from, next));
    }
    for (std::size_t at = 0; !t.open.empty();) {  // goes on behind the last one, as a poll does
      at = m.await_any(t.open_lines, at_least(next), acquire, at);
      if (at == no_cell) return false;
      look_behind(m, t, t.open[at]);
      m.message();
      t.open.erase(t.open.begin() + static_cast<std::ptrdiff_t>(at));
      t.open_lines.erase(t.open_lines.begin() + static_cast<std::ptrdiff_t>(at));
      if (at == t.open.size()) at = 0;
    }
    return true;
  }

 private:
  static bool slots(const sim::Modelled& m) {
    return m.engine().models(sim::Mechanism::message_slots);
  }
  static bool fills_line(Word message) { return message % 2 == 1; }
  void put(sim::Modelled& m, Traffic& t, unsigned to) const {
    const Word before = t.sent[to]++;
    if (slots(m) && fills_line(t.sent[to])) {
      m.store(line(m, to, t.rank, t.sent[to] + 1), before, relaxed);
    }
    m.store(line(m, to, t.rank, t.sent[to]), t.sent[to], release);  // pairs with take's await
  }
  bool take(sim::Modelled& m, Traffic& t, unsigned from) const {
    const Word next = ++t.received[from];
    if (!m.await(line(m, t.rank, from, next), at_least(next), acquire)) return false;
    look_behind(m, t, from);
    return true;
  }
  void look_behind(sim::Modelled& m, const Traffic& t, unsigned from) const {
    const Word last = t.received[from];
    if (slots(m) && fills_line(last)) m.load(line(m, t.rank, from, last + 1), relaxed);
  }
  /// Of the slot of a message.
  sim::Line& line(const sim::Modelled& m, unsigned to, unsigned from, Word message) const {
    return cells_.of(to, 2 * from + (slots(m) ? message / 2 % 2 : 0));
  }

  unsigned ranks_;
  Word first_;
  sim::Modelled::Cells cells_;
};

}  // namespace muster
