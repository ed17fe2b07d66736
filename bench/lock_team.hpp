// SPDX-License-Identifier: BSD-3-Clause
// What is measured of a lock: threads that increment words of an array, each inside a critical
// section [P17, PS18]. A lock under test lives in a process of its own, with its threads and its
// servers: it can be killed, and takes turns with others.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/contestant.hpp"
#include "bench/latency.hpp"
#include "bench/lock_slice.hpp"
#include "bench/stats.hpp"

namespace muster::bench {

/// A lock by the name it is measured under.
struct LockEntry {
  enum Kind { ours, peer, reference };
  std::string name;
  Kind kind;
  std::string package;  ///< what is missing here; empty: nothing
  std::string about;
  std::unique_ptr<LockSubject> (*make)(const std::string& name);
  bool for_readers = false;  ///< by groups only where some sections only read
};
const std::vector<LockEntry>& lock_entries();

/// A lock's process and its threads.
class LockTeam {
 public:
  enum class State { idle, busy, failed };

  LockTeam(const LockEntry& entry, const LockSetting& setting);
  ~LockTeam();  ///< kills whatever is left
  LockTeam(const LockTeam&) = delete;
  LockTeam& operator=(const LockTeam&) = delete;

  State await_idle(std::int64_t until_ns);
  /// Of a slice with a given number of operations: waits as long as there are more and more, and
  /// returns busy when there were no more for `stall_ns`. `look`, called now and then, is told how
  /// many there are.
  State await_operations(std::int64_t stall_ns, const std::function<void(std::uint64_t)>& look);
  void start_slice();
  void end_slice();  ///< asks the threads to stop

  std::string error() const;
  std::uint64_t slice_operations() const;         ///< of all threads, in the last slice
  Turn slice() const;                             ///< the last one, and its operations
  std::vector<std::uint64_t> operations() const;  ///< of each thread, in all slices
  std::vector<LatencySample> latencies() const;   ///< sampled in the last slice
  double cache_misses_percent() const;            ///< of all slices; NaN: the machine does not tell
  std::uint64_t involuntary_switches() const;
  /// Of its process so far, its servers too; 0: there is none any more.
  std::int64_t cpu_ns() const;

 private:
  [[noreturn]] void be_root(const LockEntry& entry, const LockSetting& setting);

  std::unique_ptr<SharedBytes> memory_;
  LockShared* shared_;
  unsigned threads_;
  pid_t root_ = -1;
  std::uint32_t slice_ = 0;
};

}  // namespace muster::bench
