// SPDX-License-Identifier: BSD-3-Clause
// The choice at the heart of RCLHierarchicalAffinity, for whoever keeps the counts: class Placer
// here, the preload of `muster run` in other people's programs.
#pragma once

namespace muster {

/// Algorithm 2 of [PS18] raises nthr_per_core, from 0, until some core has at most that many
/// threads: so it takes the first, in the order of its climb, of those with the fewest. `end` if
/// there is none.
template <class Candidate, class ThreadsOn>
Candidate least_busy(Candidate begin, Candidate end, ThreadsOn threads_on) {
  Candidate best = begin;
  for (Candidate at = begin; at != end; ++at) {
    if (threads_on(*at) < threads_on(*best)) best = at;
  }
  return best;
}

}  // namespace muster
