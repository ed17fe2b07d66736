// SPDX-License-Identifier: BSD-3-Clause
// When participants that nobody has bound have moved so that another schedule pays, and which.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "barrier/following.hpp"
#include "fitting/fitting.hpp"

namespace muster {

/// Of one barrier: what its rank 0 asks where everybody sits.
///
/// Who is seen at a new place in two looks has moved there. A schedule for the new places replaces
/// the running one if it is estimated to be quicker by three percent. To search for one takes one
/// percent of the time at most, and to make the running recipe's anew another one.
class Follower {
 public:
  using Clock = std::function<std::int64_t()>;  ///< nanoseconds

  /// `topology` must outlive it. `progresses`: as fit_choice().
  Follower(const Topology& topology, unsigned participants, bool progresses, Clock clock);

  /// `pus`: by rank, 1 + where it is, or 0. Null: what runs is to go on; else a schedule that
  /// check_schedule() accepts, valid until the next call. By one thread at a time. Throws nothing.
  const Schedule* look(std::span<const Word> pus) noexcept;

  struct State {
    std::string algorithm;  ///< that runs, as parse_algorithm() takes it; empty: none was composed
    unsigned changes = 0;
  };
  /// May be asked by any thread.
  State state() const;

 private:
  struct Pace {
    std::int64_t next_ns = INT64_MIN;
    bool is_due(std::int64_t now) const { return now >= next_ns; }
    void took(std::int64_t begin, std::int64_t end) { next_ns = end + 99 * (end - begin); }
  };

  const Schedule* compose(std::int64_t now);

  const Topology& topology_;
  const KnownMachine& like_;
  Costs costs_;
  Room room_;
  Clock clock_;
  std::vector<unsigned> home_of_pu_;  ///< PUs of one home have all their groups in common
  std::vector<Word> last_;            ///< by rank, at the last look
  std::vector<Word> made_for_;        ///< by rank; what was last composed, taken or not
  Pace search_;
  Pace regroup_;
  Schedule running_;
  mutable std::mutex mutex_;  ///< of what follows
  State state_;
};

}  // namespace muster
