// SPDX-License-Identifier: BSD-3-Clause
// The mechanisms of the model, each of which can be switched off to see what it is worth, and the
// parameters they have. doc/model.md says what each stands for.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace muster::sim {

/// Off means the simpler machine that the comment names.
enum class Mechanism : std::uint8_t {
  distance_classes,  ///< off: every pair of cores is as far apart as two of one die
  line_order,        ///< off: requests for a line do not wait for the one before
  read_queues,       ///< off: a die serves any number of reads of a line at once
  die_agent,         ///< off: a die starts any number of transactions at once
  die_sharing,       ///< off: every reader fetches from the writer's die, not from its own
  store_buffer,      ///< off: a store blocks the core until everybody can see it
  store_overlap,     ///< off: one ownership request at a time
  poll_overlap,      ///< off: a core that polls a set has one miss at a time
  set_conflicts,     ///< off: a core's own cache holds every set it polls
  set_fill,          ///< off: a full set of a core's cache takes any number of lines at once
  ll_sc,             ///< off: atomics are one ownership request, even where the machine has LL/SC
  poll_turn,         ///< off: a core that polls looks again at once
  call_cost,         ///< off: calling the barrier, or sending a message, costs nothing
  message_slots,     ///< off: a message is one line of its pair's, and nothing besides
  line_data,         ///< off: a line comes as fast as the permission to change it
  owner_hold,        ///< off: an owner loses its line at once where another core has asked for it
  run_ahead,         ///< off: a wait for one cell begins when the one before is over
  home_way,          ///< off: a request goes to who has the line, wherever its home is
  data_caches,       ///< off: every access to plain data hits
  prefetch,          ///< off: a miss brings its own line only
  memory_bandwidth,  ///< off: a memory serves any number of lines at once
};
inline constexpr int mechanism_count = 21;

/// A set of mechanisms.
class Mechanisms {
 public:
  static constexpr Mechanisms all() { return Mechanisms((1U << mechanism_count) - 1); }
  constexpr bool has(Mechanism m) const { return (bits_ & bit(m)) != 0; }
  constexpr Mechanisms without(Mechanism m) const { return Mechanisms(bits_ & ~bit(m)); }
  friend bool operator==(const Mechanisms&, const Mechanisms&) = default;

 private:
  constexpr explicit Mechanisms(unsigned bits) : bits_(bits) {}
  static constexpr unsigned bit(Mechanism m) { return 1U << static_cast<unsigned>(m); }
  unsigned bits_;
};

/// As in machine files and on the command line: "read-queues".
std::string_view mechanism_name(Mechanism mechanism);
/// Throws Error(unknown_name), listing the names.
Mechanism parse_mechanism(std::string_view name);

/// Times in nanoseconds.
struct Parameters {
  double call_ns = 0;
  double message_ns = 0;
  double hit_ns = 0;
  double load_gap_ns = 0;
  double store_gap_ns = 0;
  double rmw_local_ns = 0;
  double poll_turn_ns = 0;
  double memory_ns = 0;
  double read_occupancy_ns = 0;
  double agent_occupancy_ns = 0;
  double poll_overlap = 0;
  double poll_ways = 0;
  double store_overlap = 0;
  double store_entries = 0;
  double cache_line = 64;
  double private_cache_kib = 0;
  double private_ways = 1;
  double shared_cache_kib = 0;
  double shared_ways = 1;
  double memory_bandwidth = 1;
  double memory_far_ns = 0;
  double lock_call_ns = 10;
  double lock_turn_ns = 10;
  double line_data_ns = 0;
  double owner_hold = 0;
  double run_ahead = 0;
  double home_way = 0;
  double set_fill_ns = 0;
};

/// How a parameter is written, bounded and explained.
struct ParameterInfo {
  std::string_view name;  ///< "read-occupancy"
  std::string_view unit;  ///< "ns", or "" for a count
  double Parameters::*value;
  double min;
  double max;
  std::string_view meaning;
  bool optional = false;  ///< a machine that does not say has the default
  bool whole = false;     ///< a whole number
};

const std::vector<ParameterInfo>& parameter_table();
/// Throws Error(unknown_name), listing the names.
const ParameterInfo& parameter_info(std::string_view name);

}  // namespace muster::sim
