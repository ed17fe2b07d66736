/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Muster's C interface: barriers that know where their participants sit.
 *
 * A barrier has a fixed number of participants, ranks 0 to participants - 1: threads of one
 * process, or processes (or both) that share a segment. Each rank belongs to one thread at a time,
 * and from its first wait on to one process.
 *
 * Functions return a muster_status; muster_last_error() has the text for the calling thread.
 * Unless it says otherwise, a function may be called by any thread at any time; calls on one handle
 * by several threads are safe for different ranks, and creating, attaching and destroying a handle
 * are not safe beside other calls on the same handle. Times are in nanoseconds, memory in bytes.
 *
 * Nothing here aborts or installs a signal handler. What is not seen in a call: publishing starts a
 * thread that hands out the descriptor, and ends soon after the program's last one; fork handlers
 * (pthread_atfork) keep a child off its parent's ranks; and with MUSTER_WATCHDOG=seconds in the
 * environment, a wait that takes longer names the missing ranks on stderr. MUSTER_TOPOLOGY imposes
 * a topology, as options.topology does. MUSTER_PROFILE names what `muster tune` has found, for
 * "auto"; without it the user's and the system's configuration folder are looked into. A program
 * with rights that its caller has not (setuid) reads none of these, and loses hwloc's HWLOC_*.
 *
 * [K22]: M. Kurnosov, "Hierarchical barrier synchronization algorithm for multicore shared-memory
 * systems", Vestnik SibSUTIS 16(2), 2022.
 *
 *   muster_options options;
 *   muster_options_init(&options);
 *   options.participants = 4;
 *   muster_barrier *barrier;
 *   if (muster_barrier_create(&barrier, &options) != MUSTER_OK) { puts(muster_last_error()); ... }
 *   muster_barrier_wait(barrier, rank);        each participant, as often as it likes
 *   muster_barrier_destroy(barrier);           once nobody will wait any more
 */
#ifndef MUSTER_MUSTER_H
#define MUSTER_MUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "muster/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Names of all barrier algorithms, NULL-terminated; besides them there are "auto",
 * "topo-LEVEL[-LEVEL...]" and "topo-counter-LEVEL[-LEVEL...]", and trees of counters take a
 * ":RADIX" ("combining-tree:4"). Static; thread-safe. */
MUSTER_API const char* const* muster_barrier_names(void);

typedef struct muster_barrier muster_barrier;
typedef struct muster_segment muster_segment;

/** Flags of muster_options. */
enum {
  MUSTER_SHARED = 1U, /**< participants are, or may be, several processes */
  MUSTER_SPLIT = 2U,  /**< muster_barrier_arrive() and _depart() will be used */
  MUSTER_EXACT = 4U,  /**< fail with MUSTER_EDECLINED rather than let another algorithm serve */
  MUSTER_APART = 8U   /**< participants are in different scheduling groups (sessions, where the
                           kernel groups by them, or control groups): who yields its CPU does not
                           let the others have it, who sleeps does */
};

/** How a barrier is made. Initialise with muster_options_init(), then set what differs. Strings are
 * copied. */
typedef struct muster_options {
  /** Set by muster_options_init(); do not touch. */
  size_t size;
  /** 1 to 65536; default 1. */
  unsigned participants;
  /** Default NULL: "auto". */
  const char* algorithm;
  /** "auto" (default NULL), which learns from its waits, or a fixed way: "spin", "yield", "sleep",
   * "spin-yield", "spin-yield-sleep", "yield-sleep". */
  const char* wait;
  /** MUSTER_SHARED | MUSTER_SPLIT | MUSTER_EXACT | MUSTER_APART; default 0. */
  unsigned flags;

  /* Where the participants sit; all NULL: unknown, and `topo` declines. */

  /** An hwloc XML file or synthetic description whose tree is imposed; default NULL:
   * $MUSTER_TOPOLOGY, else this machine. */
  const char* topology;
  /** "core", "numa" or "socket": rank i is bound as [K22, section 3] says. The caller does the
   * binding. */
  const char* map_by;
  /** One string a rank: PUs by the operating system's numbers ("0-3,8"), or a PMIx locality string
   * ("SK0:L31:L232:L132:CR32:HT32:NM1"); "" or NULL: unbound. Excludes map_by. */
  const char* const* bindings;

  /* Who else wants these CPUs, such as the ranks of an MPI job outside of this communicator: where
   * participants and others have no CPU each, waits give it up at once. */

  /** How many; 0 to 65536. */
  unsigned others;
  /** One string each, as `bindings`; NULL: unbound. */
  const char* const* other_bindings;

  /* Where the memory is; at most one. Default: the barrier's own, of one process or, with
   * MUSTER_SHARED, a segment's. */

  /** Shared with the other barriers in it; only the process that created the segment creates in
   * it. */
  muster_segment* segment;
  /** The caller's, zeroed (else MUSTER_EINVAL), aligned and as large as muster_barrier_memory()
   * says; with MUSTER_SHARED shared between processes by the caller. */
  void* memory;
  size_t memory_bytes;

  /* Called by waiting participants of this process; NULL: none. Processes that attach begin with
   * none: muster_barrier_set_hooks(). */

  /** While a wait is not over: about once a microsecond while it polls, at every turn while it
   * yields, twice a millisecond while it sleeps. Nonzero: there is more to do soon, so the
   * participant does not sleep before the next call. Must not wait at this barrier. */
  int (*progress)(void* context);
  /** Once an episode, by one participant, after all have arrived and before any leaves; nonzero
   * breaks the barrier. */
  int (*completion)(void* context);
  void* context;

  /** Where the counters start; for tests of their wrapping. */
  uint32_t first_episode;
} muster_options;

/** Sets the defaults. `size`: sizeof(muster_options) by the caller's header. A library that has
 * more options takes the others' defaults; one that has fewer refuses what it lacks. NULL is
 * ignored. C and C++ call muster_options_init(). */
MUSTER_API void muster_options_init_sized(muster_options* options, size_t size);
static __inline void muster_options_init(muster_options* options) {
  muster_options_init_sized(options, sizeof *options);
}

/** Makes a barrier. `*barrier` is untouched on failure. Reads the topology (milliseconds, once a
 * process) only if placements are given. A process's first one takes 5 to 20 ms if other threads
 * have been started before it. MUSTER_EINVAL, MUSTER_EUNKNOWN: the options;
 * MUSTER_EDECLINED: with MUSTER_EXACT; MUSTER_ENOTSUP: MUSTER_SPLIT or a completion with an
 * algorithm that has no place for it, or a segment of another process; MUSTER_EBUSY: a fork's child
 * whose parent was reading the machine; MUSTER_ENOMEM; MUSTER_ESYSTEM. */
MUSTER_API int muster_barrier_create(muster_barrier** barrier, const muster_options* options);

/** What a barrier with these options needs of the caller's memory, for options.memory: bytes, and
 * the alignment (a power of two; may be NULL). Fails as muster_barrier_create() does. */
MUSTER_API int muster_barrier_memory(const muster_options* options, size_t* bytes,
                                     size_t* alignment);

/** A barrier's segment, to be handed to other processes (SCM_RIGHTS, or inherited; it is
 * close-on-exec), and closed with the handle; -1 if it has none. */
MUSTER_API int muster_barrier_fd(const muster_barrier* barrier);

/** Where the barrier is in its segment, for muster_barrier_attach_at(); 0 for one that has a
 * segment of its own. */
MUSTER_API uint64_t muster_barrier_handle(const muster_barrier* barrier);

/** Offers the barrier under a name, for as long as it lives, to processes of the same user in the
 * same network namespace. Nothing appears in the file system. `name`: 1 to 64 of [A-Za-z0-9._-].
 * MUSTER_EINVAL: another name; MUSTER_ENOTSUP: a barrier without a segment of its own;
 * MUSTER_EBUSY: it is taken; MUSTER_ESYSTEM. */
MUSTER_API int muster_barrier_publish(muster_barrier* barrier, const char* name);

/** Attaches to the barrier behind a descriptor, of which a duplicate is made. `*barrier` is
 * untouched on failure: MUSTER_EFOREIGN tells what differs from a barrier of ours; MUSTER_EINVAL;
 * MUSTER_ENOMEM; MUSTER_ESYSTEM. */
MUSTER_API int muster_barrier_attach(muster_barrier** barrier, int fd);
/** The same for one that is published, waiting up to `timeout_ns` (0 or more) for its name:
 * MUSTER_ETIMEDOUT. */
MUSTER_API int muster_barrier_attach_name(muster_barrier** barrier, const char* name,
                                          int64_t timeout_ns);
/** The same for a barrier that another process created in a segment; `handle`: that process's
 * muster_barrier_handle(). */
MUSTER_API int muster_barrier_attach_at(muster_barrier** barrier, muster_segment* segment,
                                        uint64_t handle);
/** The same for one in memory that the caller shares; `bytes` of it may be touched. MUSTER_EINVAL,
 * too: it was created without MUSTER_SHARED. */
MUSTER_API int muster_barrier_attach_memory(muster_barrier** barrier, void* memory, size_t bytes);

/** What this process's waiting participants call: for a process that attached, as the options do
 * for the creator. Before the first wait of each rank that is to call them. MUSTER_EINVAL: a
 * completion for a barrier that was created without one, or none for one that was created with one;
 * such a barrier's waits fail with MUSTER_ENOTSUP in a process that has not set it. */
MUSTER_API int muster_barrier_set_hooks(muster_barrier* barrier, int (*progress)(void* context),
                                        int (*completion)(void* context), void* context);

/** Waits until all participants have called it for this episode. Everything they wrote before is
 * visible after. A rank's first wait in a process allocates its private state; later ones allocate
 * nothing and make no system call while nobody sleeps. Not a cancellation point.
 * MUSTER_EPEER, MUSTER_EBROKEN: the barrier is broken for all participants and stays so.
 * MUSTER_EINVAL: no such rank; MUSTER_EBUSY: the rank is another thread's or process's;
 * MUSTER_ENOTSUP: see muster_barrier_set_hooks(); MUSTER_ENOMEM: the first wait. After these four
 * the rank has not arrived, and the barrier is as it was. */
MUSTER_API int muster_barrier_wait(muster_barrier* barrier, unsigned rank);

/** The same, but gives up after `timeout_ns` with MUSTER_ETIMEDOUT (0 or less: at once, unless all
 * others have arrived). An arrival cannot be withdrawn, so that breaks the barrier for all its
 * participants. If all have arrived by then it goes on, for three seconds at most. */
MUSTER_API int muster_barrier_timedwait(muster_barrier* barrier, unsigned rank, int64_t timeout_ns);

/** The two halves of a wait: arrive never waits, depart returns when all have arrived. With
 * MUSTER_SPLIT and an algorithm that can ("auto" chooses one); else MUSTER_ENOTSUP. Each arrive is
 * followed by one depart of the same rank (MUSTER_EBUSY, MUSTER_EINVAL), also before the barrier is
 * destroyed. Otherwise they fail as muster_barrier_wait() does. */
MUSTER_API int muster_barrier_arrive(muster_barrier* barrier, unsigned rank);
MUSTER_API int muster_barrier_depart(muster_barrier* barrier, unsigned rank);

/** Why a barrier is broken: MUSTER_OK while it is whole, else the cause; `*rank`, if not NULL: who
 * timed out, failed or died, or was waiting when it was destroyed (MUSTER_EBUSY). MUSTER_EFOREIGN:
 * something has overwritten its memory; `*rank` says who found it. */
MUSTER_API int muster_barrier_blame(const muster_barrier* barrier, unsigned* rank);

/** Participants of the barrier; 0 for NULL. */
MUSTER_API unsigned muster_barrier_participants(const muster_barrier* barrier);

/** What was chosen, and why. The texts live as long as the barrier. */
typedef struct muster_barrier_choice {
  unsigned participants;
  const char* algorithm;   /**< that serves, as muster_options can name it; never "auto" */
  const char* asked;       /**< what was asked for: such a name, or "auto" */
  const char* why;         /**< the deciding fact */
  const char* wait;        /**< the way to wait */
  const char* wait_why;    /**< and why */
  const char* levels_left; /**< of the machine's levels those that are not used, and why; or "" */
} muster_barrier_choice;
/** `size`: sizeof *choice. More members may come after these. Thread-safe. MUSTER_EINVAL: no
 * barrier, or no place. */
MUSTER_API int muster_barrier_get_choice(const muster_barrier* barrier,
                                         muster_barrier_choice* choice, size_t size);

/** What was chosen and why: algorithm, levels, groups, wait policy, bytes; and what the ranks of
 * this process have learnt from their waits, if they wait by "auto", and where participants that
 * nobody has bound were seen. Before anybody's first wait, or by one whose own first wait has
 * returned. `format`: "text" (or NULL) or "json". Writes at most
 * `bytes` characters with the final NUL; `*needed`, if not NULL, gets what the whole text takes.
 * MUSTER_EUNKNOWN: another format; MUSTER_EINVAL: no barrier, or bytes without a place. */
MUSTER_API int muster_barrier_explain(const muster_barrier* barrier, const char* format, char* text,
                                      size_t bytes, size_t* needed);

/** Frees this process's side, and in the process that created it the memory, once every participant
 * that is still inside its last wait, or between arrive and depart, has left it. May be called as
 * soon as the caller's own last wait has returned; whoever waits for a rank of this process after
 * that gets MUSTER_EPEER. Who has not left after three seconds gets MUSTER_EBROKEN; where that does
 * not help within three more, or a process has written nonsense into the shared memory, nothing is
 * freed, and muster_last_error() says so. NULL is ignored.
 *
 * A program may end while its threads are parked at a barrier in memory of its own, without
 * MUSTER_SHARED and `progress`: who waits for somebody that has not come waits on there, and
 * nothing is freed. */
MUSTER_API void muster_barrier_destroy(muster_barrier* barrier);

/** Memory that several processes share, for many barriers: `bytes` are allocated at once, and
 * nothing is left behind by any exit. MUSTER_EINVAL: 0 bytes; MUSTER_ENOMEM: the machine has not so
 * many; MUSTER_ESYSTEM. */
MUSTER_API int muster_segment_create(muster_segment** segment, size_t bytes);
/** Attaches to a segment as muster_barrier_attach() does to a barrier. */
MUSTER_API int muster_segment_attach(muster_segment** segment, int fd);
/** Attaches to a segment as muster_barrier_attach_name() does to a barrier. */
MUSTER_API int muster_segment_attach_name(muster_segment** segment, const char* name,
                                          int64_t timeout_ns);
/** Offers a segment under a name as muster_barrier_publish() does a barrier. */
MUSTER_API int muster_segment_publish(muster_segment* segment, const char* name);
/** The segment's descriptor, closed with it; -1 for NULL. */
MUSTER_API int muster_segment_fd(const muster_segment* segment);
/** The segment's bytes in this process, for a caller that hands them out itself (options.memory,
 * muster_barrier_attach_memory()); zeroed at first. Exclusive with options.segment. `*bytes`, if
 * not NULL: how many. NULL for NULL. */
MUSTER_API void* muster_segment_data(const muster_segment* segment, size_t* bytes);
/** After all barriers in it were destroyed in this process. NULL is ignored. */
MUSTER_API void muster_segment_destroy(muster_segment* segment);

/** How messages go from rank to rank, for the barriers that an MPI runs over its own. Empty
 * messages, in order between two ranks; 0 or an error of the caller's. `send` must not wait for the
 * receiver; `send_synchronously` returns when the receiver has begun to receive it; `receive_any`
 * receives `count` messages, whoever sent them, and may ask for all at once. None may be NULL. */
typedef struct muster_messages {
  int (*send)(void* context, unsigned to);
  int (*send_synchronously)(void* context, unsigned to);
  int (*receive)(void* context, unsigned from);
  int (*receive_any)(void* context, unsigned count);
  void* context;
} muster_messages;

/** One episode of rank `rank` of `participants`. 0, or the first error of a send or receive. Each
 * rank's calls are one thread's at a time; nothing is shared between ranks. */
typedef int (*muster_message_barrier)(const muster_messages* messages, unsigned rank,
                                      unsigned participants);

/** Their names: "base-linear", "base-double-ring", "base-recursive-doubling", "base-bruck",
 * "base-tree" [K22, section 3]; NULL-terminated. Static. */
MUSTER_API const char* const* muster_message_barrier_names(void);

/** The barrier of that name; NULL if there is none. */
MUSTER_API muster_message_barrier muster_message_barrier_named(const char* name);

#ifdef __cplusplus
}
#endif

#include "muster/lock.h"  /* critical sections as calls */
#include "muster/mutex.h" /* a mutex that knows NUMA nodes */

#endif /* MUSTER_MUSTER_H */
