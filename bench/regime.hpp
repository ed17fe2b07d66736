// SPDX-License-Identifier: BSD-3-Clause
// Who else wants the CPUs while something is measured: the regimes of `--regime`, and what makes
// them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/contestant.hpp"
#include "topology/pu_set.hpp"

namespace muster::bench {

struct Regime {
  std::string_view name;
  std::string_view about;
  bool disturbed = true;  ///< participants do not have their CPUs to themselves
  bool crowded = false;   ///< with more participants than CPUs
  bool hogs = false;      ///< a busy loop on each CPU
  bool apart = false;     ///< these are in a session of their own
  unsigned quota_percent =
      0;                     ///< of a CPU, that a control group grants all; 0: as much as there is
  std::int64_t late_ns = 0;  ///< how late the last participant is for each episode

  /// How many participants: of those that are asked for what it can have, else its default.
  std::vector<unsigned> participants(const std::vector<unsigned>& asked, unsigned cpus) const;
  /// Why it cannot have some that are asked for; empty: it can.
  std::string why_fewer(const std::vector<unsigned>& asked, unsigned cpus) const;
  /// CPUs that a participant can count on.
  unsigned cpus(unsigned usable) const;
};

/// In the order in which they are listed.
const std::vector<Regime>& all_regimes();

/// A line each, for `--help`.
std::string regimes_to_text();

/// What parse_regimes() takes.
std::vector<std::string> regime_names();

/// Each once, in that order. "all" is all of them, "quota" both with a quota. Throws
/// Error(unknown_name), listing the names.
std::vector<const Regime*> parse_regimes(const std::vector<std::string>& names);

/// Throws Error(invalid) where none of them can have any of those that are asked for. Null: can.
void check_participants(const std::vector<const Regime*>& regimes,
                        const std::vector<unsigned>& asked, unsigned cpus);

/// Makes a regime as long as it lives. Forks: the calling process must have one thread only. Ended
/// in any way, Ctrl-C and SIGKILL included, that process leaves neither hogs nor a control group.
class Disturbance {
 public:
  /// Throws Error(unsupported) where this machine cannot make it, with the reason.
  Disturbance(const Regime& regime, const PuSet& cpus);
  ~Disturbance();
  Disturbance(const Disturbance&) = delete;
  Disturbance& operator=(const Disturbance&) = delete;

  std::int64_t cpu_ns() const;  ///< that the hogs had so far
  std::vector<pid_t> hogs() const;
  std::string cgroup() const;  ///< the directory of the control group; empty: there is none

 private:
  struct Shared;
  void start_hogs(bool apart, const PuSet& cpus);
  void make_cgroup(const Regime& regime);
  void end();

  SharedArray<Shared> shared_;
  SharedArray<pid_t> pids_;
  unsigned hog_count_ = 0;
  pid_t hogs_ = -1;    // their leader
  pid_t keeper_ = -1;  // of the control group
};

/// Why this machine cannot make it, tried; empty if it can.
std::string why_not(const Regime& regime, const PuSet& cpus);

/// "hogs, ", for who tells of progress; "" without one.
std::string regime_prefix(const Regime* regime);

/// Throws Error(invalid) for what `--turn` cannot be.
void check_turn(double ms);

/// The calling process moves into that control group; "": it stays where it is. Throws
/// Error(system).
void join_cgroup(const std::string& directory);

}  // namespace muster::bench
