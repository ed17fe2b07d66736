// SPDX-License-Identifier: BSD-3-Clause
#include "topology/hwloc_topology.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "machine/error.hpp"

namespace muster {
namespace {

/// Threads that are where hwloc holds its mutex, and those that fork. They wait for each other: a
/// fork's child would never get the mutex that another thread had.
std::atomic<unsigned> in_hwloc{0};
std::atomic<unsigned> forks{0};
/// So often at most: who is awaited may need what other fork handlers hold, or be awaited by them,
/// or be the very thread that waits.
constexpr unsigned naps_max = 1000;
void nap() {
  const timespec time{0, 1'000'000};
  syscall(SYS_nanosleep, &time, nullptr);  // no cancellation point, as fork() is none
}
/// The process is a child that found a thread there all the same: it does without hwloc.
bool hwloc_is_parents = false;

[[gnu::constructor(101)]] void watch_forks() {
  pthread_atfork(
      [] {
        ++forks;
        for (unsigned naps = 0; in_hwloc != 0 && naps < naps_max && !hwloc_is_parents; ++naps)
          nap();
      },
      [] { --forks; },
      [] {
        forks = 0;
        hwloc_is_parents |= in_hwloc != 0;
      });
}

auto within_hwloc(auto call) {
  ++in_hwloc;
  for (unsigned naps = 0; forks != 0 && naps < naps_max; ++naps) {
    --in_hwloc;
    nap();
    ++in_hwloc;
  }
  const auto result = call();
  --in_hwloc;
  return result;
}

}  // namespace

void HwlocTopologyDeleter::operator()(hwloc_topology_t topology) const noexcept {
  within_hwloc([topology] { return hwloc_topology_destroy(topology), 0; });
}

HwlocTopology make_hwloc_topology() {
  if (hwloc_is_parents) {
    throw Error(Status::busy,
                "another thread was in hwloc when this process was forked, and hwloc's mutex stays "
                "taken here: fork while no thread makes barriers, locks or servers");
  }
  hwloc_topology_t topology = nullptr;
  if (within_hwloc([&] { return hwloc_topology_init(&topology); }) != 0) {
    throw Error(Status::no_memory, "hwloc_topology_init failed: out of memory");
  }
  return HwlocTopology(topology);
}

}  // namespace muster
