// SPDX-License-Identifier: BSD-3-Clause
// How a waiting core polls a set of cells.
#include <algorithm>

#include "sim/engine.hpp"

namespace muster::sim {

/// What a pass read has come.
void Engine::scan_read(unsigned participant, const Line& line, bool stale) {
  Core& core = cores_[participant];
  Scan& s = core.scan;
  const bool of_any = std::erase(s.reading, &line) != 0;
  if (!of_any) {
    --s.outstanding;
    scan(participant);
    return;
  }
  if (core.doing == Doing::loading && core.line == &line) {
    core.result = line.value;
    resume(participant, now_);
  }
  if (core.doing != Doing::scanning || !s.any || s.waiting) return;  // of a wait that is over
  bool awaited = false;
  for (std::size_t turn = 0; turn < s.visited; ++turn) {
    if (s.known[turn] != Scan::Known::reading || s.set[s.index_of(turn)] != &line) continue;
    awaited = true;
    --s.outstanding;
    s.known[turn] = stale                   ? Scan::Known::nothing
                    : core.test(line.value) ? Scan::Known::ready
                                            : Scan::Known::unready;
    s.missed = s.missed || stale;
  }
  if (awaited) scan_any(participant);
}

/// A pass for one ready cell: cell by cell, misses overlap, and it is over as soon as one is ready
/// and all before it are known not to be.
void Engine::scan_any(unsigned participant) {
  Core& core = cores_[participant];
  Scan& s = core.scan;
  Time at = std::max(now_, core.clock);
  std::size_t ready = s.first_ready();
  while (ready == no_cell && s.visited < s.set.size()) {
    Line& line = *s.set[s.index_of(s.visited)];
    const StoreBuffer::Entry* own = core.stores.empty() ? nullptr : core.stores.forward(line);
    Scan::Known& known = s.known[s.visited];
    if (own != nullptr || present(line, participant)) {
      at += hit_;
      known = core.test(own != nullptr ? own->value : line.value) ? Scan::Known::ready
                                                                  : Scan::Known::unready;
    } else {
      if (s.outstanding >= overlap_at(s.visited)) break;
      ++s.outstanding;
      known = Scan::Known::reading;
      if (!is_on_its_way(core, line)) {
        at += load_gap_;
        s.reading.push_back(&line);
        request(participant, line, Purpose::scan, at);
      }
    }
    ++s.visited;
    ready = s.first_ready();
  }
  core.clock = at;
  if (ready != no_cell) {
    scan_is_over(participant, ready, at);
  } else if (s.visited == s.set.size() && s.outstanding == 0) {
    bool all_here = !s.missed;
    for (const Line* line : s.set) {
      all_here = all_here && (present(*line, participant) || core.stores.forward(*line) != nullptr);
    }
    if (all_here) {
      scan_waits(participant);
    } else {
      s.begin_pass();
      queue_.push(at, EventKind::scan, participant);
    }
  }
}

void Engine::scan(unsigned participant) {
  Core& core = cores_[participant];
  Scan& s = core.scan;
  if (s.any) {
    scan_any(participant);
    return;
  }
  const std::size_t size = s.set.size();
  // Cells a page apart fall into one set of the core's own cache: more than its ways, and each pass
  // fetches them all from the die's cache again. Each fill has to push a line out of the set first.
  Time hit = hit_;
  Time gap = load_gap_;
  if (size > poll_ways_ && set_fill_ > 0) {
    hit = gap = set_fill_;
  } else if (size > poll_ways_) {
    const unsigned die = geometry_.die_of(participant);
    hit = std::max(
        hit_, static_cast<Time>(static_cast<double>(geometry_.between(die, die)) / poll_overlap_));
  }
  Time at = std::max(now_, core.clock);
  while (s.visited < size) {
    std::size_t index = s.from + s.visited;
    if (index >= size) index -= size;
    Line& line = *s.set[index];
    const StoreBuffer::Entry* own = core.stores.empty() ? nullptr : core.stores.forward(line);
    if (own != nullptr || present(line, participant)) {
      at += hit;
      s.all_ready = s.all_ready && core.test(own != nullptr ? own->value : line.value);
    } else {
      if (s.outstanding >= overlap_at(s.visited)) break;
      at += gap;
      ++s.outstanding;
      s.missed = true;
      request(participant, line, Purpose::scan, at);
    }
    ++s.visited;
  }
  core.clock = at;
  if (s.visited == size && s.outstanding == 0 && !scan_passed(participant, at)) {
    s.begin_pass();
    queue_.push(at, EventKind::scan, participant);
  }
}

/// A pass is over: true if the wait is too, or goes on when a cell changes; false for another pass.
bool Engine::scan_passed(unsigned participant, Time at) {
  Core& core = cores_[participant];
  Scan& s = core.scan;
  if (s.missed) return false;  // what came back has not been looked at
  if (s.all_ready) {
    scan_is_over(participant, 0, at);
    return true;
  }
  for (const Line* line : s.set) {
    if (!present(*line, participant) && core.stores.forward(*line) == nullptr) return false;
  }
  scan_waits(participant);
  return true;
}

/// Until a cell changes that is not ready now.
void Engine::scan_waits(unsigned participant) {
  Core& core = cores_[participant];
  Scan& s = core.scan;
  for (std::size_t i = 0; i < s.set.size(); ++i) {
    Waiter& waiter = s.waiters[i];
    // Its own store that is still on its way counts, not what that will overwrite.
    const StoreBuffer::Entry* const own = core.stores.forward(*s.set[i]);
    if (waiter.line != nullptr || core.test(own != nullptr ? own->value : s.set[i]->value)) {
      continue;
    }
    s.set[i]->watch(waiter);
  }
  s.begin_pass();
  s.waiting = true;
}

void Engine::scan_is_over(unsigned participant, std::size_t ready, Time at) {
  Core& core = cores_[participant];
  for (Waiter& waiter : core.scan.waiters) Line::unwatch(waiter);
  core.result = static_cast<Word>(ready);
  core.doing = Doing::running;  // as good as: reads that come before it goes on change nothing
  resume(participant, at);
}

}  // namespace muster::sim
