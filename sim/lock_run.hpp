// SPDX-License-Identifier: BSD-3-Clause
// One lock on the modelled machine, under the papers' benchmark: threads increment elements of an
// array, each inside a critical section [P17, PS18]. The very headers of src/lock run; a lock of
// style `server` has its server on a core of its own. Every run checks what a lock promises: each
// section exactly once, no two at the same time, but for those that only read.
//
// A core with several threads runs them in turn, each for a slice of time, and changes over between
// two operations. That is what happens to clients of a server: one that is preempted has at most
// one request waiting. Whoever is preempted with a lock holds up all others; this is not modelled.
//
// Beside the locks there are the mutexes of `muster run` (lock/parking*.hpp) and the C library's,
// whose threads sleep (sim/sleeping.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/lock_waits.hpp"
#include "sim/modelled.hpp"
#include "sim/sleeping.hpp"
#include "sim/walk.hpp"

namespace muster::sim {

/// Critical sections of a program, in place of the papers' walk. Times are means; those between two
/// sections of a thread are drawn from the exponential distribution.
struct Sections {
  double held_ns = 0;   ///< inside, without the way of the data
  double apart_ns = 0;  ///< from a section's end to the next one's begin
  unsigned lines = 1;   ///< of data that each section changes, the same ones
};

struct LockSetup {
  Geometry geometry;
  Parameters parameters;
  Mechanisms mechanisms = Mechanisms::all();
  std::vector<unsigned> threads;   ///< the participant that runs each; several may share one
  std::optional<unsigned> server;  ///< the participant of the lock's server, if it may have one
  /// Participants that nothing runs on: a server that leaves may start there.
  std::vector<unsigned> spares;
  unsigned home_die = 0;  ///< the array lies in the memory next to it
  Pattern pattern = Pattern::sequential;
  std::uint64_t words = 500'000'000;  ///< of 4 bytes; fewer than 2^32
  std::uint64_t stride = 20;
  double readers = 0;              ///< of the operations, how many only read; drawn at random
  std::uint64_t warm_up = 20'000;  ///< operations of all threads together
  std::uint64_t window = 100'000;  ///< as many count, and then as many again
  double slice_ns = 3e6;           ///< of a thread that shares its core
  std::uint64_t seed = 1;
  std::optional<Sections> sections;
  SleepCosts sleep;
};

struct LockOutcome {
  double throughput_ops_s = 0;  ///< of both windows together
  /// The first window's throughput over that of both, less 1: what a run of twice the length
  /// changes.
  double change = 0;
  // Of accesses to the array, in percent: missed the caches of the core and its die; and of the
  // lines that came from memory, those of another NUMA node's.
  double cache_misses_percent = 0;
  double far_memory_percent = 0;
  double private_misses_percent = 0;  ///< missed the core's own cache
  LockWaits waits;                    ///< of both windows together
  std::uint64_t events = 0;
};

/// Throws Error(invalid) for threads that share cores under a lock without a server, or a server's
/// core; Error(unknown_name).
void check_cores(std::string_view lock, std::vector<unsigned> threads,
                 std::optional<unsigned> server);

/// The lock of that name, one of modelled_locks(). Throws as check_cores(); Error(system) if the
/// lock breaks a promise or hangs. Deterministic.
LockOutcome run_lock(std::string_view name, const LockSetup& setup, StackPool& pool);

/// What the model runs: the registered locks (lock/registry.hpp) that are over a machine; and
/// mutexes, "mutex-" and the name that `muster run --mutex` takes.
const std::vector<std::string>& modelled_locks();

/// Whether a lock wants a server. Throws Error(unknown_name).
bool wants_server(std::string_view name);
/// Whether it has use for one: also `auto`, which goes by its steward. Throws Error(unknown_name).
bool may_have_server(std::string_view name);

}  // namespace muster::sim
