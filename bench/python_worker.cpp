// SPDX-License-Identifier: BSD-3-Clause
// What bench/python_worker.py loads: a participant whose barrier is a function of its caller's.
#include <sys/prctl.h>

#include <csignal>

#include "bench/worker.hpp"

extern "C" {

/// 0: the descriptor is none of a measurement's.
__attribute__((visibility("default"))) unsigned muster_bench_participants(int fd) {
  const muster::bench::Control* const control = muster::bench::map_control(fd);
  return control == nullptr ? 0 : control->participants;
}

/// Takes part until the measurement ends; an exit code.
__attribute__((visibility("default"))) int muster_bench_serve(int fd, unsigned rank,
                                                              void (*wait)()) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  muster::bench::Control* const control = muster::bench::map_control(fd);
  if (control == nullptr) return 2;
  if (!muster::bench::bind_self(*control, rank)) {
    muster::bench::report_failure(*control, "sched_setaffinity: a participant could not be bound");
    return 1;
  }
  muster::bench::Participant(*control, rank).serve(wait);
  return 0;
}
}
