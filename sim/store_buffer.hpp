// SPDX-License-Identifier: BSD-3-Clause
// A core's store buffer. Stores commit in program order, as release stores have to; ownership of
// several lines is asked for at once. The core sees its own pending stores: without that a correct
// barrier lets participants pass too early.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/error.hpp"
#include "machine/machine.hpp"

namespace muster::sim {

struct Line;

class StoreBuffer {
 public:
  enum class State : std::uint8_t { queued, requested, granted };
  struct Entry {
    Line* line;
    Word value;
    State state;
  };

  explicit StoreBuffer(unsigned entries) : ring_(entries) {}

  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == ring_.size(); }
  unsigned size() const { return size_; }
  // What is not there is an error of the model, thrown as Error(system).
  /// In program order.
  Entry& at(unsigned n) {
    require(n < size_);
    return ring_[wrap(head_ + n)];
  }
  Entry& front() { return at(0); }

  void push(Line& line, Word value) {
    require(!full());
    ring_[wrap(head_ + size_)] = {&line, value, State::queued};
    ++size_;
  }
  void pop() {
    require(!empty());
    head_ = wrap(head_ + 1);
    --size_;
  }

  /// The core's youngest pending store to this line; null if there is none.
  const Entry* forward(const Line& line) const {
    for (unsigned n = size_; n-- > 0;) {
      const Entry& entry = ring_[wrap(head_ + n)];
      if (entry.line == &line) return &entry;
    }
    return nullptr;
  }
  /// Whether one of the first n entries stores to this line.
  bool stored_before(const Line& line, unsigned n) const {
    while (n-- > 0) {
      if (ring_[wrap(head_ + n)].line == &line) return true;
    }
    return false;
  }

 private:
  static void require(bool holds) {
    if (!holds) throw Error(Status::system, "the model is wrong: a store buffer's bounds");
  }
  unsigned wrap(unsigned n) const {
    return n < ring_.size() ? n : n - static_cast<unsigned>(ring_.size());
  }

  std::vector<Entry> ring_;
  unsigned head_ = 0;
  unsigned size_ = 0;
};

}  // namespace muster::sim
