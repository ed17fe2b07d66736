// SPDX-License-Identifier: BSD-3-Clause
#include "topology/hwloc_topology.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "machine/error.hpp"

namespace muster {
namespace {

/// Threads that are where hwloc holds its mutex, and those that fork. They wait for each other: a
/// fork's child would never get the mutex that another thread had.
std::atomic<unsigned> in_hwloc{0};
std::atomic<unsigned> forks{0};
/// Of the former, those that are there: a fork is not under way, or takes too long.
std::atomic<unsigned> have_mutex{0};
/// The process is a child that found a thread there all the same: it does without hwloc.
bool hwloc_is_parents = false;

/// How long they wait at most, since whoever is awaited may need what other fork handlers hold,
/// or be awaited by them, or be the very thread that waits.
class Second {
 public:
  /// Naps; false when it is over.
  bool naps() const {
    const timespec time{0, 1'000'000};
    syscall(SYS_nanosleep, &time, nullptr);  // no cancellation point, as fork() is none
    return std::chrono::steady_clock::now() < end_;
  }

 private:
  const std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(1);
};

[[gnu::constructor(101)]] void watch_forks() {
  pthread_atfork(
      [] {
        ++forks;
        for (const Second left; in_hwloc != 0 && !hwloc_is_parents && left.naps();) continue;
      },
      [] { --forks; },
      [] {
        forks = 0;
        hwloc_is_parents |= have_mutex != 0;
        if (!hwloc_is_parents) in_hwloc = 0;  // the parent's threads
      });
}

auto within_hwloc(auto call) {
  ++in_hwloc;
  bool waits = true;
  for (const Second left; forks != 0 && waits; ++in_hwloc) {
    --in_hwloc;
    waits = left.naps();
  }
  ++have_mutex;
  const auto result = call();
  --have_mutex;
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
