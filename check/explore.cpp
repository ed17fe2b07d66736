// SPDX-License-Identifier: BSD-3-Clause
#include "check/explore.hpp"

#include <pthread.h>

#include <algorithm>
#include <future>
#include <stdexcept>
#include <utility>

#include "check/begin.hpp"
#include "check/checked.hpp"

namespace muster::check {

const char* verdict_name(Verdict verdict) {
  constexpr const char* names[] = {"holds", "violated", "hang", "race", "endless"};
  return names[static_cast<int>(verdict)];
}

const char* fault_name(Fault fault) {
  constexpr const char* names[] = {"none", "drop", "tear", "skip", "late"};
  return names[static_cast<int>(fault)];
}

bool Explorer::is_spoiled(const Operation& op) const {
  const auto& [site, fault] = options_.spoiled;
  if (fault == Fault::none || !same_site(op.site, site)) return false;
  const bool updates = op.kind == Kind::update_read;
  switch (fault) {
    case Fault::drop:
      return updates || op.kind == Kind::store;
    case Fault::tear:
      return updates;
    case Fault::late:
      return op.kind == Kind::store;
    default:
      return op.kind == Kind::await;
  }
}

Thread::Thread(Explorer& explorer, unsigned id) : explorer_(&explorer), id_(id) {
  const auto& past = explorer.program_.past;
  if (id < past.size()) past_ = past[id];
}

void Thread::end() { throw Explorer::Suspend{}; }

Word Thread::step(const Operation& op) {
  go_on();
  if (is_in_past()) return past_[recalled_++];
  if (beginning_ != nullptr) return beginning_->step(op);
  if (explorer_->options_.spoiled.fault == Fault::late && explorer_->is_spoiled(op)) {
    make_up();
    late_ = op;
    return 0;
  }
  const Word seen = explorer_->is_spoiled(op) ? step_faultily(op) : explorer_->step(*this, op);
  if (op.kind != Kind::choice) make_up();
  return seen;
}

/// The store that is late.
void Thread::make_up() {
  if (!late_) return;
  const Operation op = *late_;
  late_.reset();
  explorer_->step(*this, op);
}

// What does nothing is an event, too: a loop of nothing else is endless.
Word Thread::step_faultily(Operation op) {
  switch (explorer_->options_.spoiled.fault) {
    case Fault::drop:
      if (op.kind == Kind::store) return choose(1, op.site);
      return load(op.location, op.order, op.site);
    case Fault::tear: {
      const Word seen = load(op.location, op.order, op.site);
      if (op.update == Update::compare_exchange && seen != op.expected) return seen;
      op.operand = op.written_over(seen);
      op.kind = Kind::store;
      op.update = Update::none;
      explorer_->step(*this, op);
      return seen;
    }
    default:
      return choose(1, op.site);
  }
}

void Thread::fail(const char* message, Site site) {
  go_on();
  if (beginning_ != nullptr) throw Error(Status::invalid, message);
  explorer_->fail(Verdict::violated, {message, site, {}, {}, *explorer_->graph_});
}

std::optional<Word> Thread::await_or_over(Location where, const Predicate& ready, Ordering order,
                                          Site site) {
  go_on();
  if (is_in_past()) return past_[recalled_++];
  if (beginning_ != nullptr) return beginning_->await(where, ready);
  const Operation op{.kind = Kind::await, .order = order, .location = where, .site = site};
  if (explorer_->is_spoiled(op)) return step(op);
  const std::optional<Word> seen = explorer_->await(*this, op, ready);
  if (seen) make_up();
  return seen;
}

std::optional<std::size_t> Thread::await_first_or_over(const std::vector<Awaitable>& any,
                                                       std::size_t first) {
  go_on();
  if (is_in_past()) return past_[recalled_++];
  if (beginning_ != nullptr) return beginning_->await_first(any, first);
  const Operation op{.kind = Kind::await, .site = any.front().site};
  if (explorer_->is_spoiled(op)) {
    step(op);
    return first;
  }
  const std::optional<std::size_t> found = explorer_->await_first(*this, any, first);
  if (found) make_up();
  return found;
}

Explorer::Explorer(const Program& program, Options options)
    : program_(program), options_(std::move(options)) {
  if (program.threads == 0 || program.threads > max_threads) {
    throw Error(Status::invalid, "a checked program has 1 to 8 participants, not " +
                                     std::to_string(program.threads));
  }
}

/// An event is a level of recursion, and takes some kilobytes with a sanitizer: more than the stack
/// that a program begins with. What is not used of this one is never there.
Result Explorer::explore() {
  constexpr std::size_t stack_bytes = std::size_t{1} << 29;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  std::packaged_task<Result()> task([this] { return explore_on_this_stack(); });
  pthread_t thread{};
  const int error = pthread_create(
      &thread, &attributes,
      [](void* todo) -> void* {
        (*static_cast<std::packaged_task<Result()>*>(todo))();
        return nullptr;
      },
      &task);
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    throw Error(Status::system,
                "no thread with a stack of 512 MiB: see `ulimit -v`, or explore one program at a "
                "time, by `taskset -c 0`");
  }
  pthread_join(thread, nullptr);
  return task.get_future().get();
}

Result Explorer::explore_on_this_stack() {
  result_ = {};
  abandoned_ = stopped_ = false;
  Graph graph;
  graph.reset(program_.memory, program_.threads);
  graph_ = &graph;
  visit();
  graph_ = nullptr;
  if (result_.verdict == Verdict::holds && result_.executions == 0 && result_.finished) {
    result_.verdict = Verdict::violated;
    result_.violation = {"no execution completes", {nullptr, 0}, {}, {}, graph};
  }
  return std::move(result_);
}

void Explorer::note(Verdict verdict, Violation violation) {
  if (verdict == Verdict::race) ++result_.races;
  if (verdict == Verdict::hang) ++result_.hangs;
  if (!result_.violation) {
    result_.verdict = verdict;
    result_.violation = std::move(violation);
  }
  stopped_ = stopped_ || options_.stop_at_violation;
  abandoned_ = true;
}

void Explorer::fail(Verdict verdict, Violation violation) {
  note(verdict, std::move(violation));
  throw Suspend{};
}

// Visit of the paper: explores all executions that extend the current graph, which is left as the
// last of them; whoever calls it restores what he needs.
void Explorer::visit() {
  if ((++visits_ & 0xfff) == 0 && options_.on_progress &&
      !options_.on_progress(result_.executions)) {
    result_.finished = false;
    stopped_ = true;
  }
  while (!stopped_) {
    const int thread = next_thread();
    if (thread < 0) return end_of_execution();
    run(static_cast<unsigned>(thread));
    if (abandoned_) {
      abandoned_ = false;
      return;
    }
  }
}

// From inside a running body: the alternative just placed in the graph is explored by running
// bodies anew, before this one goes on with another alternative.
void Explorer::visit_alternative() {
  visit();
  if (stopped_) throw Suspend{};
}

// next_P of the paper: the lowest runnable participant; those at a wait come last.
int Explorer::next_thread() {
  int next = -1;
  for (unsigned t = program_.threads; t-- > 0;) {
    if (graph_->status(t) == Graph::Status::updating) return static_cast<int>(t);
    if (graph_->status(t) == Graph::Status::runnable) next = static_cast<int>(t);
  }
  for (unsigned t = 0; next < 0 && t < program_.threads; ++t) {
    if (graph_->status(t) == Graph::Status::waiting && may_satisfy(t, graph_->wait(t))) {
      next = static_cast<int>(t);
    }
  }
  return next;
}

void Explorer::run(unsigned thread) {
  Thread face(*this, thread);
  try {
    program_.body(face);
    if (face.is_over_) return;
    face.make_up();
    if (face.next_ < graph_->size(thread)) {
      throw Error(Status::invalid,
                  program_.name + ": a participant did less when it was run again");
    }
    graph_->set_status(thread, Graph::Status::done);
  } catch (const Suspend&) {            // its status says why
  } catch (const std::out_of_range&) {  // thrown by Checked::Cells
    note(Verdict::violated,
         {"an access to a cell that is not there", {nullptr, 0}, {}, {}, *graph_});
  }
}

// Whether the loads of a stuck participant's last pass all read the newest stores there are now.
bool Explorer::pass_read_newest(unsigned thread) const {
  const std::size_t loads = waits_[graph_->wait(thread)].size();
  for (int i = graph_->size(thread) - static_cast<int>(loads); i < graph_->size(thread); ++i) {
    const Event& event = graph_->at(thread, i);
    if (event.from != graph_->newest(event.op.location)) return false;
  }
  return true;
}

bool Explorer::hangs() const {
  for (unsigned t = 0; t < program_.threads; ++t) {
    if (graph_->status(t) == Graph::Status::stuck && !pass_read_newest(t)) return false;
  }
  if (!options_.hangs_allowed_after_choice) return true;
  return std::none_of(graph_->order().begin(), graph_->order().end(), [&](EventId id) {
    const Event& event = graph_->at(id);
    return event.op.kind == Kind::choice && event.read != 0;
  });
}

void Explorer::end_of_execution() {
  bool all_done = true;
  for (unsigned t = 0; t < program_.threads; ++t) {
    all_done = all_done && graph_->status(t) == Graph::Status::done;
  }
  if (all_done) {
    ++result_.executions;
    if (options_.on_execution) options_.on_execution(*graph_);
    const char* wrong = program_.at_end ? program_.at_end(*graph_) : nullptr;
    if (wrong != nullptr) end_with(Verdict::violated, {wrong, {nullptr, 0}, {}, {}, *graph_});
    return;
  }
  if (!hangs()) {
    ++result_.blocked;
    return;
  }
  if (options_.on_hang) options_.on_hang(*graph_);
  Violation violation{"nobody can go on, and no store is left that could change that",
                      {nullptr, 0},
                      {},
                      {},
                      *graph_};
  for (unsigned t = 0; t < program_.threads; ++t) {
    if (graph_->status(t) == Graph::Status::done) continue;
    const std::vector<Awaitable>& wait = waits_[graph_->wait(t)];
    violation.waiting.push_back({t, {}, wait.front().site});
    for (const Awaitable& one : wait) violation.waiting.back().locations.push_back(one.where);
  }
  end_with(Verdict::hang, std::move(violation));
}

// A violation found when the path was over anyway.
void Explorer::end_with(Verdict verdict, Violation violation) {
  note(verdict, std::move(violation));
  abandoned_ = false;
}

Word Explorer::replay(Thread& thread, const Operation& op) const {
  const Event& event = graph_->at(thread.id_, thread.next_);
  const Operation& was = event.op;
  if (was.kind != op.kind || was.update != op.update || was.location != op.location ||
      was.operand != op.operand || was.expected != op.expected || was.site.line != op.site.line) {
    throw Error(Status::invalid,
                program_.name +
                    ": a participant did something else when it was run again; it has "
                    "to be a function of what it reads");
  }
  ++thread.next_;
  return event.read;
}

/// What is not modelled: a word that is now plain, now atomic, and SC accesses.
void Explorer::expect_alike(const Operation& op) {
  if (op.location == no_location) return;
  if (op.location >= uses_.size()) uses_.resize(op.location + std::size_t{1});
  const bool is_plain = op.kind == Kind::plain_read || op.kind == Kind::plain_write;
  const Use use = is_plain ? Use::plain : Use::atomic;
  const Use before = std::exchange(uses_[op.location], use);
  if (before != Use::none && before != use) {
    throw Error(Status::invalid, program_.name + ": " + program_.memory.name(op.location) +
                                     " is accessed as an atomic and as plain data");
  }
  if (op.order > Ordering::acq_rel) {
    throw Error(Status::invalid, program_.name + ": accesses are acq_rel at most, not seq_cst");
  }
}

Word Explorer::step(Thread& thread, const Operation& op) {
  const unsigned id = thread.id_;
  const std::int16_t at = thread.next_;
  const bool again = at < graph_->size(id);
  if (again) {
    replay(thread, op);
  } else {
    if (at >= options_.events_max) {
      fail(Verdict::endless, {"a participant does not come to an end", op.site, {}, {}, *graph_});
    }
    expect_alike(op);
    switch (op.kind) {
      case Kind::load:
        add_load(id, op);
        break;
      case Kind::await:
        if (!add_await(id, op)) {
          thread.is_over_ = true;
          return 0;
        }
        break;
      case Kind::store:
        add_store(id, op);
        break;
      case Kind::update_read:
        add_update(id, op);
        break;
      case Kind::choice:
        add_choice(id, op);
        break;
      default:
        add_local(id, op);
        break;
    }
    ++thread.next_;
  }
  if (op.kind == Kind::update_read && graph_->at(id, at).is_updating()) {
    if (thread.next_ == graph_->size(id)) {  // it was revisited
      add_update_write({static_cast<std::int16_t>(id), at});
    }
    ++thread.next_;
  }
  return graph_->at(id, at).read;
}

std::optional<Word> Explorer::await(Thread& thread, const Operation& op, const Predicate& ready) {
  Operation with_wait = op;
  const bool again = thread.next_ < graph_->size(thread.id_);
  if (!again) {
    const Awaitable one{op.location, ready, op.order, op.site};
    with_wait.wait = intern({&one, 1});
  }
  const Word read = step(thread, with_wait);
  thread.is_over_ = thread.is_over_ || !graph_->at(thread.id_, thread.next_ - 1).satisfied;
  if (thread.is_over_) return {};
  return read;
}

// A pass of loads, which is started only once one of them may be satisfied.
std::optional<std::size_t> Explorer::await_first(Thread& thread, std::span<const Awaitable> any,
                                                 std::size_t first) {
  const unsigned id = thread.id_;
  const std::uint16_t wait = intern(any);
  if (thread.next_ == graph_->size(id)) {
    if (!may_satisfy(id, wait)) {
      graph_->set_status(id, Graph::Status::waiting, wait);
      thread.is_over_ = true;
      return {};
    }
    graph_->set_status(id, Graph::Status::runnable);
  }
  for (std::size_t n = 0; n < any.size(); ++n) {
    const std::size_t index = (first + n) % any.size();
    const Awaitable& one = any[index];
    const Word read = step(
        thread, {.kind = Kind::load, .order = one.order, .location = one.where, .site = one.site});
    if (one.ready(read)) return index;
  }
  graph_->set_status(id, Graph::Status::stuck, wait);
  thread.is_over_ = true;
  return {};
}

std::uint16_t Explorer::intern(std::span<const Awaitable> any) {
  const auto same = [](const Awaitable& a, const Awaitable& b) {
    return a.where == b.where && a.site.file == b.site.file && a.site.line == b.site.line &&
           a.ready == b.ready;
  };
  const auto known = std::find_if(waits_.begin(), waits_.end(), [&](const auto& wait) {
    return std::equal(any.begin(), any.end(), wait.begin(), wait.end(), same);
  });
  const auto index = static_cast<std::uint16_t>(known - waits_.begin());
  if (known == waits_.end()) waits_.emplace_back(any.begin(), any.end());
  return index;
}

}  // namespace muster::check
