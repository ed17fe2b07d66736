// SPDX-License-Identifier: BSD-3-Clause
// A team: the processes that run one contestant, from the coordinator's side. Whatever the
// contestant does (hang, crash, leave), the coordinator goes on, and nothing of the team is left.
//
// The team's root process makes the contestant; its participants are threads of it, or processes
// that it forks, or those of a worker program. All are one process group, which is killed as one;
// they die with the coordinator, too. A launcher's ranks need not be of its group: it is told to
// end, and takes them along.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/contestant.hpp"
#include "bench/latency.hpp"
#include "bench/measure.hpp"
#include "bench/stats.hpp"
#include "topology/pu_set.hpp"

namespace muster::bench {

struct TeamSpec {
  Setting setting;
  const Other* other = nullptr;  ///< null: our own barrier of setting.algorithm
  /// Instead: a launcher of the participants, which are told the Control block's path last.
  std::vector<std::string> launcher;
  std::vector<PuSet> bindings;     ///< per rank; an empty set is unbound
  std::int64_t batch_ns = 50'000;  ///< how long a batch of episodes should take
  std::uint32_t samples_max = 1U << 16;
  bool by_turns = false;     ///< slices are turns (bench/measure.hpp)
  std::int64_t late_ns = 0;  ///< in turns: how late the last rank is for each episode
  std::string cgroup;        ///< that all its processes join; empty: none
};

class Team {
 public:
  enum class State {
    idle,      ///< ready for a slice
    busy,      ///< starting, or in a slice, when the time was up
    declined,  ///< it cannot serve here: error()
    failed     ///< it crashed or gave up: error()
  };

  /// Starts the processes and returns at once. The calling process must have one thread only.
  /// Throws Error(system).
  explicit Team(const TeamSpec& spec);
  /// Kills whatever is left.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Waits until all participants are idle, but not past `until_ns` on clock_ns().
  State await_idle(std::int64_t until_ns);
  /// Lets an idle team run a slice.
  void start_slice(std::int64_t slice_ns);
  /// In a turn: the next episode is the last one.
  void end_turn();
  /// Tells an idle team to end; the destructor then finds it gone, or soon so.
  void quit();
  /// Waits for one that was told to end, and kills what is left.
  void finish();

  std::string error() const;
  std::string note() const;
  std::string output() const;      ///< a launcher's and its ranks', errors included
  std::uint64_t episodes() const;  ///< finished so far
  /// Latencies [ns] sampled since the last call.
  std::vector<double> take_samples();
  /// Single episodes that rank 0 timed in the last turn.
  std::vector<LatencySample> singles() const;
  Turn timed() const;  ///< all timed batches or turns so far
  /// Last exit minus first exit [ns] of each episode sampled in the last slice.
  std::vector<double> exit_skews() const;
  std::uint64_t involuntary_switches() const;  ///< of all participants so far, inside slices
  std::int64_t cpu_ns() const;                 ///< of all participants so far, inside slices

 private:
  [[noreturn]] void be_root(const TeamSpec& spec, pid_t coordinator);
  bool root_is_gone();
  void await_end(std::int64_t patience_ns);
  void close_files();
  void kill_all();

  Control* control_ = nullptr;
  int fd_ = -1;      // of the Control block
  int output_ = -1;  // a launcher's; else none
  pid_t root_ = -1;
  bool quitting_ = false;
  bool reaped_ = false;
  std::uint32_t slice_ = 0;
  std::uint32_t samples_taken_ = 0;
};

/// The worker program's path: in $MUSTER_BENCH_WORKERS if set, beside this program, in bench/
/// beside it (a build tree), or in ../libexec/muster (installed). Empty if it is in none.
std::string find_worker(std::string_view name);

}  // namespace muster::bench
