// SPDX-License-Identifier: BSD-3-Clause
// The modelled machine: a participant's port to the engine, under the concept that every algorithm
// is written over. The very headers of src/barrier run on it.
#pragma once

#include <functional>

#include "machine/machine.hpp"
#include "sim/engine.hpp"

namespace muster::sim {

class Modelled {
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
    Line& global(unsigned index) const { return engine_->line(index); }
    Line& of(unsigned rank, unsigned index) const {
      return engine_->line(global_cells_ + std::size_t{rank} * cells_per_rank_ + index);
    }

   private:
    Engine* engine_ = nullptr;
    unsigned global_cells_ = 0;
    unsigned cells_per_rank_ = 0;
  };

  Modelled(Engine& engine, unsigned participant) : engine_(&engine), participant_(participant) {}

  /// Called by the champion of each episode; false gives up.
  void set_all_arrived(std::function<bool()> hook) { all_arrived_ = std::move(hook); }
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
  /// What locks wait before they try again.
  void linger(unsigned turns) { engine_->linger(participant_, turns); }
  /// What src/message charges for the software around a message.
  void message() { engine_->message(participant_); }
  /// Each has a PU of its own.
  Awaited count_in_on_pu(const Cells&, unsigned, Word) const { return Awaited::other_pus; }
  bool all_arrived() { return !all_arrived_ || all_arrived_(); }

 private:
  Engine* engine_;
  unsigned participant_;
  std::function<bool()> all_arrived_;
};

static_assert(Machine<Modelled>);

}  // namespace muster::sim
