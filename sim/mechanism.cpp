// SPDX-License-Identifier: BSD-3-Clause
#include "sim/mechanism.hpp"

#include <array>
#include <string>

#include "machine/error.hpp"

namespace muster::sim {
namespace {

constexpr std::array<std::string_view, mechanism_count> mechanism_names = {
    "distance-classes", "line-order",    "read-queues",   "die-agent",
    "die-sharing",      "store-buffer",  "store-overlap", "poll-overlap",
    "set-conflicts",    "set-fill",      "ll-sc",         "poll-turn",
    "call-cost",        "message-slots", "line-data",     "owner-hold",
    "run-ahead",        "home-way",      "data-caches",   "prefetch",
    "memory-bandwidth"};

[[noreturn]] void throw_unknown(const std::string& what, std::string_view name,
                                const std::string& known) {
  throw Error(Status::unknown_name,
              "no " + what + " \"" + std::string(name) + "\"; there are: " + known);
}

}  // namespace

std::string_view mechanism_name(Mechanism mechanism) {
  return mechanism_names[static_cast<std::size_t>(mechanism)];
}

Mechanism parse_mechanism(std::string_view name) {
  std::string known;
  for (std::size_t i = 0; i < mechanism_names.size(); ++i) {
    if (mechanism_names[i] == name) return static_cast<Mechanism>(i);
    known.append(known.empty() ? "" : ", ").append(mechanism_names[i]);
  }
  throw_unknown("mechanism", name, known);
}

const std::vector<ParameterInfo>& parameter_table() {
  static const std::vector<ParameterInfo> table = {
      {"call", "ns", &Parameters::call_ns, 0, 1e5,
       "a call of the barrier outside of it: the benchmark's loop, its clock, the call's layers"},
      {"message", "ns", &Parameters::message_ns, 0, 1e5,
       "an MPI's layers around a message, at its sender and at its receiver each"},
      {"hit", "ns", &Parameters::hit_ns, 0.01, 100, "a load that hits the core's own cache"},
      {"load-gap", "ns", &Parameters::load_gap_ns, 0, 100, "between two loads of a set that miss"},
      {"store-gap", "ns", &Parameters::store_gap_ns, 0, 100, "between two stores"},
      {"rmw-local", "ns", &Parameters::rmw_local_ns, 0.01, 1000,
       "an atomic read-modify-write of a line the core owns"},
      {"poll-turn", "ns", &Parameters::poll_turn_ns, 0, 1e5,
       "a turn of a polling loop besides the load: it sees a change up to a turn late"},
      {"memory", "ns", &Parameters::memory_ns, 0, 1e5,
       "fetching a line that no cache holds, beyond the way to its home"},
      {"read-occupancy", "ns", &Parameters::read_occupancy_ns, 0, 1e4,
       "from one read of a line that a die serves to the next"},
      {"agent-occupancy", "ns", &Parameters::agent_occupancy_ns, 0, 1e4,
       "from one transaction that a die starts to the next"},
      {"poll-overlap", "", &Parameters::poll_overlap, 1, 256,
       "misses outstanding while a core polls a set of cells"},
      {"poll-ways", "", &Parameters::poll_ways, 1, 65536,
       "cells of a polled set, a page apart each, that the core's own cache can hold", false, true},
      {"store-overlap", "", &Parameters::store_overlap, 1, 256,
       "ownership requests outstanding for stores, which commit in order"},
      {"store-entries", "", &Parameters::store_entries, 1, 1024, "entries of the store buffer",
       false, true},
      {"cache-line", "B", &Parameters::cache_line, 16, 1024, "a line of plain data", false, true},
      {"private-cache", "KiB", &Parameters::private_cache_kib, 1, 1e5,
       "a core's own cache, for plain data"},
      {"private-ways", "", &Parameters::private_ways, 1, 64, "its ways", false, true},
      {"shared-cache", "KiB", &Parameters::shared_cache_kib, 1, 1e7,
       "a die's cache, for plain data"},
      {"shared-ways", "", &Parameters::shared_ways, 1, 64, "its ways", false, true},
      {"memory-bandwidth", "GB/s", &Parameters::memory_bandwidth, 0.1, 1e5,
       "of one NUMA node's memory"},
      {"memory-far", "ns", &Parameters::memory_far_ns, 0, 1e5,
       "a line of plain data from another NUMA node's memory, the way included; 0: the way there "
       "and `memory`",
       true},
      {"lock-call", "ns", &Parameters::lock_call_ns, 0, 1e5,
       "a critical section outside of its lock: the benchmark's loop, filling a request", true},
      {"lock-turn", "ns", &Parameters::lock_turn_ns, 0, 1e5,
       "as `poll-turn`, of a lock's client or server", true},
      {"line-data", "ns", &Parameters::line_data_ns, 0, 1e4,
       "how much later a line comes than the permission to change a copy that is here", true},
      {"owner-hold", "", &Parameters::owner_hold, 0, 1,
       "1: an owner keeps its line until a request has come to it; the next one sets out for the "
       "new owner when that has the line",
       true, true},
      {"run-ahead", "", &Parameters::run_ahead, 0, 256,
       "misses outstanding of waits for one cell after another, in the order of the last time; 0: "
       "one by one",
       true},
      {"home-way", "", &Parameters::home_way, 0, 1,
       "1: a request that leaves its die goes by the line's home, the memory touched first, so a "
       "near copy may be near in vain",
       true, true},
      {"set-fill", "ns", &Parameters::set_fill_ns, 0, 1000,
       "from one line that a full set of the core's own cache takes to the next, however far they "
       "come; 0: as many at once as `poll-overlap`",
       true},
  };
  return table;
}

const ParameterInfo& parameter_info(std::string_view name) {
  std::string known;
  for (const ParameterInfo& info : parameter_table()) {
    if (info.name == name) return info;
    known.append(known.empty() ? "" : ", ").append(info.name);
  }
  throw_unknown("parameter", name, known);
}

}  // namespace muster::sim
