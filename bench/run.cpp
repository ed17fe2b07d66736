// SPDX-License-Identifier: BSD-3-Clause
#include "bench/run.hpp"

#include "machine/error.hpp"

namespace muster::bench {

std::optional<Mapping> parse_map_by(const std::string& name) {
  if (name == "none") return {};
  try {
    return parse_mapping(name);
  } catch (const Error& error) {
    throw Error(error.code(), std::string(error.what()) + ", none (unbound)");
  }
}

void check_seconds(double seconds) {
  if (!(seconds > 0 && seconds <= 86400)) {
    throw Error(Status::invalid, "--seconds: more than 0, at most 86400 (a day)");
  }
}

}  // namespace muster::bench
