// SPDX-License-Identifier: BSD-3-Clause
// The explorer: visits every consistent execution of a program exactly once, in memory linear in
// the program's size and without remembering what it has visited.
//
// Source: Kokologiannakis, Marmanis, Gladstein and Vafeiadis, "Truly stateless, optimal dynamic
// partial order reduction", POPL 2022 (TruSt), algorithm 1: Visit, VisitCOs, IsMaximallyAdded.
// Kept from it are the names and the rule; new are (1) that a participant is no fibre but is run
// from its start, and goes on in place as long as there is one way to go on; (2) waits, see below.
//
// Waits. A wait is a load that is added only once a store satisfies it: until then its participant
// is put aside, after all others. It may read a store that does not satisfy, and is stuck then,
// only if that is the newest one: reading an older one leads nowhere. If at the end nobody can go
// on and whoever is left waits where the newest store does not satisfy, the program hangs. Waiting
// for any of several locations is a pass of ordinary loads over them, begun once one may be
// satisfied.
//
// Limits: bounded programs only, others are found to be endless; no load buffering (an execution
// in which program order and reads-from form a cycle is not explored); no SC accesses;
// compare-exchange never fails spuriously; at most 8 participants and 64 seq_cst fences.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/consistency.hpp"
#include "check/graph.hpp"
#include "check/program.hpp"

namespace muster::check {

enum class Verdict : std::uint8_t { holds, violated, hang, race, endless };
const char* verdict_name(Verdict verdict);

/// What can be wrong with an access.
enum class Fault : std::uint8_t {
  none,
  drop,  ///< nothing is stored; an update reads
  tear,  ///< an update is a load and a store
  skip,  ///< a wait ends at once
  late,  ///< a store comes after the participant's next access
};
const char* fault_name(Fault fault);

/// A fault of all accesses of that kind at one place of the source.
struct Spoiled {
  Site site{nullptr, 0};
  Fault fault = Fault::none;
};

struct Options {
  bool stop_at_violation = true;            ///< else: count on; only the first is kept
  bool hangs_allowed_after_choice = false;  ///< who chose anything but 0 may leave others waiting
  /// Of a participant: with more the program is endless, such as one that looks again and again
  /// instead of waiting. A barrier for 8 takes up to 53 in an episode; 100 episodes are the most.
  int events_max = 6000;
  Flaw flaw = Flaw::none;
  Spoiled spoiled{};
  std::function<void(const Graph&)> on_execution{};  ///< each complete one
  std::function<void(const Graph&)> on_hang{};
  /// Called now and then with the executions so far; false ends the exploration.
  std::function<bool(std::uint64_t executions)> on_progress{};
};

struct Violation {
  std::string message;
  Site site{nullptr, 0};                 ///< of what failed, if it has one
  std::optional<EventId> first, second;  ///< a race: the two accesses
  Graph graph;
  struct Waiting {
    unsigned thread;
    std::vector<Location> locations;
    Site site;
  };
  std::vector<Waiting> waiting{};  ///< a hang: who waits for what
};

struct Result {
  Verdict verdict = Verdict::holds;
  std::uint64_t executions = 0;  ///< complete ones
  std::uint64_t blocked = 0;     ///< ended with somebody waiting who has missed the store
  std::uint64_t hangs = 0;
  std::uint64_t races = 0;
  bool finished = true;  ///< on_progress did not end it
  std::optional<Violation> violation;
};

class Explorer {
 public:
  /// The program must outlive the explorer. Throws Error(invalid) for more than max_threads.
  Explorer(const Program& program, Options options);

  /// All executions, or up to the first violation. A program that never completes is violated.
  /// Throws Error(invalid) if a body is not deterministic.
  Result explore();

 private:
  friend class Thread;
  struct Suspend {};  // thrown through a body: this run of it is over

  Result explore_on_this_stack();
  bool is_spoiled(const Operation& op) const;
  Word step(Thread& thread, const Operation& op);
  std::optional<Word> await(Thread& thread, const Operation& op, const Predicate& ready);
  std::optional<std::size_t> await_first(Thread& thread, std::span<const Awaitable> any,
                                         std::size_t first);
  std::uint16_t intern(std::span<const Awaitable> any);
  void note(Verdict verdict, Violation violation);
  [[noreturn]] void fail(Verdict verdict, Violation violation);

  void visit();
  void visit_alternative();
  int next_thread();
  void run(unsigned thread);
  void end_of_execution();
  void end_with(Verdict verdict, Violation violation);
  bool hangs() const;

  Word replay(Thread& thread, const Operation& op) const;

  // Adding an event (extend.cpp).
  void add_local(unsigned thread, const Operation& op);
  void add_choice(unsigned thread, const Operation& op);
  void add_load(unsigned thread, const Operation& op);
  bool add_await(unsigned thread, const Operation& op);
  void add_store(unsigned thread, const Operation& op);
  void add_update(unsigned thread, const Operation& op);
  EventId append_update_write(EventId read);
  void add_update_write(EventId read);

  EventId append_read(unsigned thread, const Operation& op, EventId from);
  bool consistent(std::initializer_list<EventId> added) const;
  int oldest_readable(unsigned thread, Location location) const;
  bool may_read(unsigned thread, const Operation& op, EventId from);
  bool may_satisfy(unsigned thread, std::uint16_t wait);
  bool pass_read_newest(unsigned thread) const;

  // Backward revisits (revisit.cpp).
  void revisit(EventId write);
  void visit_revisited(EventId read, EventId write);
  void place_revisited(Graph& graph, EventId read, EventId write, int position);
  bool maximally_added(EventId id, EventId write) const;

  void expect_alike(const Operation& op);

  const Program& program_;
  Options options_;
  Result result_;
  Graph* graph_ = nullptr;
  bool abandoned_ = false;  // the current path ended in a violation
  bool stopped_ = false;
  std::uint64_t visits_ = 0;
  std::vector<std::vector<Awaitable>> waits_;  // each kind of wait once
  enum class Use : std::uint8_t { none, plain, atomic };
  std::vector<Use> uses_;  // by location
  std::vector<std::unique_ptr<Graph>> spare_;
};

}  // namespace muster::check
