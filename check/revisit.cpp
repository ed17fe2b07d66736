// SPDX-License-Identifier: BSD-3-Clause
// Backward revisits: a new write may be read by reads that were added before it. Everything added
// after such a read is taken back, except what the write depends on; so that no execution is
// reached twice, only if all that is taken back had been added in the maximal, that is the newest,
// way.
#include <algorithm>

#include "check/explore.hpp"

namespace muster::check {
namespace {

/// Lends a graph whose vectors are already large enough.
class Lent {
 public:
  explicit Lent(std::vector<std::unique_ptr<Graph>>& spare) : spare_(spare) {
    if (spare.empty()) spare.push_back(std::make_unique<Graph>());
    graph_ = std::move(spare.back());
    spare.pop_back();
  }
  ~Lent() { spare_.push_back(std::move(graph_)); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  Graph& operator*() { return *graph_; }

 private:
  std::vector<std::unique_ptr<Graph>>& spare_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace

// Whether an event is maximally added does not depend on which read is revisited, so the reads are
// tried from the latest on until the first event that is not, and would have to be taken back.
void Explorer::revisit(EventId write) {
  if (options_.flaw == Flaw::revisits) return;
  for (auto stamp = static_cast<std::size_t>(graph_->at(write).stamp); stamp-- > 0;) {
    const EventId id = graph_->order()[stamp];
    if (graph_->at(write).porf.contains(id)) continue;
    if (options_.flaw != Flaw::maximality && !maximally_added(id, write)) break;
    const Event& event = graph_->at(id);
    if (event.is_read() && event.op.location == graph_->at(write).op.location) {
      visit_revisited(id, write);
    }
  }
}

// IsMaximallyAdded of the paper. Previous: what was there when `id` was added, and what `write`
// depends on.
bool Explorer::maximally_added(EventId id, EventId write) const {
  const Graph& graph = *graph_;
  const Event& event = graph.at(id);
  const Clock& kept = graph.at(write).porf;
  const auto previous = [&](EventId other) {
    return other.is_initial() ||
           (other != write && (graph.at(other).stamp <= event.stamp || kept.contains(other)));
  };
  const auto newest = [&](Location location) {
    const auto writes = graph.co(location);
    return *std::find_if(writes.rbegin(), writes.rend(), previous);
  };
  switch (event.op.kind) {
    case Kind::fence:
    case Kind::plain_read:
    case Kind::plain_write:
      return true;
    case Kind::choice:
      return event.read == 0;
    case Kind::load:
    case Kind::await:
    case Kind::update_read:
      return event.from == newest(event.op.location);
    case Kind::store:
    case Kind::update_write:
      break;
  }
  if (newest(event.op.location) != id) return false;
  for (unsigned t = 0; t < graph.threads(); ++t) {  // nor has it been read before it was added
    for (int i = graph.last(t, event.op.location); i >= 0; i = graph.at(t, i).previous) {
      const Event& reader = graph.at(t, i);
      if (reader.is_read() && reader.from == id &&
          previous({static_cast<std::int16_t>(t), static_cast<std::int16_t>(i)})) {
        return false;
      }
    }
  }
  return true;
}

// SetRF(G|..., r, a) of the paper and VisitCOs of the result.
void Explorer::visit_revisited(EventId read, EventId write) {
  Graph* const parent = graph_;
  Clock keep = parent->at(write).porf;
  for (const EventId id :
       parent->order().subspan(0, static_cast<std::size_t>(parent->at(read).stamp) + 1)) {
    auto& count = keep.count[static_cast<unsigned>(id.thread)];
    count = std::max(count, static_cast<std::int16_t>(id.index + 1));
  }
  Lent lent(spare_);
  Graph& graph = *lent;
  graph.copy_prefix(*parent, keep);
  graph.set_status(static_cast<unsigned>(write.thread), Graph::Status::runnable);
  graph.set_status(static_cast<unsigned>(read.thread), Graph::Status::runnable);
  graph.unlink(read);

  graph_ = &graph;
  const Location location = graph.at(write).op.location;
  const auto end = static_cast<int>(graph.co(location).size());
  const bool atomic = options_.flaw != Flaw::atomicity;
  if (graph.at(write).op.kind == Kind::update_write) {
    const int position = graph.position(graph.at(write).from) + 1;
    if (!splits_update(graph, location, position) || !atomic) {
      place_revisited(graph, read, write, position);
    }
  } else {
    Clock before = graph.at(write).hb;
    --before.count[static_cast<unsigned>(write.thread)];
    const int oldest = options_.flaw == Flaw::coherence ? 0 : newest_seen(graph, location, before);
    for (int p = oldest + 1; p <= end && !stopped_; ++p) {
      if (splits_update(graph, location, p) && atomic) continue;
      place_revisited(graph, read, write, p);
    }
  }
  graph_ = parent;
  if (stopped_) throw Suspend{};
}

void Explorer::place_revisited(Graph& graph, EventId read, EventId write, int position) {
  const auto mark = graph.mark();
  graph.insert(write, position);
  graph.link(write);
  Event& event = graph.at(read);
  const Location location = event.op.location;
  const auto thread = static_cast<unsigned>(read.thread);
  event.from = write;
  event.read = graph.at(write).written;
  set_views(graph, read, options_.flaw);
  Clock before = event.hb;
  --before.count[thread];
  bool allowed =
      options_.flaw == Flaw::coherence || newest_seen(graph, location, before) <= position;
  graph.link(read);
  if (event.op.kind == Kind::await) {
    event.satisfied = waits_[event.op.wait].front().ready(event.read);
    if (!event.satisfied) {
      graph.set_status(thread, Graph::Status::stuck, event.op.wait);
      allowed = allowed && graph.newest(location) == write;
    }
  } else if (event.is_updating()) {
    graph.set_status(thread, Graph::Status::updating);
  }
  if (allowed && consistent({read, write})) visit();

  graph.undo(mark);
  graph.unlink(read);
  graph.unlink(write);
  graph.remove(write);
}

}  // namespace muster::check
