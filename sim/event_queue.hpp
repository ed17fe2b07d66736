// SPDX-License-Identifier: BSD-3-Clause
// The pending events, earliest first; events of one time leave in the order in which they entered.
// A heap of four children a vertex over 16-byte entries, whose key holds time and order in one
// word: a comparison is one instruction, and four children share a cache line.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/time.hpp"

namespace muster::sim {

enum class EventKind : std::uint32_t {
  resume,   ///< of: a participant whose operation is over
  arrive,   ///< of: a transaction that has reached the line's order
  done,     ///< of: a transaction whose data or ownership has come back
  look,     ///< of: a waiting participant that polls its cell again
  scan,     ///< of: a participant that polls a set
  reserve,  ///< of: a participant that tries its load-linked
};

struct Event {
  std::uint64_t key;  ///< time << sequence_bits | sequence
  EventKind kind;
  std::uint32_t of;

  Time time() const { return static_cast<Time>(key >> sequence_bits); }
  static constexpr unsigned sequence_bits = 20;
};

class EventQueue {
 public:
  /// Longest simulated time: 17 s.
  static constexpr Time time_max = (Time{1} << (64 - Event::sequence_bits)) - 1;

  EventQueue() { heap_.reserve(4096); }

  bool empty() const { return heap_.empty(); }
  Time next_time() const { return heap_.front().time(); }
  void clear() {
    heap_.clear();
    sequence_ = 0;
  }

  void push(Time time, EventKind kind, std::uint32_t of) {
    const std::uint64_t key = static_cast<std::uint64_t>(time) << Event::sequence_bits | sequence_;
    sequence_ = (sequence_ + 1) & ((1U << Event::sequence_bits) - 1);
    std::size_t at = heap_.size();
    heap_.push_back({});
    while (at > 0) {
      const std::size_t parent = (at - 1) / arity;
      if (heap_[parent].key <= key) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = {key, kind, of};
  }

  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    if (size == 0) return first;
    std::size_t hole = 0;
    for (std::size_t child = 1; child < size; child = arity * hole + 1) {
      std::size_t least = child;
      const std::size_t end = child + arity < size ? child + arity : size;
      for (std::size_t c = child + 1; c < end; ++c) {
        least = heap_[c].key < heap_[least].key ? c : least;
      }
      if (heap_[least].key >= last.key) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = last;
    return first;
  }

 private:
  static constexpr std::size_t arity = 4;
  std::vector<Event> heap_;
  std::uint64_t sequence_ = 0;
};

}  // namespace muster::sim
