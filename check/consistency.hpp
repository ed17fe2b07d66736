// SPDX-License-Identifier: BSD-3-Clause
// The memory model: RC11 (Lahav et al., PLDI 2017) without SC accesses, with C++20's release
// sequences, as incremental checks on a graph that was consistent before its last event.
//
//   happens-before   hb = (program order | synchronizes-with)+, kept as a clock in every event
//   coherence        irreflexive(hb; eco?)
//   atomicity        nothing comes between an update and the write it reads from
//   SC fences        acyclic([Fsc]; (hb | hb; eco; hb); [Fsc]), but for pairs with a light one and
//                    no heavy one
//   no load buffering: program order and reads-from are acyclic together, by construction
//   races            conflicting plain accesses are ordered by hb
//
// eco = (rf | co | rb)+ is extended coherence order: the order of a location's accesses.
#pragma once

#include <initializer_list>
#include <optional>

#include "check/graph.hpp"

namespace muster::check {

/// Rules that the explorer can be told to forget, so that tests show that they would notice.
enum class Flaw : std::uint8_t {
  none,
  coherence,              ///< reads and writes at any place of the modification order
  atomicity,              ///< two updates may read from one write
  release_sequences,      ///< an update does not pass on what the write it replaces released
  old_release_sequences,  ///< C++11: the releasing thread's later relaxed stores pass it on too
  sc_fences,              ///< seq_cst fences are but acquire and release
  fences,                 ///< fences do nothing
  races,                  ///< unordered plain accesses go unnoticed
  maximality,             ///< a backward revisit may delete anything
  revisits,               ///< no backward revisits
};

/// Computes the clocks of the last event of its thread from its predecessor and what it reads from.
void set_views(Graph& graph, EventId id, Flaw flaw);

/// Position of the newest write of `location` that something in `view` has written or read:
/// coherence forbids whoever has this view to read an older one, or to write before it.
int newest_seen(const Graph& graph, Location location, const Clock& view);

/// Whether a write at this position would come between an update and the write it reads from.
bool splits_update(const Graph& graph, Location location, int position);

/// Whether SC fences are ordered, as they were before `added`: accesses that nothing follows but an
/// update's other half. To be asked where one of these is not the newest of its location.
bool sc_fences_ordered(const Graph& graph, std::initializer_list<EventId> added);

/// An access that races with the plain access `id`, not yet linked.
std::optional<EventId> racing(const Graph& graph, EventId id);

}  // namespace muster::check
