/* SPDX-License-Identifier: BSD-3-Clause */
/* This process among the others of its host: who it is, and where it and they may run. */
#ifndef MUSTER_MPI_HOST_H
#define MUSTER_MPI_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** A process as the others know it. Plain data, sent as bytes. */
typedef struct identity {
  uint64_t process;  /**< random: no two processes of a job have the same */
  uint64_t host;     /**< the same for processes that can share memory and see each other's ids */
  uint32_t pid;      /**< valid on that host */
  uint32_t protocol; /**< what this version says to others; 0: it has no libmuster */
  uint32_t messages; /**< which barrier over messages is asked for, 1 is the first; 0: none */
  uint32_t job_rank; /**< in MPI_COMM_WORLD */
} identity;

/** This process. Thread-safe; reads the host's identity once. */
identity own_identity(void);

/** The CPUs that a process of this host may run on, as "0-3,8"; "" if nobody can tell. */
void affinity_text(pid_t pid, char* text, size_t bytes);

/** Of these processes the job's ranks, in their order, as "0-3,8"; it ends in "..." where the bytes
 * do. */
void job_ranks_text(const identity* all, unsigned count, char* text, size_t bytes);

/** Notes a process of this host that belongs to the job. Thread-safe. */
void note_neighbour(uint32_t pid);

/** Processes of the job on this host: at least those noted. `*pids`, to be freed by the caller,
 * names those noted, `*noted` of them; NULL if there is no memory. */
unsigned neighbours(uint32_t** pids, unsigned* noted);

/** Whether processes of this host are in different scheduling groups than this one: in sessions of
 * their own, where the kernel groups by them, or in control groups. */
bool scheduled_apart(const uint32_t* pids, unsigned count);

#endif /* MUSTER_MPI_HOST_H */
