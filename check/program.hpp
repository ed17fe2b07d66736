// SPDX-License-Identifier: BSD-3-Clause
// What is explored: shared memory and one deterministic body per participant.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/event.hpp"
#include "machine/error.hpp"

namespace muster::check {

/// The shared words of a program, with their initial values and the names they have in traces.
class Memory {
 public:
  struct Word32 {
    Word initial;
    std::string name;
  };

  Location add(Word initial, std::string name) {
    if (words_.size() >= 32'767) {
      throw Error(Status::invalid, "a checked program has at most 32,767 words");
    }
    words_.push_back({initial, std::move(name)});
    return static_cast<Location>(words_.size() - 1);
  }
  void set_initial(Location location, Word value) { words_[location].initial = value; }
  Word initial(Location location) const { return words_[location].initial; }
  const std::string& name(Location location) const { return words_[location].name; }
  std::size_t size() const { return words_.size(); }

 private:
  std::vector<Word32> words_;
};

class Beginning;
class Explorer;
class Graph;

/// One of several things that a wait may end with.
struct Awaitable {
  Location where;
  Predicate ready;
  Ordering order;
  Site site;
};

/// A participant's face to the explorer. The body is run again and again from its start: the calls
/// it made before return what they returned, the next one is explored. A call may throw (an
/// object that is no std::exception) to end this run of the body: let it through. A wait may also
/// say that it is over, which takes less time: then return, and ask for nothing more.
class Thread {
 public:
  Thread(Explorer& explorer, unsigned id);
  Thread(Beginning& beginning, std::span<const Word> past, unsigned id)
      : beginning_(&beginning), past_(past), id_(id) {}

  unsigned id() const { return id_; }
  /// Ends a run that is over, as any call does.
  void go_on() const {
    if (is_over_) end();
  }

  Word load(Location where, Ordering order, Site site = Site::here()) {
    return step({.kind = Kind::load, .order = order, .location = where, .site = site});
  }
  void store(Location where, Word value, Ordering order, Site site = Site::here()) {
    step({.kind = Kind::store, .order = order, .location = where, .operand = value, .site = site});
  }
  Word fetch_add(Location where, Word delta, Ordering order, Site site = Site::here()) {
    return update(Update::add, where, delta, order, site);
  }
  Word fetch_or(Location where, Word bits, Ordering order, Site site = Site::here()) {
    return update(Update::fetch_or, where, bits, order, site);
  }
  Word exchange(Location where, Word value, Ordering order, Site site = Site::here()) {
    return update(Update::exchange, where, value, order, site);
  }
  /// The value that was there; it was replaced if it equals `expected`. Never fails spuriously.
  Word compare_exchange(Location where, Word expected, Word desired, Ordering order,
                        Site site = Site::here()) {
    return step({.kind = Kind::update_read,
                 .order = order,
                 .update = Update::compare_exchange,
                 .location = where,
                 .operand = desired,
                 .expected = expected,
                 .site = site});
  }
  void fence(Ordering order, Site site = Site::here()) {
    step({.kind = Kind::fence, .order = order, .site = site});
  }
  /// Returns the value that satisfied.
  Word await(Location where, const Predicate& ready, Ordering order, Site site = Site::here()) {
    return or_end(await_or_over(where, ready, order, site));
  }
  /// The same; nothing: this run is over.
  std::optional<Word> await_or_over(Location where, const Predicate& ready, Ordering order,
                                    Site site);
  /// Any one of several, which are read pass by pass from `first` on: returns its index.
  std::size_t await_first(const std::vector<Awaitable>& any, std::size_t first = 0) {
    return or_end(await_first_or_over(any, first));
  }
  std::optional<std::size_t> await_first_or_over(const std::vector<Awaitable>& any,
                                                 std::size_t first);
  Word read(Location where, Site site = Site::here()) {
    return step({.kind = Kind::plain_read, .location = where, .site = site});
  }
  void write(Location where, Word value, Site site = Site::here()) {
    step({.kind = Kind::plain_write, .location = where, .operand = value, .site = site});
  }
  /// Any number below `alternatives`.
  Word choose(Word alternatives, Site site = Site::here()) {
    return step({.kind = Kind::choice, .operand = alternatives, .site = site});
  }
  /// Fails the program unless `holds`.
  void check(bool holds, const char* message, Site site = Site::here()) {
    if (!holds) fail(message, site);
  }

 private:
  Word update(Update how, Location where, Word operand, Ordering order, Site site) {
    return step({.kind = Kind::update_read,
                 .order = order,
                 .update = how,
                 .location = where,
                 .operand = operand,
                 .site = site});
  }
  template <class T>
  static T or_end(std::optional<T> result) {
    if (!result) end();
    return *result;
  }
  [[noreturn]] static void end();
  friend class Explorer;
  Word step(const Operation& op);
  Word step_faultily(Operation op);
  void make_up();
  [[noreturn]] void fail(const char* message, Site site);
  bool is_in_past() const { return recalled_ < past_.size(); }

  Explorer* explorer_ = nullptr;
  Beginning* beginning_ = nullptr;  // begin.hpp
  std::span<const Word> past_{};    // what it has seen before anything is explored
  std::size_t recalled_ = 0;
  unsigned id_;
  std::int16_t next_ = 0;  // how many of its events it has passed in this run
  bool is_over_ = false;   // this run
  std::optional<Operation> late_{};
};

struct Program {
  std::string name;
  unsigned threads = 1;
  Memory memory{};
  std::function<void(Thread&)> body{};  ///< of every participant; told apart by id()
  /// What is wrong with a complete execution, nullptr if nothing is; may be empty.
  std::function<const char*(const Graph&)> at_end{};
  /// By participant: what it has seen before anything is explored (begin.hpp).
  std::vector<std::vector<Word>> past{};
};

}  // namespace muster::check
