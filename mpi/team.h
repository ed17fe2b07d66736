/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The barrier of one communicator. Made at its first barrier, by all its ranks together, with the
 * MPI's own collectives: either all take it, or the MPI's own barrier goes on serving all. Knows no
 * MPI: the component and the preload give it a table of operations.
 *
 * A team belongs to a communicator, and like its collectives it is used by one thread at a time.
 * Different teams may be used by different threads.
 */
#ifndef MUSTER_MPI_TEAM_H
#define MUSTER_MPI_TEAM_H

#include <muster/muster.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/library.h"
#include "mpi/pool.h"
#include "mpi/settings.h"

/** What is needed of an MPI. Each returns 0 or an error, which team_barrier() hands on; `comm` is
 * the MPI's handle, or a pointer to it, as the caller of team_barrier() passed it. */
typedef struct mpi_operations {
  int (*allgather)(void* comm, const void* mine, void* all, int bytes);
  int (*broadcast)(void* comm, void* data, int bytes); /**< from rank 0 */
  int (*minimum)(void* comm, int* value);              /**< over all ranks, in place */
  int (*barrier)(void* comm);                          /**< the MPI's own */
  /** A communicator of those that lead, for those that do; collective. */
  int (*split)(void* comm, bool leads, void** leaders);
  int (*barrier_of_leaders)(void* leaders); /**< the MPI's own */
  void (*free_leaders)(void* leaders);
  /** A channel for empty messages that no others can meet; collective. */
  int (*open_channel)(void* comm, void** channel);
  int (*send)(void* channel, unsigned to);
  int (*send_synchronously)(void* channel, unsigned to); /**< until it is being received */
  int (*receive)(void* channel, unsigned from);
  int (*receive_any)(void* channel, unsigned count); /**< so many, from whoever sends first */
  void (*close_channel)(void* channel);
  void (*progress)(void);
  /** A rank's PMIx locality string, "" for an unbound one; false if there are none. May be NULL. */
  bool (*locality)(void* comm, int rank, char* text, size_t bytes);
  /** What the program calls it, "" if nothing. */
  void (*name)(void* comm, char* text, size_t bytes);
  unsigned (*job_rank)(void); /**< this process's, in MPI_COMM_WORLD */
  int error;                  /**< for what fails without the MPI */
} mpi_operations;

/** Barriers that this process has been through, by what served; sums over freed communicators. Add
 * team_counters() for live ones. */
typedef struct mpi_counters {
  uint64_t inside;   /**< ours, all ranks on one host */
  uint64_t hosts;    /**< ours, over several hosts */
  uint64_t messages; /**< base-* */
  uint64_t theirs;   /**< the MPI's own */
  uint64_t alone;    /**< of one rank: nothing to do */
  uint64_t teams;    /**< communicators that ours served */
  uint64_t reused;   /**< of them with a barrier used before */
  uint64_t declined; /**< communicators left to the MPI */
  /* With a report, of ours inside one host: */
  uint64_t waited_ns; /**< this rank for the last ones */
  uint64_t own_ns;    /**< in the barriers themselves */
} mpi_counters;

typedef enum team_kind {
  team_unmade,
  team_inside,   /**< all ranks on this host */
  team_watched,  /**< and somebody asked for a report */
  team_hosts,    /**< and others elsewhere */
  team_messages, /**< base-* over the MPI's own messages */
  team_alone,    /**< one rank */
  team_broken,   /**< what was team_hosts: this host's leader failed among the leaders */
  team_theirs    /**< the MPI's own barrier serves */
} team_kind;

typedef struct team {
  team_kind kind;
  unsigned size;
  unsigned rank;
  slot* slot; /**< of all of this host */
  uint64_t waits;
  int64_t spent_ns; /**< in waits that are not watched, if somebody asked for a report */
  uint64_t whose;   /**< the same for other communicators of the same ranks in the same order */
  uint64_t number;  /**< as report_entry's, as are the next */
  char name[64];
  char job_ranks[48];
  void* leaders; /**< of a host's leader */
  bool leads;
  bool has_channel;
  void* channel;
  muster_message_barrier over_messages;
  struct team* next; /**< of all teams */
  struct team** link;
} team;

/** Once, before any team; both must outlive all teams. */
void team_start(const mpi_operations* operations, const mpi_settings* settings);

/** A team for a communicator of `size` ranks; `declined`: why the MPI's own barrier is to serve, or
 * NULL. NULL if there is no memory. Local. */
team* team_new(unsigned size, unsigned rank, const char* declined);

/** Why the barriers of an MPI that goes on after failures are its own. */
extern const char faults_are_tolerated[];

/** Gives everything back. `mpi_lives`: the MPI may still be called. NULL is ignored. Local, but
 * for communicators that span hosts. */
void team_free(team* gone, bool mpi_lives);

/** Everything but the commonest case. */
int team_barrier_slowly(team* of, void* comm);
int team_barrier_failed(team* of, int status);

/** A barrier of the communicator; 0 or an error: an operation's, or mpi_operations.error. */
static inline int team_barrier(team* of, void* comm) {
  if (__builtin_expect(of->kind != team_inside, 0)) return team_barrier_slowly(of, comm);
  slot* const at = of->slot;
  at->polls = 0;
  ++of->waits;
  const int status = libmuster.barrier_wait(at->barrier, at->rank);
  return __builtin_expect(status == MUSTER_OK, 1) ? 0 : team_barrier_failed(of, status);
}

/** All counters of this process, of live teams too. */
mpi_counters team_counters(void);

/** At the end: prints the counters if that is asked for. */
void team_finish(void);

#endif /* MUSTER_MPI_TEAM_H */
