// SPDX-License-Identifier: BSD-3-Clause
#include "sim/engine.hpp"

#include <algorithm>

#include "machine/error.hpp"
#include "sim/recorder.hpp"

namespace muster::sim {
namespace {

Geometry without_distances(Geometry geometry) {
  geometry.between_.assign(geometry.between_.size(), geometry.between(0, 0));
  geometry.inner_.clear();
  return geometry;
}

unsigned count_of(bool on, double value) { return on ? static_cast<unsigned>(value) : 1; }

}  // namespace

Engine::Engine(const Geometry& geometry, const Parameters& parameters, Mechanisms mechanisms,
               std::uint64_t seed, std::size_t lines, StackPool& pool)
    : geometry_(mechanisms.has(Mechanism::distance_classes) ? geometry
                                                            : without_distances(geometry)),
      mechanisms_(mechanisms),
      line_order_(mechanisms.has(Mechanism::line_order)),
      die_sharing_(mechanisms.has(Mechanism::die_sharing)),
      ll_sc_(mechanisms.has(Mechanism::ll_sc)),
      poll_overlap_(mechanisms.has(Mechanism::poll_overlap) ? parameters.poll_overlap : 1),
      poll_ways_(mechanisms.has(Mechanism::set_conflicts)
                     ? static_cast<std::size_t>(parameters.poll_ways)
                     : SIZE_MAX),
      set_fill_(mechanisms.has(Mechanism::set_fill) ? from_ns(parameters.set_fill_ns) : 0),
      store_overlap_(count_of(mechanisms.has(Mechanism::store_overlap), parameters.store_overlap)),
      owner_hold_(mechanisms.has(Mechanism::owner_hold) && parameters.owner_hold >= 0.5),
      run_ahead_(mechanisms.has(Mechanism::run_ahead)
                     ? static_cast<std::size_t>(parameters.run_ahead)
                     : 0),
      home_way_(mechanisms.has(Mechanism::home_way) && parameters.home_way >= 0.5),
      hit_(from_ns(parameters.hit_ns)),
      load_gap_(from_ns(parameters.load_gap_ns)),
      store_gap_(from_ns(parameters.store_gap_ns)),
      rmw_local_(from_ns(parameters.rmw_local_ns)),
      poll_turn_(mechanisms.has(Mechanism::poll_turn) ? from_ns(parameters.poll_turn_ns) : 0),
      message_(mechanisms.has(Mechanism::call_cost) ? from_ns(parameters.message_ns) : 0),
      memory_(from_ns(parameters.memory_ns)),
      line_data_(mechanisms.has(Mechanism::line_data) ? from_ns(parameters.line_data_ns) : 0),
      held_until_(owner_hold_ ? lines : 0, 0),
      agents_(geometry.dies(),
              mechanisms.has(Mechanism::die_agent) ? from_ns(parameters.agent_occupancy_ns) : 0),
      reads_(lines, geometry.dies(),
             mechanisms.has(Mechanism::read_queues) ? from_ns(parameters.read_occupancy_ns) : 0),
      data_(geometry_, parameters, mechanisms),
      random_(seed),
      lines_(lines),
      copies_(lines, geometry.participants()),
      pool_(pool) {
  for (std::size_t i = 0; i < lines; ++i) lines_[i].index = static_cast<std::uint32_t>(i);
  const auto entries = static_cast<unsigned>(parameters.store_entries);
  for (unsigned p = 0; p < geometry.participants(); ++p) {
    cores_.emplace_back(entries).waiter.participant = p;
  }
}

Engine::~Engine() = default;

// Transactions ------------------------------------------------------------------------------------

std::uint32_t Engine::open(unsigned participant, Line& line, Purpose purpose) {
  std::uint32_t index = free_transaction_;
  if (index == nobody) {
    index = static_cast<std::uint32_t>(transactions_.size());
    transactions_.emplace_back();
  } else {
    free_transaction_ = transactions_[index].next_free;
  }
  transactions_[index] = {&line, participant, purpose, false, 0, nobody};
  return index;
}

void Engine::request(unsigned participant, Line& line, Purpose purpose, Time at) {
  const unsigned die = geometry_.die_of(participant);
  const bool reads = purpose <= Purpose::reserve;
  const std::uint32_t index = open(participant, line, purpose);
  const Time begin = agents_.serve(die, at);
  Time latency = 0;  // 0: the request does not leave the die
  if ((reads ? line.sources : line.holders) == 0) {
    if (line.home != die) latency = geometry_.between(die, line.home);
  } else if (reads) {
    if ((line.sources & die_bit(die)) == 0) {
      latency = way_to(geometry_.nearest(line.sources, die), line, die);
    }
  } else if (line.holders != die_bit(die)) {
    latency = way_to_all(line, die);
  }
  if (latency == 0 && owner_hold_ && line.owner != nobody && line.owner != participant) {
    latency = geometry_.inside(participant, line.owner);
  }
  if (latency == 0) {
    serve(index, begin);
  } else {
    transactions_[index].arrived = true;
    queue_.push(begin + latency / 2, EventKind::arrive, index);
  }
}

/// The core owns the line already: nobody else has to know.
void Engine::finish_locally(unsigned participant, Line& line, Purpose purpose, Time at) {
  const std::uint32_t index = open(participant, line, purpose);
  line.free_at = std::max(line.free_at, at);
  transactions_[index].served_at = at;
  queue_.push(at, EventKind::done, index);
}

/// At the line's order, on its way to the owner.
void Engine::arrive(std::uint32_t index) {
  const Transaction& t = transactions_[index];
  if (owner_hold_ && t.line->owner != nobody && t.line->owner != t.participant &&
      held_until_[t.line->index] > now_) {
    queue_.push(held_until_[t.line->index], EventKind::arrive, index);
  } else {
    serve(index, now_);
  }
}

void Engine::serve(std::uint32_t index, Time at) {
  Transaction& t = transactions_[index];
  const Time done_at = t.purpose <= Purpose::reserve ? serve_read(t, at) : serve_ownership(t, at);
  queue_.push(done_at, EventKind::done, index);
}

Time Engine::serve_read(Transaction& t, Time at) {
  Line& line = *t.line;
  const unsigned die = geometry_.die_of(t.participant);
  const Time inside = geometry_.between(die, die);
  Time begin = in_order(line, at);
  Time done_at = 0;
  if (line.sources == 0) {  // memory
    if (line.home != die) begin = std::max(begin, agents_.serve(line.home, at));
    done_at = begin + rest(geometry_.between(die, line.home), t) + memory_;
    if (die_sharing_) reads_.fill(line.index, die, done_at - inside, now_);
  } else if ((line.sources & die_bit(die)) != 0) {  // its own die
    begin = reads_.serve(line.index, die, begin, now_);
    done_at = begin +
              rest_inside(line.owner != nobody && geometry_.die_of(line.owner) == die
                              ? geometry_.inside(t.participant, line.owner)
                              : inside,
                          t) +
              line_data_;
  } else {  // another die
    const unsigned source = geometry_.nearest(line.sources, die);
    begin = std::max(begin, agents_.serve(source, at));
    begin = reads_.serve(line.index, source, begin, now_);
    done_at = begin + rest(way_to(source, line, die), t) + line_data_;
    if (die_sharing_) reads_.fill(line.index, die, done_at - inside, now_);
  }
  line.holders |= die_bit(die);
  if (die_sharing_) line.sources |= die_bit(die);
  line.owner = nobody;
  t.served_at = begin;
  return done_at;
}

Time Engine::serve_ownership(Transaction& t, Time at) {
  Line& line = *t.line;
  const unsigned die = geometry_.die_of(t.participant);
  Time begin = in_order(line, at);
  Time done_at = 0;
  Time way = geometry_.between(die, die);
  if (line.holders == 0) {  // memory
    if (line.home != die) begin = std::max(begin, agents_.serve(line.home, at));
    way = geometry_.between(die, line.home);
    done_at = begin + rest(way, t) + memory_;
  } else {
    for (DieSet rest_of = line.holders; rest_of != 0; rest_of &= rest_of - 1) {
      const auto holder = first_die(rest_of);
      begin = std::max(begin, reads_.free_at(line.index, holder));
      if (holder != die) begin = std::max(begin, agents_.serve(holder, at));
    }
    if (line.holders != die_bit(die)) {
      way = way_to_all(line, die);
      done_at = begin + rest(way, t);
    } else {
      if (line.owner != nobody && line.owner != t.participant) {
        way = geometry_.inside(t.participant, line.owner);
      }
      done_at = begin + rest_inside(way, t);
    }
    // Who has a copy that nobody changes needs the permission only.
    const bool others = line.owner != nobody && line.owner != t.participant;
    if (others || !present(line, t.participant)) done_at += line_data_;
  }
  hold(line, done_at, way);
  line.free_at = done_at;
  line.owner = t.participant;
  line.holders = line.sources = die_bit(die);
  t.served_at = begin;
  return done_at;
}

void Engine::done(std::uint32_t index) {
  Transaction& t = transactions_[index];
  t.next_free =
      free_transaction_;  // what follows may open others: nothing is read of it after that
  free_transaction_ = index;
  Line& line = *t.line;
  const std::uint32_t participant = t.participant;
  const Purpose purpose = t.purpose;
  Core& core = cores_[participant];
  const bool stale = line.committed_at > t.served_at;  // overtaken: the copy is invalid already
  if (purpose <= Purpose::reserve && !stale) set_present(line, participant);
  switch (purpose) {
    case Purpose::load:
      core.result = line.value;
      resume(participant, now_);
      break;
    case Purpose::poll:
      looked(participant, stale);
      break;
    case Purpose::ahead:
      std::erase(core.ahead, &line);
      if (core.awaits_ahead && core.line == &line) {
        core.awaits_ahead = false;
        looked(participant, stale);
      }
      break;
    case Purpose::scan:
      scan_read(participant, line, stale);
      break;
    case Purpose::reserve:
      if (stale) {
        queue_.push(now_ + hit_, EventKind::reserve, participant);
      } else {
        conditional_store(participant, line);
      }
      break;
    case Purpose::update:
      apply_update(participant, line);
      break;
    case Purpose::store:
      store_granted(participant, line);
      break;
  }
}

/// Everybody's copy becomes invalid; whoever polls the line looks again, in any order.
void Engine::commit(Line& line, unsigned participant, Word value) {
  line.value = value;
  line.committed_at = now_;
  line.writer = participant;
  copies_.only(line.index, participant);
  if (recorder_ != nullptr) recorder_->committed(line, participant, now_);
  if (line.waiters == nullptr) return;
  woken_.clear();
  while (line.waiters != nullptr) {
    woken_.push_back(line.waiters->participant);
    Line::unwatch(*line.waiters);
  }
  random_.shuffle(woken_);
  for (const std::uint32_t woken : woken_) {
    Core& core = cores_[woken];
    EventKind kind = EventKind::look;
    if (core.doing == Doing::scanning) {
      if (!core.scan.waiting) continue;
      core.scan.waiting = false;
      kind = EventKind::scan;
    }
    const Time turn =
        poll_turn_ > 0 ? static_cast<Time>(random_.unit() * static_cast<double>(poll_turn_)) : 0;
    queue_.push(now_ + hit_ + turn, kind, woken);
  }
}

// Waiting for one cell ----------------------------------------------------------------------------

void Engine::look(unsigned participant) {
  Core& core = cores_[participant];
  Line& line = *core.line;
  const StoreBuffer::Entry* own = core.stores.forward(line);
  if (own == nullptr && !present(line, participant)) {
    if (std::find(core.ahead.begin(), core.ahead.end(), &line) != core.ahead.end()) {
      core.awaits_ahead = true;
      return;
    }
    request(participant, line, Purpose::poll, std::max(now_, core.clock));
    if (run_ahead_ > 0) run_ahead_from(participant, line, std::max(now_, core.clock));
  } else if (core.test(own != nullptr ? own->value : line.value)) {
    resume(participant, std::max(now_, core.clock) + hit_);
  } else {
    line.watch(core.waiter);
  }
}

/// Remembers the order in which a participant waits for one cell after another.
void Engine::awaits(unsigned participant, Line& line) {
  Core& core = cores_[participant];
  if (core.awaited != nullptr) core.known[core.awaited].next = &line;
  core.awaited = &line;
}

/// Goes on to what was waited for next the last time, before this wait is over: a core that has
/// seen a loop end at the first look expects it to.
void Engine::run_ahead_from(unsigned participant, const Line& line, Time at) {
  Core& core = cores_[participant];
  core.ahead_to = &line;
  const Time due = std::max(now_, at + load_gap_);
  if (due >= core.ahead_at) return;
  core.ahead_at = due;
  queue_.push(core.ahead_at, EventKind::ahead, participant);
}

/// One load after another. Where the old value is still there it sees that the loop does not end,
/// and takes the loop's turn before it looks again.
void Engine::run_ahead(unsigned participant) {
  Core& core = cores_[participant];
  if (core.ahead_at != now_) return;  // an event that an earlier one took the place of
  core.ahead_at = never;
  if (core.doing != Doing::awaiting || core.waiter.line != nullptr) return;
  for (std::size_t n = 0; n < run_ahead_ && core.ahead.size() < run_ahead_; ++n) {
    Line* const next = core.known[core.ahead_to].next;
    if (next == nullptr || next == core.line) return;
    const bool old = present(*next, participant) && next->committed_at == core.known[next].ended_at;
    if (old && core.stores.forward(*next) == nullptr) {
      run_ahead_from(participant, *core.ahead_to, now_ + hit_ + poll_turn_);
      return;
    }
    core.ahead_to = next;
    if (present(*next, participant) || core.stores.forward(*next) != nullptr ||
        std::find(core.ahead.begin(), core.ahead.end(), next) != core.ahead.end()) {
      continue;
    }
    core.ahead.push_back(next);
    request(participant, *next, Purpose::ahead, now_);
    run_ahead_from(participant, *next, now_);
    return;
  }
}

void Engine::looked(unsigned participant, bool stale) {
  Core& core = cores_[participant];
  if (core.test(core.line->value)) {
    resume(participant, now_ + hit_);
  } else if (stale) {
    queue_.push(now_ + hit_, EventKind::look, participant);
  } else {
    core.line->watch(core.waiter);
  }
}

// Read-modify-writes ------------------------------------------------------------------------------

void Engine::reserve(unsigned participant) {
  Core& core = cores_[participant];
  if (present(*core.line, participant)) {
    conditional_store(participant, *core.line);
  } else {
    request(participant, *core.line, Purpose::reserve, now_);
  }
}

/// The reservation holds unless somebody's ownership is on its way. Who wins is decided here, when
/// the store-conditional is issued: its request takes its place in the line's order at once.
void Engine::conditional_store(unsigned participant, Line& line) {
  Core& core = cores_[participant];
  if (core.kind == Update::compare_exchange && line.value != core.expected) {
    core.result = line.value;
    resume(participant, now_);
  } else if (line.free_at > now_) {
    queue_.push(line.free_at + hit_, EventKind::reserve, participant);
  } else if (owns(line, participant)) {
    finish_locally(participant, line, Purpose::update, now_ + rmw_local_);
  } else {
    const std::uint32_t index = open(participant, line, Purpose::update);
    serve(index, agents_.serve(geometry_.die_of(participant), now_));
  }
}

void Engine::apply_update(unsigned participant, Line& line) {
  Core& core = cores_[participant];
  core.result = line.value;
  switch (core.kind) {
    case Update::add:
      commit(line, participant, line.value + core.operand);
      break;
    case Update::exchange:
      commit(line, participant, core.operand);
      break;
    case Update::compare_exchange:  // one that fails has taken everybody's copy all the same
      commit(line, participant, line.value == core.expected ? core.operand : line.value);
      break;
  }
  resume(participant, now_);
}

// Stores ------------------------------------------------------------------------------------------

void Engine::request_stores(unsigned participant) {
  Core& core = cores_[participant];
  const Time at = std::max(now_, core.clock);
  for (unsigned n = 0; n < core.stores.size() && core.requested_stores < store_overlap_; ++n) {
    StoreBuffer::Entry& entry = core.stores.at(n);
    // A second store to the same line waits for the first one's and then hits.
    if (entry.state != StoreBuffer::State::queued || core.stores.stored_before(*entry.line, n)) {
      continue;
    }
    entry.state = StoreBuffer::State::requested;
    ++core.requested_stores;
    if (owns(*entry.line, participant)) {
      finish_locally(participant, *entry.line, Purpose::store, at + hit_);
    } else {
      request(participant, *entry.line, Purpose::store, at);
    }
  }
}

void Engine::store_granted(unsigned participant, Line& line) {
  Core& core = cores_[participant];
  --core.requested_stores;
  StoreBuffer::Entry& front = core.stores.front();
  if (front.line == &line && front.state == StoreBuffer::State::requested) {
    commit(line, participant, front.value);
    core.stores.pop();
  } else {
    for (unsigned n = 1; n < core.stores.size(); ++n) {
      StoreBuffer::Entry& entry = core.stores.at(n);
      if (entry.line != &line || entry.state != StoreBuffer::State::requested) continue;
      entry.state = StoreBuffer::State::granted;
      break;
    }
  }
  commit_stores(participant);
}

/// In program order. Who got the line while an older store was pending has taken it away again.
void Engine::commit_stores(unsigned participant) {
  Core& core = cores_[participant];
  while (!core.stores.empty() && core.stores.front().state == StoreBuffer::State::granted) {
    StoreBuffer::Entry& front = core.stores.front();
    if (front.line->owner != participant) {
      front.state = StoreBuffer::State::queued;
      break;
    }
    commit(*front.line, participant, front.value);
    core.stores.pop();
  }
  request_stores(participant);
  if (core.doing == Doing::draining && core.stores.size() <= core.room_for) {
    core.doing = Doing::running;  // as good as: once is enough
    resume(participant, now_);
  }
}

/// Whoever waits goes on, once.
void Engine::resume(unsigned participant, Time at) {
  Core& core = cores_[participant];
  if (core.resumes) {
    throw Error(Status::system, "the model is wrong: participant " + std::to_string(participant) +
                                    "'s wait ended twice; please report the command");
  }
  core.resumes = true;
  queue_.push(at, EventKind::resume, participant);
}

void Engine::dispatch(Event event) {
  switch (event.kind) {
    case EventKind::arrive:
      arrive(event.of);
      break;
    case EventKind::done:
      done(event.of);
      break;
    case EventKind::look:
      look(event.of);
      break;
    case EventKind::scan:
      scan(event.of);
      break;
    case EventKind::reserve:
      reserve(event.of);
      break;
    case EventKind::ahead:
      run_ahead(event.of);
      break;
    case EventKind::resume: {
      Core& core = cores_[event.of];
      core.clock = std::max(core.clock, now_);
      core.doing = Doing::running;
      core.resumes = false;
      core.fibre->resume();
      break;
    }
  }
}

void Engine::run(std::uint64_t events_max) {
  try {
    while (!queue_.empty()) {
      const Event event = queue_.pop();
      now_ = event.time;
      ++events_;
      dispatch(event);
      if (thrown_ || events_ > events_max || now_ > EventQueue::time_max) break;
    }
  } catch (const Error&) {  // of the model itself: what participants throw is caught before
    thrown_ = std::current_exception();
  }
  if (running_ == 0 && !thrown_) return;
  const bool deadlock = queue_.empty();
  const std::string waiting = who_waits();
  abandon();
  if (thrown_) std::rethrow_exception(thrown_);
  throw Error(Status::system,
              (deadlock ? "all wait for each other: "
                        : "no end after " + std::to_string(events_) + " events; waiting: ") +
                  waiting);
}

}  // namespace muster::sim
