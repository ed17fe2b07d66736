// SPDX-License-Identifier: BSD-3-Clause
// What a server's sections have posted to other locks and is not sent yet. A post may have to wait:
// for a place in a ring, or, where no server runs, for the lock. So one of the server's threads at
// a time sends what is for one station, and the others go on serving: however slow that station
// is, it keeps one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <vector>

#include "delegation/port.hpp"

namespace muster::delegation {

class AnyLock;
class Station;
struct Thread;

/// A section for a station's lock, which lives until it is sent.
struct Post {
  AnyLock* lock;
  Section section;
};

class Outbox {
 public:
  /// A section's. Those for one station are executed in their order.
  void add(const std::vector<Post>& posts);
  /// Sends all that is for one station, until there is nothing: of those to which no other thread
  /// is sending, that of the oldest post. False if there is none, or if the calling thread gets no
  /// seat. By a server's thread, outside of all sections.
  bool send_line() noexcept;
  /// In a section that the calling thread executes to send it, and that waits for a condition,
  /// perhaps for what comes after it: others send that. False if there is nothing.
  bool leave_line() noexcept;
  /// Whether there is one.
  bool has_turn() const noexcept { return turns_.load(std::memory_order_relaxed) != 0; }
  unsigned posts() const noexcept { return posts_.load(std::memory_order_relaxed); }

 private:
  struct Numbered {
    Post post;
    std::uint64_t number;
  };
  /// Kept when it is empty, for the same station or another one.
  struct Line {
    const Station* to = nullptr;
    std::deque<Numbered> posts{};
    const Thread* sender = nullptr;  ///< who sends the first of them just now
    bool has_turn() const { return sender == nullptr && !posts.empty(); }
  };
  Line& line_to(const Station* station);
  Line* oldest();
  bool let_go(Line& line) noexcept;

  std::mutex mutex_;
  std::list<Line> lines_;
  std::uint64_t added_ = 0;
  std::atomic<unsigned> turns_{0};  ///< lines that have one
  std::atomic<unsigned> posts_{0};
};

}  // namespace muster::delegation
