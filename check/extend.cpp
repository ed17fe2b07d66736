// SPDX-License-Identifier: BSD-3-Clause
// How a graph is extended by a participant's next event. Each function explores all alternatives
// but one, and leaves that one in the graph for the participant to go on with.
#include "check/explore.hpp"

namespace muster::check {

// Fences and plain accesses: one way to go on. Without races, the newest plain write is the one
// that happens before all reads to come.
void Explorer::add_local(unsigned thread, const Operation& op) {
  const EventId id = graph_->append(thread, op);
  set_views(*graph_, id, options_.flaw);
  Event& event = graph_->at(id);
  if (op.kind == Kind::fence) return;
  if (options_.flaw != Flaw::races) {
    if (const auto other = racing(*graph_, id)) {
      fail(Verdict::race,
           {"data race on " + program_.memory.name(op.location), op.site, other, id, *graph_});
    }
  }
  if (op.kind == Kind::plain_write) {
    event.written = op.operand;
    graph_->insert(id, static_cast<int>(graph_->co(op.location).size()));
  } else {
    event.from = graph_->newest(op.location);
    event.read = graph_->value(event.from);
  }
  graph_->link(id);
}

void Explorer::add_choice(unsigned thread, const Operation& op) {
  for (Word chosen = op.operand; chosen-- > 0;) {
    const auto mark = graph_->mark();
    const EventId id = graph_->append(thread, op);
    set_views(*graph_, id, options_.flaw);
    graph_->at(id).read = chosen;
    if (chosen == 0) return;
    visit_alternative();
    graph_->undo(mark);
  }
}

EventId Explorer::append_read(unsigned thread, const Operation& op, EventId from) {
  const EventId id = graph_->append(thread, op);
  Event& event = graph_->at(id);
  event.from = from;
  event.read = graph_->value(from);
  set_views(*graph_, id, options_.flaw);
  graph_->link(id);
  return id;
}

bool Explorer::consistent(std::initializer_list<EventId> added) const {
  return graph_->sc_fences().size() < 2 || options_.flaw == Flaw::sc_fences ||
         sc_fences_ordered(*graph_, added);
}

int Explorer::oldest_readable(unsigned thread, Location location) const {
  const int size = graph_->size(thread);
  if (options_.flaw == Flaw::coherence || size == 0) return 0;
  return newest_seen(*graph_, location, graph_->at(thread, size - 1).hb);
}

// Whether a read of a store that coherence allows is consistent: reading the newest always is.
bool Explorer::may_read(unsigned thread, const Operation& op, EventId from) {
  if (graph_->sc_fences().size() < 2) return true;
  const auto mark = graph_->mark();
  const bool may = consistent({append_read(thread, op, from)});
  graph_->undo(mark);
  return may;
}

bool Explorer::may_satisfy(unsigned thread, std::uint16_t wait) {
  for (const Awaitable& one : waits_[wait]) {
    const auto writes = graph_->co(one.where);
    const auto oldest = static_cast<std::size_t>(oldest_readable(thread, one.where));
    for (std::size_t p = writes.size(); p-- > oldest;) {
      if (!one.ready(graph_->value(writes[p]))) continue;
      if (may_read(thread, {.kind = Kind::load, .location = one.where}, writes[p])) return true;
    }
  }
  return false;
}

void Explorer::add_load(unsigned thread, const Operation& op) {
  const auto newest = static_cast<int>(graph_->co(op.location).size()) - 1;
  for (int p = oldest_readable(thread, op.location); p < newest; ++p) {
    const EventId from = graph_->co(op.location)[static_cast<std::size_t>(p)];
    const auto mark = graph_->mark();
    if (consistent({append_read(thread, op, from)})) visit_alternative();
    graph_->undo(mark);
  }
  append_read(thread, op, graph_->newest(op.location));
}

// False: nothing satisfies it yet.
bool Explorer::add_await(unsigned thread, const Operation& op) {
  if (!may_satisfy(thread, op.wait)) {
    graph_->set_status(thread, Graph::Status::waiting, op.wait);
    return false;
  }
  graph_->set_status(thread, Graph::Status::runnable);
  const auto newest = static_cast<int>(graph_->co(op.location).size()) - 1;
  for (int p = oldest_readable(thread, op.location); p <= newest; ++p) {
    const EventId from = graph_->co(op.location)[static_cast<std::size_t>(p)];
    const bool satisfied = waits_[op.wait].front().ready(graph_->value(from));
    if (!satisfied && p < newest) continue;
    const auto mark = graph_->mark();
    const EventId id = append_read(thread, op, from);
    graph_->at(id).satisfied = satisfied;
    if (!satisfied) graph_->set_status(thread, Graph::Status::stuck, op.wait);
    if (p == newest) break;
    if (consistent({id})) visit_alternative();
    graph_->undo(mark);
  }
  return true;
}

// VisitCOs of the paper, for the graphs in which nothing is revisited; those in which something is
// come first.
void Explorer::add_store(unsigned thread, const Operation& op) {
  const int oldest = oldest_readable(thread, op.location);
  const auto end = static_cast<int>(graph_->co(op.location).size());
  const auto mark = graph_->mark();
  const auto append = [&] {
    const EventId id = graph_->append(thread, op);
    graph_->at(id).written = op.operand;
    set_views(*graph_, id, options_.flaw);
    return id;
  };
  EventId id = append();
  revisit(id);
  for (int p = oldest + 1; p < end; ++p) {
    if (splits_update(*graph_, op.location, p) && options_.flaw != Flaw::atomicity) continue;
    graph_->insert(id, p);
    graph_->link(id);
    if (consistent({id})) visit_alternative();
    graph_->undo(mark);
    id = append();
  }
  graph_->insert(id, end);
  graph_->link(id);
}

// An update may read from a write that another one reads from already: only if it then takes that
// one's place, by a revisit, is the result consistent.
void Explorer::add_update(unsigned thread, const Operation& op) {
  const auto newest = static_cast<int>(graph_->co(op.location).size()) - 1;
  for (int p = oldest_readable(thread, op.location);; ++p) {
    const auto mark = graph_->mark();
    const EventId read =
        append_read(thread, op, graph_->co(op.location)[static_cast<std::size_t>(p)]);
    bool allowed = true;
    if (graph_->at(read).is_updating()) {
      const EventId write = append_update_write(read);
      allowed = !splits_update(*graph_, op.location, p + 1) || options_.flaw == Flaw::atomicity;
      graph_->insert(write, p + 1);
      graph_->link(write);
    }
    if (p == newest) return;
    if (allowed && consistent({read, graph_->order().back()})) visit_alternative();
    graph_->undo(mark);
  }
}

// Not yet in co.
EventId Explorer::append_update_write(EventId read) {
  const auto thread = static_cast<unsigned>(read.thread);
  Operation op = graph_->at(read).op;
  op.kind = Kind::update_write;
  const EventId id = graph_->append(thread, op);
  Event& event = graph_->at(id);
  const Event& reading = graph_->at(read);
  event.from = reading.from;
  event.written = op.written_over(reading.read);
  set_views(*graph_, id, options_.flaw);
  revisit(id);
  return id;
}

void Explorer::add_update_write(EventId read) {
  const EventId id = append_update_write(read);
  graph_->insert(id, graph_->position(graph_->at(read).from) + 1);
  graph_->link(id);
  graph_->set_status(static_cast<unsigned>(read.thread), Graph::Status::runnable);
  if (!consistent({id})) {
    abandoned_ = true;
    throw Suspend{};
  }
}

}  // namespace muster::check
