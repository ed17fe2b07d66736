// SPDX-License-Identifier: BSD-3-Clause
#include "check/graph.hpp"

#include <algorithm>
#include <limits>

namespace muster::check {

void Graph::reset(const Memory& memory, unsigned threads) {
  threads_ = threads;
  sc_fences_.clear();
  memory_ = &memory;
  for (auto& events : events_) events.clear();
  order_.clear();
  co_.assign(memory.size(), {});
  for (std::size_t l = 0; l < co_.size(); ++l) {
    co_[l].push_back(EventId::initial(static_cast<Location>(l)));
  }
  last_.assign(threads * memory.size(), -1);
  statuses_.of.fill(Status::runnable);
}

void Graph::copy_prefix(const Graph& other, const Clock& keep) {
  threads_ = other.threads_;
  sc_fences_.clear();
  memory_ = other.memory_;
  const std::size_t locations = other.co_.size();
  last_.resize(threads_ * locations);
  for (unsigned t = 0; t < threads_; ++t) {
    const auto& from = other.events_[t];
    const auto kept = static_cast<std::size_t>(keep.count[t]);
    events_[t].assign(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(kept));
    statuses_.waits[t] = other.statuses_.waits[t];
    statuses_.of[t] = kept == from.size() ? other.statuses_.of[t] : Status::runnable;
    for (std::size_t l = 0; l < locations; ++l) {
      std::int16_t last = other.last_[t * locations + l];
      while (last >= keep.count[t]) last = from[static_cast<std::size_t>(last)].previous;
      last_[t * locations + l] = last;
    }
  }
  order_.clear();
  for (const EventId id : other.order_) {
    if (!keep.contains(id)) continue;
    Event& event = at(id);
    event.stamp = static_cast<std::int16_t>(order_.size());
    if (event.is_sc_fence()) sc_fences_.push_back(id);
    order_.push_back(id);
  }
  co_.resize(locations);
  for (std::size_t l = 0; l < locations; ++l) {
    auto& mine = co_[l];
    mine.clear();
    for (const EventId id : other.co_[l]) {
      if (!keep.contains(id)) continue;
      if (!id.is_initial()) at(id).position = static_cast<std::int16_t>(mine.size());
      mine.push_back(id);
    }
  }
}

EventId Graph::append(unsigned thread, const Operation& op) {
  auto& events = events_[thread];
  if (order_.size() >= std::numeric_limits<std::int16_t>::max()) {
    throw Error(muster::Status::unsupported,
                "an execution has more than 32,766 events: check fewer episodes or participants");
  }
  const EventId id{static_cast<std::int16_t>(thread), static_cast<std::int16_t>(events.size())};
  Event& event = events.emplace_back();
  event.op = op;
  event.stamp = static_cast<std::int16_t>(order_.size());
  if (event.is_sc_fence()) sc_fences_.push_back(id);
  order_.push_back(id);
  return id;
}

void Graph::link(EventId id) {
  Event& event = at(id);
  std::int16_t& last = last_[static_cast<std::size_t>(id.thread) * co_.size() + event.op.location];
  event.previous = last;
  last = id.index;
}

void Graph::unlink(EventId id) {
  const Event& event = at(id);
  if (event.op.location == no_location) return;  // a fence or a choice
  std::int16_t& last = last_[static_cast<std::size_t>(id.thread) * co_.size() + event.op.location];
  if (last == id.index) last = event.previous;
}

void Graph::insert(EventId write, int position) {
  auto& writes = co_[at(write).op.location];
  writes.insert(writes.begin() + position, write);
  for (auto i = static_cast<std::size_t>(position); i < writes.size(); ++i) {
    at(writes[i]).position = static_cast<std::int16_t>(i);
  }
}

void Graph::remove(EventId write) {
  Event& event = at(write);
  if (event.position == 0) return;  // it never was in
  auto& writes = co_[event.op.location];
  writes.erase(writes.begin() + event.position);
  for (auto i = static_cast<std::size_t>(event.position); i < writes.size(); ++i) {
    at(writes[i]).position = static_cast<std::int16_t>(i);
  }
  event.position = 0;
}

void Graph::undo(const Mark& mark) {
  while (order_.size() > mark.events) {
    const EventId id = order_.back();
    order_.pop_back();
    const Event& event = at(id);
    if (event.is_sc_fence()) sc_fences_.pop_back();
    unlink(id);
    remove(id);
    events_[static_cast<unsigned>(id.thread)].pop_back();
  }
  statuses_ = mark.statuses;
}

}  // namespace muster::check
