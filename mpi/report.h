/* SPDX-License-Identifier: BSD-3-Clause */
/* MUSTER_REPORT: at the end, what a process's communicators spent in barriers, and waiting for
 * whom. Each communicator's rank 0 tells of it. One thread at a time.
 *
 * A program may make and free any number of them. Those that took most are told one by one; the
 * others are added up, by the ranks that they are of, as far as these are not too many, too. */
#ifndef MUSTER_MPI_REPORT_H
#define MUSTER_MPI_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "mpi/watch.h"

/** A communicator that is gone, or about to be. Names are copied. */
typedef struct report_entry {
  uint64_t whose;        /**< the same for all communicators of the same ranks in the same order */
  uint64_t number;       /**< among those that this process tells of; the first is 1 */
  const char* name;      /**< "": it has none */
  const char* job_ranks; /**< its ranks, as MPI_COMM_WORLD numbers them: "0-3" */
  const char* served;    /**< by what its barriers were; a constant */
  unsigned ranks;
  uint64_t barriers;
  int64_t spent_ns;  /**< by rank 0 in them; where they were not watched */
  const watch* seen; /**< NULL: not watched */
} report_entry;

/** It will be told of, alone or with others. */
void report_add(const report_entry* one);

/** Tells all, in one piece: as text on standard error, or if `path` is not NULL as a line of JSON
 * at that file's end. */
void report_tell(const char* path);

#endif /* MUSTER_MPI_REPORT_H */
