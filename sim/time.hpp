// SPDX-License-Identifier: BSD-3-Clause
// Simulated time: whole picoseconds. Integers, so that the same run gives the same result to the
// bit with every compiler and on every architecture.
#pragma once

#include <cstdint>

namespace muster::sim {

using Time = std::int64_t;  ///< picoseconds

constexpr Time from_ns(double ns) { return static_cast<Time>(ns * 1000.0 + (ns < 0 ? -0.5 : 0.5)); }
constexpr double to_ns(Time time) { return static_cast<double>(time) / 1000.0; }

}  // namespace muster::sim
