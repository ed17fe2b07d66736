// SPDX-License-Identifier: BSD-3-Clause
// On which CPUs threads may run.
#pragma once

#include <pthread.h>

#include <thread>

#include "topology/pu_set.hpp"

namespace muster::delegation {

/// The CPUs that a thread may run on; 0: the calling thread. Empty if the system does not say.
PuSet binding_of(int thread_id);
PuSet binding_of(std::thread& thread);
/// Binds it to them, as far as they are there. Zero, or the system's error.
int bind_thread(pthread_t thread, const PuSet& cpus);

/// CPUs that one thread of this process or another may run on: a single one may have been bound to
/// less than the process may use. Some microseconds, and one for each thread.
PuSet binding_of_process();

/// How many of them can run at a time, as far as control groups' quotas allow; at least 1. Counted
/// anew if the last count is a second old: 0.1 ms, 3 with 1,024 threads. Where there is no memory
/// for that, the last count. Thread-safe.
unsigned cpus_of_process() noexcept;
/// The last count.
unsigned cpus_last_counted() noexcept;
/// At the last count a control group's quota, rounded up, was less than the CPUs. Then who yields
/// uses up the others' time.
bool is_time_limited() noexcept;

}  // namespace muster::delegation
