// SPDX-License-Identifier: BSD-3-Clause
// The words that all measurements share: how far one is, what became of a row, who was left out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/error.hpp"
#include "topology/topology.hpp"

namespace muster::bench {

struct Progress {
  double share = 0;  ///< 0 to 1
  double left_s = 0;
  std::string what;  ///< "8 threads, round 3 of 10, mcs"
};

enum class RowStatus { ok, did_not_finish, declined, failed };
std::string_view row_status_name(RowStatus status);  ///< "ok", "did not finish", ...

struct LeftOut {
  std::string name;
  std::string why;
};

/// Throws Error(system) if one of ours failed: a run whose results are out is no success then.
template <class Row>
void expect_ours_ran(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (row.is_ours() && row.status == RowStatus::failed) {
      throw Error(Status::system, "one of ours failed: see above");
    }
  }
}

/// How `--map-by` binds: core, numa, socket, or nothing for "none". Throws Error(unknown_name).
std::optional<Mapping> parse_map_by(const std::string& name);

/// Throws Error(invalid) for what `--seconds` of a whole measurement cannot be.
void check_seconds(double seconds);

}  // namespace muster::bench
