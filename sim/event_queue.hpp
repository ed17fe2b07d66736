// SPDX-License-Identifier: BSD-3-Clause
// The pending events, earliest first; events of one time leave in the order in which they entered.
// A calendar (Brown, CACM 31(10), 1988) of fixed days: nearly all events are less than two
// microseconds ahead, so each has a list for its nanosecond, found and left by a few instructions;
// a bitmap tells which lists hold any. What is farther ahead waits in a heap.
#pragma once

#include <algorithm>
#include <array>
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
  ahead,    ///< of: a waiting participant that runs ahead into its next wait
};

struct Event {
  Time time;
  EventKind kind;
  std::uint32_t of;
};

class EventQueue {
 public:
  /// Longest simulated time: some months.
  static constexpr Time time_max = INT64_MAX / 4;

  EventQueue() {
    nodes_.reserve(4096);
    days_.fill({none, none});
  }

  bool empty() const { return near_ == 0 && far_.empty(); }
  void clear() { *this = EventQueue(); }

  /// `time` not before that of the last event popped; if it is, that one's counts.
  void push(Time time, EventKind kind, std::uint32_t of) {
    const Event event{std::max(time, now_), kind, of};
    if (event.time >> day_shift >= today_ + day_count) {
      far_.push_back({event, sequence_++});
      std::push_heap(far_.begin(), far_.end(), Later());
    } else {
      insert(event);
    }
  }

  /// There has to be one.
  Event pop() {
    if (near_ == 0) {
      today_ = far_.front().event.time >> day_shift;
      bring_near();
    }
    const unsigned index = first_day();
    Day& day = days_[index];
    const std::uint32_t node = day.first;
    const Event event = nodes_[node].event;
    day.first = nodes_[node].next;
    if (day.first == none) {
      words_[index / 64] &= ~(std::uint64_t{1} << (index % 64));
      if (words_[index / 64] == 0) summary_ &= ~(std::uint64_t{1} << (index / 64));
    }
    nodes_[node].next = free_;
    free_ = node;
    --near_;
    now_ = event.time;
    today_ = event.time >> day_shift;
    if (!far_.empty()) bring_near();
    return event;
  }

 private:
  static constexpr unsigned day_shift = 10;  // 1.024 ns
  static constexpr unsigned day_count = 2048;
  static constexpr unsigned word_count = day_count / 64;
  static constexpr std::uint32_t none = ~0U;

  struct Node {
    Event event;
    std::uint32_t next;
  };
  struct Day {
    std::uint32_t first;
    std::uint32_t last;  ///< if there is a first
  };
  struct Far {
    Event event;
    std::uint64_t sequence;
  };
  struct Later {
    bool operator()(const Far& a, const Far& b) const {
      return a.event.time != b.event.time ? a.event.time > b.event.time : a.sequence > b.sequence;
    }
  };

  /// By value: in registers, where it has just been put together from smaller pieces.
  void insert(Event event) {
    std::uint32_t node = free_;
    if (node == none) {
      node = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({event, none});
    } else {
      free_ = nodes_[node].next;
      nodes_[node] = {event, none};
    }
    ++near_;
    const auto index = static_cast<unsigned>(event.time >> day_shift) % day_count;
    Day& day = days_[index];
    if (day.first == none) {
      day = {node, node};
      words_[index / 64] |= std::uint64_t{1} << (index % 64);
      summary_ |= std::uint64_t{1} << (index / 64);
    } else if (nodes_[day.last].event.time <= event.time) {
      nodes_[day.last].next = node;
      day.last = node;
    } else if (nodes_[day.first].event.time > event.time) {
      nodes_[node].next = day.first;
      day.first = node;
    } else {
      std::uint32_t before = day.first;
      while (nodes_[nodes_[before].next].event.time <= event.time) before = nodes_[before].next;
      nodes_[node].next = nodes_[before].next;
      nodes_[before].next = node;
    }
  }

  /// The first day from today on, around the year, that has events; there is one.
  unsigned first_day() const {
    const auto from = static_cast<unsigned>(today_) % day_count;
    const unsigned word = from / 64;
    const std::uint64_t rest = words_[word] & ~std::uint64_t{0} << (from % 64);
    if (rest != 0) return word * 64 + static_cast<unsigned>(__builtin_ctzll(rest));
    // The words after this one, or else those from the first on; this one's low days come last.
    const std::uint64_t after =
        word + 1 < 64 ? summary_ & ~std::uint64_t{0} << (word + 1) : std::uint64_t{0};
    const auto next = static_cast<unsigned>(__builtin_ctzll(after != 0 ? after : summary_));
    return next * 64 + static_cast<unsigned>(__builtin_ctzll(words_[next]));
  }

  /// What has come within a year. At once, so that it stays ahead of what is pushed later.
  void bring_near() {
    while (!far_.empty() && far_.front().event.time >> day_shift < today_ + day_count) {
      const Event event = far_.front().event;
      std::pop_heap(far_.begin(), far_.end(), Later());
      far_.pop_back();
      insert(event);
    }
  }

  Time now_ = 0;
  Time today_ = 0;
  std::size_t near_ = 0;
  std::array<Day, day_count> days_;
  std::array<std::uint64_t, word_count> words_{};
  std::uint64_t summary_ = 0;  ///< by word: whether it is not 0
  std::vector<Node> nodes_;
  std::uint32_t free_ = none;
  std::vector<Far> far_;
  std::uint64_t sequence_ = 0;
};

}  // namespace muster::sim
