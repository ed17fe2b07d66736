// SPDX-License-Identifier: BSD-3-Clause
// What participants do, on their fibres. A participant's clock may run a few nanoseconds ahead of
// the engine's until its next operation that has to wait: hits and stores cost no switch.
#include <algorithm>
#include <utility>

#include "machine/error.hpp"
#include "sim/engine.hpp"
#include "sim/recorder.hpp"

namespace muster::sim {

void Engine::start(unsigned participant, std::function<void()> body, Time after) {
  Core& core = cores_[participant];
  core.fibre = std::make_unique<Fibre>(pool_, [this, participant, body = std::move(body)] {
    try {
      if (!abandoned_) body();
    } catch (const boost::context::detail::forced_unwind&) {
      throw;
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
    }
    cores_[participant].doing = Doing::ended;
    --running_;
  });
  ++running_;
  core.clock = now_;
  resume(participant, now_ + after);
}

/// What it does is set before: what it has asked for may have ended that already.
void Engine::block(unsigned participant) {
  if (!abandoned_) cores_[participant].fibre->leave();
}

void Engine::drain(unsigned participant, std::size_t room_for) {
  Core& core = cores_[participant];
  if (abandoned_ || core.stores.size() <= room_for) return;
  core.room_for = room_for;
  core.doing = Doing::draining;
  block(participant);
}

Word Engine::load(unsigned participant, const Line& line) {
  Core& core = cores_[participant];
  if (abandoned_) return line.value;
  const StoreBuffer::Entry* own = core.stores.forward(line);
  if (own != nullptr || present(line, participant)) {
    core.clock += hit_;
    return own != nullptr ? own->value : line.value;
  }
  core.line = &lines_[line.index];
  core.doing = Doing::loading;
  if (!is_on_its_way(core, line)) request(participant, *core.line, Purpose::load, core.clock);
  block(participant);
  return core.result;
}

void Engine::expect_load(unsigned participant, const Line& line) {
  Core& core = cores_[participant];
  std::vector<const Line*>& reading = core.scan.reading;
  if (abandoned_ || present(line, participant) || core.stores.forward(line) != nullptr) return;
  if (reading.size() >= store_overlap_ || is_on_its_way(core, line)) return;
  reading.push_back(&line);
  request(participant, lines_[line.index], Purpose::scan, core.clock);
}

void Engine::store(unsigned participant, Line& line, Word value) {
  Core& core = cores_[participant];
  if (abandoned_) return;
  core.clock += store_gap_;
  if (recorder_ != nullptr) recorder_->stored(participant, line, core.clock);
  if (core.stores.full()) drain(participant, core.stores.size() - 1);
  if (abandoned_) return;
  core.stores.push(line, value);
  request_stores(participant);
  if (!mechanisms_.has(Mechanism::store_buffer)) drain(participant, 0);
}

Word Engine::update(unsigned participant, Line& line, Update kind, Word operand, Word expected) {
  Core& core = cores_[participant];
  drain(participant, 0);  // an atomic operation is ordered after the core's own stores
  if (abandoned_) return expected;
  const Time begin = core.clock;
  core.line = &line;
  core.kind = kind;
  core.operand = operand;
  core.expected = expected;
  core.doing = Doing::updating;
  if (owns(line, participant)) {
    finish_locally(participant, line, Purpose::update, std::max(now_, begin) + rmw_local_);
  } else if (ll_sc_) {
    queue_.push(begin, EventKind::reserve, participant);
  } else {
    request(participant, line, Purpose::update, begin);
  }
  block(participant);
  if (recorder_ != nullptr) recorder_->updated(participant, line, begin, core.clock);
  return core.result;
}

bool Engine::await(unsigned participant, Line& line, Test test) {
  Core& core = cores_[participant];
  if (abandoned_) return false;
  const Time begin = core.clock;
  if (run_ahead_ > 0) awaits(participant, line);
  const StoreBuffer::Entry* own = core.stores.forward(line);
  if ((own != nullptr || present(line, participant)) &&
      test(own != nullptr ? own->value : line.value)) {
    core.clock += hit_;
    if (run_ahead_ > 0) run_ahead_from(participant, line, core.clock);
  } else {
    core.line = &line;
    core.test = test;
    core.doing = Doing::awaiting;
    look(participant);
    block(participant);
  }
  if (run_ahead_ > 0) core.known[&line].ended_at = line.committed_at;
  if (recorder_ != nullptr) recorder_->awaited(participant, line, begin, core.clock);
  return !abandoned_;
}

std::size_t Engine::await_set(unsigned participant, std::span<Line* const> set, Test test, bool any,
                              std::size_t from) {
  Core& core = cores_[participant];
  Scan& s = core.scan;
  core.test = test;
  if (s.waiters.size() < set.size()) {
    s.waiters.resize(set.size());
    for (Waiter& waiter : s.waiters) waiter.participant = participant;
  }
  s.set = set;
  s.from = from;
  s.outstanding = 0;
  s.any = any;
  s.begin_pass();
  s.waiting = false;
  core.doing = Doing::scanning;
  const Time begin = core.clock;
  scan(participant);
  block(participant);
  if (recorder_ != nullptr) {
    recorder_->awaited_set(participant, any ? set.subspan(core.result, 1) : set, begin, core.clock);
  }
  return abandoned_ ? no_cell : core.result;
}

bool Engine::await_all(unsigned participant, std::span<Line* const> set, Test test) {
  if (abandoned_) return false;
  return set.empty() || await_set(participant, set, test, false, 0) != no_cell;
}

std::size_t Engine::await_any(unsigned participant, std::span<Line* const> set, Test test,
                              std::size_t from) {
  if (abandoned_) return no_cell;
  return await_set(participant, set, test, true, from);
}

void Engine::touch(unsigned participant, std::uint64_t address, bool writes) {
  Core& core = cores_[participant];
  if (abandoned_) return;
  if (data_.is_private(participant, address)) {
    core.clock = data_.access(participant, address, writes, core.clock);
    return;
  }
  // What others see has to happen in the order of time: the clock may be ahead of it.
  if (core.clock > now_) delay(participant, 1);
  if (abandoned_) return;
  delay(participant, data_.access(participant, address, writes, core.clock) - core.clock);
}

void Engine::delay(unsigned participant, Time duration) {
  if (abandoned_ || duration <= 0) return;
  cores_[participant].doing = Doing::delayed;
  resume(participant, cores_[participant].clock + duration);
  block(participant);
}

/// Lets every fibre come to its end: waits return false, and nothing blocks any more.
void Engine::abandon() {
  abandoned_ = true;
  queue_.clear();
  for (Core& core : cores_) {
    while (core.fibre != nullptr && !core.fibre->ended()) core.fibre->resume();
  }
}

std::string Engine::who_waits() const {
  std::string text;
  unsigned named = 0;
  for (unsigned p = 0; p < cores_.size(); ++p) {
    const Core& core = cores_[p];
    if (core.doing != Doing::awaiting && core.doing != Doing::scanning) continue;
    if (++named > 8) return text + ", ...";
    if (!text.empty()) text += ", ";
    text += "participant " + std::to_string(p) + " for ";
    if (core.doing == Doing::awaiting) {
      text += "cell " + std::to_string(core.line->index) + " (" + std::to_string(core.line->value) +
              ")";
    } else {
      unsigned unready = 0;
      for (const Line* line : core.scan.set) unready += core.test(line->value) ? 0 : 1;
      text += std::to_string(unready) + " of " + std::to_string(core.scan.set.size()) + " cells";
    }
  }
  return text.empty() ? "nobody" : text;
}

}  // namespace muster::sim
