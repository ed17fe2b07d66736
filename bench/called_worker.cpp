// SPDX-License-Identifier: BSD-3-Clause
#include "bench/called_worker.h"

#include <sys/prctl.h>

#include <csignal>

#include "bench/worker.hpp"

unsigned muster_bench_participants(int fd) {
  const muster::bench::Control* const control = muster::bench::map_control(fd);
  return control == nullptr ? 0 : control->participants;
}

int muster_bench_serve(int fd, unsigned rank, void (*wait)()) {
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
