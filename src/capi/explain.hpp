// SPDX-License-Identifier: BSD-3-Clause
// What was chosen, and why, for people and for programs.
#pragma once

#include <string>

#include "capi/block.hpp"
#include "capi/plan.hpp"

namespace muster {

/// What the ranks of one process that wait by `auto` have learnt.
struct Learnt {
  unsigned ranks = 0;       ///< that have waited; 0: nothing is told
  unsigned shorter = 0;     ///< of these: in the next wait awake for less than they may
  unsigned not_awake = 0;   ///< and not at all
  std::uint64_t slept = 0;  ///< waits
  std::int64_t yields_banned_ns = 0;
};

/// Where participants that nobody has bound have been seen.
struct Whereabouts {
  std::vector<Word> pus;  ///< by rank, 1 + the PU, or 0: it has not said; empty: nothing is learnt
  std::string composed;   ///< what runs now, as far as this process knows
  unsigned changes = 0;   ///< of what runs
};

std::string explain_as_text(const Plan& plan, const BlockLayout& layout, const Learnt& learnt = {},
                            const Whereabouts& where = {});

/// One object: algorithm, asked, why, participants, shared, usable_cpus, wait {policy, why,
/// spin_ns, yield_ns}, levels_dropped, groups [{level, members, leader}] bottom up, steps [text],
/// memory {bytes, bytes_per_rank, paged, line_bytes}, and what `learnt` is, if it is told; also
/// whereabouts {pus (null: not known), composed, changes}, if it is.
std::string explain_as_json(const Plan& plan, const BlockLayout& layout, const Learnt& learnt = {},
                            const Whereabouts& where = {});

}  // namespace muster
