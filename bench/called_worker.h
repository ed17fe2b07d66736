/* SPDX-License-Identifier: BSD-3-Clause */
/* A participant whose barrier is a function of its caller's: for Python and for ranks of an MPI. */
#ifndef MUSTER_BENCH_CALLED_WORKER_H
#define MUSTER_BENCH_CALLED_WORKER_H

#ifdef __cplusplus
extern "C" {
#endif

/** Of the measurement whose Control block (bench/measure.hpp) that file is; 0: it is none. */
__attribute__((visibility("default"))) unsigned muster_bench_participants(int fd);

/** Takes part until the measurement ends; an exit code. */
__attribute__((visibility("default"))) int muster_bench_serve(int fd, unsigned rank,
                                                              void (*wait)(void));

#ifdef __cplusplus
}
#endif

#endif /* MUSTER_BENCH_CALLED_WORKER_H */
