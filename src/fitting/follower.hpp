// SPDX-License-Identifier: BSD-3-Clause
// When participants that nobody has bound have moved so that another schedule pays, and which.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "barrier/packed.hpp"
#include "fitting/fitting.hpp"
#include "fitting/profile.hpp"

namespace muster {

/// Of one barrier: what its rank 0 asks where everybody sits. When somebody has moved, what runs is
/// composed anew for that, then all else that fit_barrier() might try, one barrier a look: so
/// nobody waits for more than one. What is estimated to be quicker by three percent runs from then
/// on. What a profile has for them runs instead, whatever is estimated, if it is composed and there
/// is room for it. All of that takes one percent of the time at most.
class Follower {
 public:
  using Clock = std::function<std::int64_t()>;  ///< nanoseconds

  /// Whether there are PUs that have not all their groups in common: else all places are equal.
  static bool pays_on(const Topology& topology);

  /// `topology` must outlive it. `teams`: a profile's.
  Follower(const Topology& topology, unsigned participants, MachineCosts costs, Clock clock,
           std::vector<Profile::Team> teams = {});

  /// `pus`: by rank, 1 + where it is, or 0. Empty: what runs is to go on; else a packed schedule,
  /// proved, valid until the next call. By one thread at a time. Throws nothing.
  std::span<const Word> look(std::span<const Word> pus) noexcept;

  struct State {
    std::string algorithm;  ///< that runs, as parse_algorithm() takes it; empty: none was composed
    unsigned changes = 0;
  };
  /// May be asked by any thread.
  State state() const;

 private:
  bool have_moved(std::span<const Word> pus) const;
  void learn(std::span<const Word> pus);
  unsigned profiled() const;
  unsigned fitted() const { return none() - static_cast<unsigned>(teams_.size()); }
  unsigned none() const { return static_cast<unsigned>(candidates_.size()); }
  std::span<const Word> compose(unsigned candidate);

  const Topology& topology_;
  MachineCosts costs_;
  Clock clock_;
  std::vector<Profile::Team> teams_;
  std::vector<Algorithm> candidates_;  ///< fit_barrier()'s, then one for each team
  std::vector<unsigned> home_of_pu_;   ///< PUs of one home have all their groups in common
  std::int64_t next_ns_ = INT64_MIN;   ///< when it may work again

  std::vector<unsigned> homes_;  ///< by rank, as it knows them
  std::vector<PuSet> bindings_;
  Seats seats_;
  unsigned profiled_;     ///< the candidate that a profile has for them, or none
  unsigned untried_ = 0;  ///< candidates, since somebody moved
  unsigned tried_ = 0;    ///< the last one
  Schedule running_;
  double running_ns_ = 0;
  std::vector<Word> packed_;
  std::atomic<unsigned> composed_;  ///< the candidate that runs, or none
  std::atomic<unsigned> changes_{0};
};

}  // namespace muster
