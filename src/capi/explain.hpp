// SPDX-License-Identifier: BSD-3-Clause
// What was chosen, and why, for people and for programs.
#pragma once

#include <string>

#include "capi/block.hpp"
#include "capi/plan.hpp"

namespace muster {

std::string explain_as_text(const Plan& plan, const BlockLayout& layout);

/// One object: algorithm, asked, why, participants, shared, usable_cpus, wait {policy, why,
/// spin_ns, yield_ns}, levels_dropped, groups [{level, members, leader}] bottom up, steps [text],
/// memory {bytes, bytes_per_rank, paged, line_bytes}.
std::string explain_as_json(const Plan& plan, const BlockLayout& layout);

}  // namespace muster
