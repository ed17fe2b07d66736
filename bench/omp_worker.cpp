// SPDX-License-Identifier: BSD-3-Clause
// The worker program that runs an OpenMP runtime's barrier. libgomp and libomp export the same
// symbols, so each has a program of its own: this source, compiled by GCC and by clang.
//
//   muster-bench-libgomp <fd>      fd: of the Control block (bench/measure.hpp)
//
// Its environment is set by the coordinator (bench/team.cpp): no binding by the runtime, since each
// participant binds itself; OMP_WAIT_POLICY=active if everyone has a CPU. Otherwise the defaults:
// libgomp spins 300,000 polls, 1,000 if it has more threads than CPUs, then sleeps on a futex;
// libomp yields when oversubscribed, and sleeps after KMP_BLOCKTIME, 200 ms.
#include <omp.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "bench/worker.hpp"

using muster::bench::Control;
using muster::bench::map_control;
using muster::bench::report_failure;

// libomp notes in /dev/shm that it is loaded, and leaves that behind if it is killed. A file
// without a name serves it as well. (libgomp calls neither.)
extern "C" {
__attribute__((visibility("default"))) int shm_open(const char* name, int, mode_t) {
  return memfd_create(name, MFD_CLOEXEC);
}
__attribute__((visibility("default"))) int shm_unlink(const char*) { return 0; }
}

int main(int argc, char** argv) {
  Control* const control = argc == 2 ? map_control(std::atoi(argv[1])) : nullptr;
  if (control == nullptr) {
    std::fputs("This program is started by `muster bench barrier`.\n", stderr);
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  omp_set_dynamic(0);
  bool failed = false;
#pragma omp parallel num_threads(static_cast <int>(control->participants)) shared(failed)
  {
    const auto rank = static_cast<unsigned>(omp_get_thread_num());
#pragma omp single
    if (omp_get_num_threads() != static_cast<int>(control->participants)) {
      report_failure(*control, "the OpenMP runtime did not give as many threads");
      failed = true;
    }
    if (!failed) {
      if (!muster::bench::bind_self(*control, rank)) {
        report_failure(*control, "sched_setaffinity: a participant could not be bound");
      } else {
        muster::bench::Participant(*control, rank).serve([] {
#pragma omp barrier
        });
      }
    }
  }
  return 0;
}
