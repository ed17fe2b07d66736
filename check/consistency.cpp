// SPDX-License-Identifier: BSD-3-Clause
#include "check/consistency.hpp"

#include <algorithm>
#include <limits>

namespace muster::check {
namespace {

/// What reading from `write` passes on. In C++11 a release sequence also held the later relaxed
/// stores of the releasing thread.
Clock released_by(const Graph& graph, EventId write, Flaw flaw) {
  Clock released = graph.at(write).released;
  if (flaw != Flaw::old_release_sequences) return released;
  for (int i = graph.at(write).previous; i >= 0;) {
    const Event& earlier = graph.at(static_cast<unsigned>(write.thread), i);
    if (earlier.is_write()) released.join(earlier.released);
    i = earlier.previous;
  }
  return released;
}

}  // namespace

void set_views(Graph& graph, EventId id, Flaw flaw) {
  Event& event = graph.at(id);
  const auto thread = static_cast<unsigned>(id.thread);
  if (id.index > 0) {
    const Event& before = graph.at(thread, id.index - 1);
    event.hb = before.hb;
    event.porf = before.porf;
    event.to_acquire = before.to_acquire;
    event.fenced = before.fenced;
  } else {
    event.hb = event.porf = event.to_acquire = event.fenced = Clock{};
  }
  event.hb.count[thread] = event.porf.count[thread] = static_cast<std::int16_t>(id.index + 1);

  const Ordering order = event.order();
  if (event.op.kind == Kind::fence && flaw != Flaw::fences) {
    if (acquires(order)) event.hb.join(event.to_acquire);
    if (releases(order)) event.fenced = event.hb;
  }
  const bool from_event = event.from.thread >= 0;
  if (event.is_read() && from_event) {
    event.porf.join(graph.at(event.from).porf);
    const Clock released = released_by(graph, event.from, flaw);
    (acquires(order) ? event.hb : event.to_acquire).join(released);
  }
  if (event.is_write()) {
    event.released = releases(order) ? event.hb : event.fenced;
    if (from_event && flaw != Flaw::release_sequences) {
      event.released.join(graph.at(event.from).released);
    }
  }
}

int newest_seen(const Graph& graph, Location location, const Clock& view) {
  int newest = 0;
  for (unsigned t = 0; t < graph.threads(); ++t) {
    int i = graph.last(t, location);
    while (i >= view.count[t]) i = graph.at(t, i).previous;
    if (i < 0) continue;
    const Event& access = graph.at(t, i);  // the thread's last one is also its newest
    newest = std::max(newest, access.is_write() ? access.position : graph.position(access.from));
  }
  return newest;
}

bool splits_update(const Graph& graph, Location location, int position) {
  const auto writes = graph.co(location);
  const auto next = static_cast<std::size_t>(position);
  if (next >= writes.size()) return false;
  const Event& after = graph.at(writes[next]);
  return after.op.kind == Kind::update_write && after.from == writes[next - 1];
}

namespace {

/// Places on a location's extended coherence order: a before b exactly if eco(a, b). A write comes
/// before the reads from it, those before the next write.
int eco_place(const Graph& graph, const Event& access) {
  const bool writes = access.is_write() || access.op.kind == Kind::plain_write;
  return writes ? 2 * access.position : 2 * graph.position(access.from) + 1;
}

/// Greatest place of an access to the location that happens before the fence; -1: of none.
int last_before(const Graph& graph, EventId fence, Location location) {
  int last = -1;
  const Clock& before = graph.at(fence).hb;
  for (unsigned t = 0; t < graph.threads(); ++t) {
    int i = graph.last(t, location);
    while (i >= before.count[t]) i = graph.at(t, i).previous;
    // Earlier accesses of this thread have earlier places.
    if (i >= 0) last = std::max(last, eco_place(graph, graph.at(t, i)));
  }
  return last;
}

/// Least place of an access to the location that happens after the fence.
int first_after(const Graph& graph, EventId fence, Location location) {
  int first = std::numeric_limits<int>::max();
  for (unsigned t = 0; t < graph.threads(); ++t) {
    for (int i = graph.last(t, location); i >= 0; i = graph.at(t, i).previous) {
      const Event& access = graph.at(t, i);
      if (!access.hb.contains(fence)) break;
      first = std::min(first, eco_place(graph, access));
    }
  }
  return first;
}

/// Whether this access puts a fence before another, or itself: a newer one of its location happens
/// before that.
bool orders_fences(const Graph& graph, EventId id) {
  const Event& access = graph.at(id);
  const int place = eco_place(graph, access);
  return std::ranges::any_of(graph.sc_fences(), [&](EventId after) {
    return last_before(graph, after, access.op.location) > place &&
           std::ranges::any_of(graph.sc_fences(), [&](EventId before) {
             return access.hb.contains(before) &&
                    ordered_with(graph.at(before).op.order, graph.at(after).op.order);
           });
  });
}

}  // namespace

bool sc_fences_ordered(const Graph& graph, std::initializer_list<EventId> added) {
  if (std::ranges::none_of(added, [&](EventId id) { return orders_fences(graph, id); })) {
    return true;
  }
  const auto fences = graph.sc_fences();
  const std::size_t n = fences.size();
  if (n > 64) throw Error(Status::unsupported, "more than 64 seq_cst fences in one execution");
  std::vector<std::uint64_t> before(n, 0);  // bit j of [i]: fence i is before fence j
  const auto put_before = [&](std::size_t i, std::size_t j) {
    if (!ordered_with(graph.at(fences[i]).op.order, graph.at(fences[j]).op.order)) return;
    before[i] |= std::uint64_t{1} << j;
  };
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (i != j && graph.at(fences[j]).hb.contains(fences[i])) put_before(i, j);
    }
  }
  std::vector<int> last(n);
  for (std::size_t l = 0; l < graph.locations(); ++l) {
    const auto location = static_cast<Location>(l);
    if (graph.co(location).size() < 2) continue;  // no eco without a write
    for (std::size_t j = 0; j < n; ++j) last[j] = last_before(graph, fences[j], location);
    const int last_of_all = *std::ranges::max_element(last);
    for (std::size_t i = 0; i < n; ++i) {
      const int first = first_after(graph, fences[i], location);
      for (std::size_t j = 0; first < last_of_all && j < n; ++j) {
        if (first < last[j]) put_before(i, j);
      }
    }
  }
  // Acyclic exactly if fences can be taken away one by one, each with none left before it.
  std::uint64_t left = n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
  for (bool progress = true; left != 0 && progress;) {
    progress = false;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t bit = std::uint64_t{1} << i;
      if ((left & bit) != 0 && (before[i] & left) == 0) {  // none left after it: as good
        left &= ~bit;
        progress = true;
      }
    }
  }
  return left == 0;
}

std::optional<EventId> racing(const Graph& graph, EventId id) {
  const Event& event = graph.at(id);
  const bool writes = event.op.kind == Kind::plain_write;
  for (unsigned t = 0; t < graph.threads(); ++t) {
    for (int i = graph.last(t, event.op.location); i >= event.hb.count[t];) {
      const Event& other = graph.at(t, i);
      if (writes || other.op.kind == Kind::plain_write) {
        return EventId{static_cast<std::int16_t>(t), static_cast<std::int16_t>(i)};
      }
      i = other.previous;
    }
  }
  return std::nullopt;
}

}  // namespace muster::check
