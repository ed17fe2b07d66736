// SPDX-License-Identifier: BSD-3-Clause
// Events of an execution graph: what a participant did, and what it knew when it did it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "machine/machine.hpp"

namespace muster::check {

/// Participants of one program, at most.
inline constexpr unsigned max_threads = 8;

using Location = std::uint16_t;
inline constexpr Location no_location = 0xffff;

/// An event's name: the index-th of its thread, or the initial write of a location.
struct EventId {
  std::int16_t thread;
  std::int16_t index;

  static constexpr EventId initial(Location location) {
    return {-1, static_cast<std::int16_t>(location)};
  }
  constexpr bool is_initial() const { return thread < 0; }
  friend constexpr bool operator==(EventId, EventId) = default;
};
inline constexpr EventId no_event{-2, 0};

/// A set of events that with each event has all earlier ones of its thread: how many of each.
/// Also called a view, or a vector clock.
struct Clock {
  std::array<std::int16_t, max_threads> count{};

  void join(const Clock& other) {
    for (unsigned t = 0; t < max_threads; ++t) {
      if (other.count[t] > count[t]) count[t] = other.count[t];
    }
  }
  bool contains(EventId id) const { return id.is_initial() || id.index < count[id.thread]; }
};

/// Memory orders as sets of what they do. Accesses have the first four, fences the last three of
/// those and the rest. A *light* fence is nothing but ordered with each *heavy* one, which is a
/// seq_cst one besides: on hardware a compiler's barrier and membarrier(2).
enum class Ordering : std::uint8_t {
  relaxed = 0,
  acquire = 1,
  release = 2,
  acq_rel = 3,
  seq_cst = 7,
  light = 8,
  heavy = 15,
};
constexpr bool acquires(Ordering o) { return (static_cast<unsigned>(o) & 1U) != 0; }
constexpr bool releases(Ordering o) { return (static_cast<unsigned>(o) & 2U) != 0; }
/// Whether all agree which of two fences, neither of them weaker than these three, is the first.
constexpr bool ordered_with(Ordering a, Ordering b) {
  return (a != Ordering::light && b != Ordering::light) || a == Ordering::heavy ||
         b == Ordering::heavy;
}
constexpr Ordering ordering(Order o) {
  constexpr Ordering all[] = {Ordering::relaxed, Ordering::acquire, Ordering::release,
                              Ordering::acq_rel};
  return all[static_cast<int>(o)];
}
/// A failed compare-exchange only reads.
constexpr Ordering failure_ordering(Ordering o) {
  return acquires(o) ? Ordering::acquire : Ordering::relaxed;
}

/// A wait's condition: a copy of any small predicate on a word.
class Predicate {
 public:
  Predicate() = default;
  template <class P>
  requires(!std::is_same_v<std::remove_cvref_t<P>, Predicate>) explicit Predicate(
      const P& predicate)
      : holds_([](const std::byte* state, Word seen) -> bool {
          P copy = *reinterpret_cast<const P*>(state);
          return copy(seen);
        }) {
    static_assert(std::is_trivially_copyable_v<P> && sizeof(P) <= sizeof(state_),
                  "a wait's predicate is plain data of at most 16 bytes");
    if constexpr (!std::is_empty_v<P>) std::memcpy(state_, &predicate, sizeof(P));
  }
  bool operator()(Word seen) const { return holds_(state_, seen); }
  friend bool operator==(const Predicate& a, const Predicate& b) {
    return a.holds_ == b.holds_ && std::memcmp(a.state_, b.state_, sizeof(a.state_)) == 0;
  }

 private:
  bool (*holds_)(const std::byte*, Word) = nullptr;
  alignas(8) std::byte state_[16]{};
};

enum class Kind : std::uint8_t {
  load,
  store,
  update_read,   ///< the reading half of a read-modify-write
  update_write,  ///< its writing half, next in program order; none if a compare-exchange fails
  await,         ///< a load that only a satisfying store ends
  fence,
  plain_read,
  plain_write,
  choice,  ///< a nondeterministic number, e.g. whether a wait gives up
};

enum class Update : std::uint8_t { none, add, fetch_or, exchange, compare_exchange };

/// What a participant asks for.
struct Operation {
  Kind kind;
  Ordering order = Ordering::relaxed;
  Update update = Update::none;
  Location location = no_location;
  std::uint16_t wait = 0;  ///< waits: what they wait for, a number of the explorer's
  Word operand = 0;        ///< what is stored, added or desired; choice: the number of alternatives
  Word expected = 0;       ///< compare-exchange
  Site site{nullptr, 0};

  /// What a store, or an update that succeeds, leaves where that was.
  Word written_over(Word was) const {
    if (update == Update::add) return was + operand;
    return update == Update::fetch_or ? was | operand : operand;
  }
};

struct Event {
  Operation op;
  EventId from = no_event;     ///< reads, and writing halves: the write that is read from (rf)
  Word read = 0;               ///< reads, and the choice made
  Word written = 0;            ///< writes
  bool satisfied = true;       ///< waits: else its participant goes no further
  std::int16_t previous = -1;  ///< the same thread's access to this location before this one
  std::int16_t stamp = 0;      ///< position in the order of addition
  std::int16_t position = 0;   ///< writes: position in the location's modification order (co)

  Clock hb;          ///< what happens before it, itself included
  Clock porf;        ///< what it depends on through program order and reads-from, itself included
  Clock released;    ///< writes: what an acquire that reads from it synchronizes with
  Clock to_acquire;  ///< what the thread's next acquire fence synchronizes with
  Clock fenced;      ///< what happens before the thread's last release fence

  bool is_read() const {
    return op.kind == Kind::load || op.kind == Kind::update_read || op.kind == Kind::await;
  }
  bool is_write() const { return op.kind == Kind::store || op.kind == Kind::update_write; }
  /// A reading half that a writing half follows.
  bool is_updating() const { return op.kind == Kind::update_read && update_succeeds(); }
  /// Ordered with others of its kind: see ordered_with().
  bool is_sc_fence() const { return op.kind == Kind::fence && op.order >= Ordering::seq_cst; }
  Ordering order() const {
    return op.kind == Kind::update_read && !update_succeeds() ? failure_ordering(op.order)
                                                              : op.order;
  }

 private:
  bool update_succeeds() const {
    return op.update != Update::compare_exchange || read == op.expected;
  }
};

}  // namespace muster::check
