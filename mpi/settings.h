/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user set; see doc/mpi.md. */
#ifndef MUSTER_MPI_SETTINGS_H
#define MUSTER_MPI_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mpi_settings {
  const char* barrier;
  const char* levels;
  const char* wait;
  int verbose;
  bool counters;      /**< print them at the end */
  const char* report; /**< "1": on standard error, else a file; NULL: none */
} mpi_settings;

/** The number in an environment variable; 0 if it has none, which it says of other text. */
int number_in(const char* variable);
/** What MUSTER_REPORT says, as mpi_settings.report. */
const char* report_asked_for(void);

/** Which message barrier is asked for: 1 is the first of muster_message_barrier_names(), 0 none. */
uint32_t message_barrier_asked_for(const mpi_settings* settings);

/** The algorithm over the levels asked for, if any: "topo-NUMA", "scheduled-NUMA:tree8/all". */
void algorithm_asked_for(const mpi_settings* settings, char* text, size_t bytes);

#endif /* MUSTER_MPI_SETTINGS_H */
