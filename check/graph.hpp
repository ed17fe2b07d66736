// SPDX-License-Identifier: BSD-3-Clause
// An execution graph: events, program order (their index), reads-from (Event::from), the
// modification order of each location (co), and the order in which the explorer added them. It
// grows by single events and shrinks by undoing the last ones; a backward revisit copies the part
// that it keeps.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "check/event.hpp"
#include "check/program.hpp"

namespace muster::check {

class Graph {
 public:
  enum class Status : std::uint8_t {
    updating,  ///< its last event is an update's reading half; the writing half comes next of all
    runnable,
    waiting,  ///< at a wait that no store satisfies yet; the wait is not in the graph
    stuck,    ///< at a wait that did not read what it waits for; it may be revisited
    done,
  };

  struct Statuses {
    std::array<Status, max_threads> of{};
    std::array<std::uint16_t, max_threads> waits{};
  };
  struct Mark {
    std::size_t events;
    Statuses statuses;
  };

  void reset(const Memory& memory, unsigned threads);
  /// Becomes `other` without the events at or beyond `keep` of each thread.
  void copy_prefix(const Graph& other, const Clock& keep);

  unsigned threads() const { return threads_; }
  std::int16_t size(unsigned thread) const {
    return static_cast<std::int16_t>(events_[thread].size());
  }
  std::span<const EventId> order() const { return order_; }
  std::span<const EventId> co(Location location) const { return co_[location]; }
  std::size_t locations() const { return co_.size(); }
  std::span<const EventId> sc_fences() const { return sc_fences_; }

  Event& at(EventId id) { return events_[id.thread][static_cast<std::size_t>(id.index)]; }
  const Event& at(EventId id) const {
    return events_[id.thread][static_cast<std::size_t>(id.index)];
  }
  const Event& at(unsigned thread, int index) const {
    return events_[thread][static_cast<std::size_t>(index)];
  }
  Word value(EventId write) const {
    return write.is_initial() ? memory_->initial(static_cast<Location>(write.index))
                              : at(write).written;
  }
  int position(EventId write) const { return write.is_initial() ? 0 : at(write).position; }
  EventId newest(Location location) const { return co_[location].back(); }
  Word newest_value(Location location) const { return value(newest(location)); }
  /// Index of the thread's last linked access to the location, -1 if none.
  int last(unsigned thread, Location location) const {
    return last_[thread * co_.size() + location];
  }

  /// Appends an event; it is not yet linked, nor in co.
  EventId append(unsigned thread, const Operation& op);
  /// Makes the thread's last event known as an access to its location.
  void link(EventId id);
  void unlink(EventId id);
  /// Puts a write into its location's modification order.
  void insert(EventId write, int position);
  void remove(EventId write);

  Mark mark() const { return {order_.size(), statuses_}; }
  /// Takes back all events added since, and restores what the participants were about to do.
  void undo(const Mark& mark);

  Status status(unsigned thread) const { return statuses_.of[thread]; }
  void set_status(unsigned thread, Status status) { statuses_.of[thread] = status; }
  /// What a waiting or stuck participant waits for (Operation::wait).
  std::uint16_t wait(unsigned thread) const { return statuses_.waits[thread]; }
  void set_status(unsigned thread, Status status, std::uint16_t wait) {
    statuses_.of[thread] = status;
    statuses_.waits[thread] = wait;
  }

 private:
  unsigned threads_ = 0;
  const Memory* memory_ = nullptr;
  std::array<std::vector<Event>, max_threads> events_;
  std::vector<EventId> order_;
  std::vector<EventId> sc_fences_;  ///< of these
  std::vector<std::vector<EventId>> co_;
  std::vector<std::int16_t> last_;
  Statuses statuses_;
};

}  // namespace muster::check
