/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Critical sections as calls: a lock executes them in mutual exclusion, in the calling thread, in
 * whichever thread has the lock, or in a server thread on a core of its own. Part of muster.h.
 *
 *   muster_lock* lock;
 *   muster_lock_create(&lock, NULL);                 "auto": the lock decides by itself
 *   muster_lock_execute(lock, increment, &counter);  returns when increment(&counter) has run
 *   muster_lock_destroy(lock);
 *
 * A section runs on whatever thread executes it: thread-local variables are that thread's (errno
 * alone comes back), and so are its thread id, its stack and its signal mask. A section must not
 * end its thread, jump out, switch to another fibre, or wait for something that only its own caller
 * would do later. In C++ it is in no handler of its caller's: `throw;` in a section ends the
 * program where another thread executes it. Rethrow a std::current_exception() that the caller has
 * taken.
 *
 * A thread may be cancelled at a cancellation point in its own section: clean-up handlers run, and
 * the lock is given back. It may be cancelled only at its next cancellation point after the call,
 * which is none, if another thread executes the section, if that nests in another one, if others
 * wait, in a thread's first section, and with "h-synch". It is never cancelled in another thread's
 * section. A section that must not end half done disables cancellation.
 *
 * [BA10]: B. Brandenburg, J. Anderson, Real-Time Systems 46(1), 2010.
 * [PS18]: A. Paznikov, Y. Shichkina, Information 9(1):21, 2018.
 */
#ifndef MUSTER_LOCK_H
#define MUSTER_LOCK_H

#include <stddef.h>
#include <stdint.h>

#include "muster/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct muster_lock muster_lock;
typedef struct muster_cond muster_cond;
typedef struct muster_server muster_server;

/** A critical section. What it throws ends the program (std::terminate), whoever executes it: its
 * lock would stay taken. C++'s muster::lock::execute() carries exceptions to its caller. */
typedef void (*muster_section)(void* argument);

/** Names of all kinds of locks, NULL-terminated. Static; thread-safe. */
MUSTER_API const char* const* muster_lock_names(void);

/** How a lock is made. Initialise with muster_lock_options_init(), then set what differs. */
typedef struct muster_lock_options {
  size_t size;           /**< set by muster_lock_options_init(); do not touch */
  const char* kind;      /**< default NULL: "auto" */
  muster_server* server; /**< of "rcl" and "auto"; default NULL: the process's own of that kind. The
                            first "rcl" lock starts theirs, which stays; that of "auto" locks comes
                            when clients meet and a core is free, and leaves by itself. The lock
                            keeps it alive. */
  void* memory; /**< between processes, for "robust" (then the default kind): muster_lock_memory()
                   bytes, aligned to 128, which the caller shares; default NULL */
  int attach;   /**< nonzero: another process has made the lock that is there */
  const char* own_server; /**< "rcl" and "auto", instead of `server`: one of this lock's own, placed
                             when the lock is made [PS18, Algorithm 1] and ended with it. "pack" or
                             "spread" (RCLLockInitNUMA), or CPUs (RCLLockInitDefault), as
                             muster_server_start() takes them. Memory that follows the servers is
                             bound to their NUMA node with it, or lifted. Two threads; default NULL:
                             the lock shares a server */
  int unlocks; /**< nonzero: sections call muster_lock_unlocked(). "auto" and "rcl" then do not let
                  clients execute each other's sections; MUSTER_ENOTSUP for kinds that always do */
  int64_t turn_ns;  /**< "auto" and "rcl": a client that has the lock executes what others have
                      posted: 64 sections, or for so long if that is longer. What others have
                      waited before counts, 8 us and some passes over their requests. Then it goes
                      on with its own, and who waits for the lock itself may have it. Default
                      0: a millisecond. MUSTER_ENOTSUP for other kinds, MUSTER_EINVAL below 0 */
  int64_t share_ns; /**< not 0: threads share the time in sections, not their number. Whose sections
                       have taken so much longer than another thread's waits until the others have
                       caught up, or could have: with n of them for n times what it is ahead.
                       2,000,000 is a good value; INT64_MAX only counts. A thread counts for 0.1 s
                       after its last section. Costs three looks at the clock a section. Default 0.
                       Sections that share the lock are not counted. MUSTER_ENOTSUP with `memory`,
                       MUSTER_EINVAL below 0 */
  unsigned turn_sections; /**< "cc-synch", "dsm-synch", "flat-combining", "h-synch": a client
                             executes so many sections in a row at most; with "flat-combining" up
                             to the end of a pass over all that wait, and 8 passes at most. Default
                             0: 64. MUSTER_ENOTSUP for other kinds */
} muster_lock_options;

/** Sets the defaults. Else as muster_options_init_sized(). */
MUSTER_API void muster_lock_options_init_sized(muster_lock_options* options, size_t size);
static __inline void muster_lock_options_init(muster_lock_options* options) {
  muster_lock_options_init_sized(options, sizeof *options);
}

/** Makes a lock; `options` may be NULL. `*lock` is untouched on failure. Thread-safe. A process's
 * first one takes 5 to 20 ms if other threads have been started before it, else next to nothing,
 * but for a server's start.
 * MUSTER_EUNKNOWN: no such kind or policy. MUSTER_ENOTSUP: this kind cannot be shared between
 * processes. MUSTER_EINVAL: a server for a kind that has none, or two, `attach` without memory or
 * to memory without a lock that is complete, or memory that is not aligned; or the server that it
 * needs cannot start. MUSTER_EBUSY: its server was started before a fork, in the parent.
 * MUSTER_ENOMEM: its server has a million locks, or there is no memory. MUSTER_ESYSTEM: no thread
 * can be made for a server. */
MUSTER_API int muster_lock_create(muster_lock** lock, const muster_lock_options* options);

/** Bytes of a lock between processes, aligned to 128. */
MUSTER_API size_t muster_lock_memory(void);

/** Executes `section(argument)` in mutual exclusion with all sections of this lock, and returns
 * after it; its writes are then visible, and errno is what it left, if that is not 0. Sections may
 * nest, in other locks. A thread's first call may allocate. No cancellation point, but for those in
 * the section.
 * MUSTER_EINVAL: the caller is in a section of this very lock, and would wait for itself.
 * MUSTER_EBUSY: the lock was made before a fork, in the parent.
 * MUSTER_EPEER: a process or thread died in a section of this "robust" lock (EOWNERDEAD), or
 * nonsense was written to its memory, and nothing was executed: see muster_lock_recover(). It takes
 * some 20 to 40 ms to find that out.
 * MUSTER_ENOMEM: more than 16,384 threads use locks at once; one that has nested sections counts up
 * to once more for each level, until it ends. */
MUSTER_API int muster_lock_execute(muster_lock* lock, muster_section section, void* argument);

/** The same, and faster where another thread executes the section: the `bytes` at its argument may
 * go with the request, and come back with the answer. So the section may get the address of a copy,
 * which is good in that section only. They are the caller's alone until the call returns: writable,
 * and copied without the lock. There is no copy, which is the same but for the time, if `bytes`
 * are more than MUSTER_LOCK_COPY_MAX, no multiple of 8 or not aligned to 8; in sections of other
 * locks; with share_ns; for other kinds than `rcl` and `auto`; and mostly where the calling thread
 * executes it. */
#define MUSTER_LOCK_COPY_MAX 40
MUSTER_API int muster_lock_execute_copy(muster_lock* lock, muster_section section, void* argument,
                                        size_t bytes);

/** The same for a section that only reads what the lock protects: beside others of this kind where
 * the lock has readers, which is "phase-fair" [BA10, PF-T]; else in mutual exclusion. There it runs
 * on the calling thread, waits for one writer at most, and lets the next one in when it ends. A
 * section of that kind does not post to this lock, wait for its conditions or give it up:
 * MUSTER_EINVAL. So it is where this lock is read in any section of it: readers do not nest. Else
 * as muster_lock_execute(). */
MUSTER_API int muster_lock_execute_shared(muster_lock* lock, muster_section section,
                                          void* argument);

/** Takes the lock for the calling thread, until muster_lock_release(): for sections that stay where
 * they are, while others are calls. Meanwhile the thread is in a section of the lock, for all
 * functions here. `auto`, `rcl`, `robust`, `pthread-mutex`, `phase-fair`, `mcs`, `ticket` and
 * `cas-spin`; MUSTER_ENOTSUP for other kinds. Inside of other locks' sections, too; outside of all,
 * what the thread has posted to the lock's server comes before. Not a cancellation point; errno is
 * untouched. Else fails as muster_lock_execute() does. */
MUSTER_API int muster_lock_acquire(muster_lock* lock);
/** The same if it is free at once, else MUSTER_ETIMEDOUT; also if what the thread has posted to its
 * server has not been executed yet. */
MUSTER_API int muster_lock_try_acquire(muster_lock* lock);
/** The same for `timeout_ns` at most; 0 or less: at once. Out of turn: it looks again and again, at
 * least once in a millisecond. */
MUSTER_API int muster_lock_timed_acquire(muster_lock* lock, int64_t timeout_ns);
/** Gives it back: by the thread that has acquired it, and in the same section if it was in one;
 * several locks in any order. A section that leaves with a lock that it has acquired ends the
 * program (std::terminate): it may be another thread's than its caller's. What the thread has
 * posted to the lock meanwhile is executed before. A fork's child that was made meanwhile calls it,
 * too, and has nothing to give. MUSTER_EINVAL: the caller has not acquired it here; it is as it
 * was. */
MUSTER_API int muster_lock_release(muster_lock* lock);
/** Executes `section(argument)` here, if the lock is free at once: muster_lock_try_acquire(), the
 * section, and muster_lock_release(). */
MUSTER_API int muster_lock_try_execute(muster_lock* lock, muster_section section, void* argument);

/** Has it executed, and may return before: fire and forget. After the caller's earlier sections of
 * this lock's server and before its later ones outside of sections; up to 16 can be outstanding,
 * then it waits for half of them. That is so of "rcl" and "auto" with a server: else it is
 * muster_lock_execute(). In a section: to a lock that the section has, it is executed right after
 * the section, or when that gives the lock up; to another "rcl" or "auto" lock it is sent when the
 * thread has no lock any more; neither waits. Where a server's threads cannot
 * keep up with sending what a caller's sections have posted, its next call to that server outside
 * of sections, this one or muster_lock_execute(), may wait for them, for a second at most.
 * `argument` has to live until it is executed. Fails as muster_lock_execute() does. */
MUSTER_API int muster_lock_post(muster_lock* lock, muster_section section, void* argument);

/** In a section, before it waits for something that sections posted to `lock` do: those that this
 * thread has posted, and that would only come after the section that waits, are executed there and
 * then. Elsewhere it does nothing, and `lock` may be gone. muster::future calls it by itself.
 * MUSTER_EINVAL: the caller is in a section of this very lock, so what has not been executed by now
 * is not before that section ends: do not wait for it. MUSTER_EBUSY: as muster_lock_execute(). */
MUSTER_API int muster_lock_prepare_wait(muster_lock* lock);

/** Inside a section of `lock`, which is the innermost one, or where the lock is acquired: executes
 * what was posted to it, gives it up, calls `outside(argument)` there and then, on the thread that
 * executes the section, and takes the lock again. What the lock protects may then be changed by
 * others. Locks of sections around it stay taken meanwhile. In `outside` the thread is as outside
 * of this section: it may execute sections of the same lock, and what it throws ends the program
 * (std::terminate). errno is what it left. Not a cancellation point, nor is what it calls. A fork's
 * child that is made in there has no lock when it comes back: let it call exec or _exit.
 * MUSTER_EINVAL outside of such a section, and in a section of another lock inside of it: nothing
 * was called; so with MUSTER_ENOTSUP: the lock was made without `unlocks` (only "auto" and "rcl"
 * need it), or its kind cannot. MUSTER_EPEER, after the call and with the lock taken: as
 * muster_cond_wait(). */
MUSTER_API int muster_lock_unlocked(muster_lock* lock, muster_section outside, void* argument);

/** Which of a line of forked processes the caller is in, once there is a lock: a fork's child gets
 * another number than its parent, and what was posted under that one is never executed in the
 * child. Thread-safe. */
MUSTER_API unsigned muster_process_number(void);

/** A "robust" lock whose holder died is refused to everybody with MUSTER_EPEER until somebody has
 * set right what it protects, in this section. MUSTER_EINVAL in a section of this very lock.
 * MUSTER_ENOTSUP: other kinds. MUSTER_EBUSY: as muster_lock_execute(). */
MUSTER_API int muster_lock_recover(muster_lock* lock, muster_section section, void* argument);

/** What became of a lock's sections so far: of `rcl` and `auto`, else 0, but for section_ns. */
typedef struct muster_lock_counters {
  uint64_t by_client;    /**< executed by the client that asked */
  uint64_t by_others;    /**< by a server, or by a client that had the lock */
  uint64_t by_combiners; /**< of these by clients */
  uint64_t switches;     /**< "auto": a client began to post its sections, or stopped */
  uint64_t section_ns;   /**< time in sections, with muster_lock_options::share_ns; else 0 */
} muster_lock_counters;
/** `size`: sizeof *counters. More members may come after these. */
MUSTER_API int muster_lock_get_counters(const muster_lock* lock, muster_lock_counters* counters,
                                        size_t size);

/** No server, or one on a core without memory of its own. */
#define MUSTER_NO_NUMA_NODE (~0U)

/** What the lock is and does now. The texts stay valid, also when the lock is gone. Those that say
 * why are for people: a later version may word them anew. */
typedef struct muster_lock_choice {
  const char* kind;          /**< as muster_lock_options can name it */
  const char* way;           /**< who executes its sections, and why */
  const char* server_why;    /**< why there is a server, or none */
  int has_server;            /**< nonzero: it has a server */
  unsigned server_numa_node; /**< by the operating system's number; MUSTER_NO_NUMA_NODE: none, or
                                it is not known */
} muster_lock_choice;
/** `size`: sizeof *choice. More members may come after these. Thread-safe. MUSTER_EINVAL: no lock,
 * or no place. MUSTER_EBUSY: in a fork's child, of an "auto" or "rcl" lock of its parent. Not
 * in a server observer. */
MUSTER_API int muster_lock_get_choice(const muster_lock* lock, muster_lock_choice* choice,
                                      size_t size);

/** What the lock does and why, in lines "what: value", or one JSON object of these. As
 * muster_barrier_explain(). */
MUSTER_API int muster_lock_explain(const muster_lock* lock, const char* format, char* text,
                                   size_t bytes, size_t* needed);

/** After what was posted has been executed. Nobody may use the lock any more. Threads on their way
 * out of calls whose sections have been executed are awaited: so the last user of an object may
 * destroy it with its lock. NULL is ignored. In a section of this very lock, where exit() destroys
 * static objects, it does nothing: what was posted is not awaited, and the memory stays. */
MUSTER_API void muster_lock_destroy(muster_lock* lock);

/** A condition variable for sections of `lock`, between the threads of the calling process, also if
 * the lock is shared: no other process can signal it. Before the lock is used: "auto" and "rcl"
 * then no longer let clients execute each other's sections. In one that a client already executes
 * for another, muster_cond_wait() returns MUSTER_ENOTSUP. So does this, for kinds whose clients
 * always do that. */
MUSTER_API int muster_cond_create(muster_cond** cond, muster_lock* lock);
/** Inside a section of its lock, which is the innermost one: executes what was posted to the lock,
 * gives it up, waits to be signalled, takes it again. Locks of sections around it stay taken
 * meanwhile. It may return without a signal: test again. Not a cancellation point. MUSTER_EINVAL
 * outside of such a section, and in a section of another lock inside of it. MUSTER_EPEER, with the
 * lock taken: a process died meanwhile in a section of this shared lock; leave the section, and see
 * muster_lock_recover().
 * MUSTER_EBUSY, as from all of these: the condition was made before a fork, in the parent. */
MUSTER_API int muster_cond_wait(muster_cond* cond);
/** The same for `timeout_ns` at most: then MUSTER_ETIMEDOUT, with the lock taken again. Zero or
 * less, as what is left of a deadline may be, is over at once: the lock is given up and taken again
 * all the same, so that others get in between. */
MUSTER_API int muster_cond_timedwait(muster_cond* cond, int64_t timeout_ns);
/** Releases one that waits, the first to have come; nothing is kept for who comes later. In
 * sections, of any lock, and outside of them: but what is waited for is to be changed in a section
 * of its lock, else who has just tested it may miss the signal. Thread-safe. Who is released, and
 * was the last, may destroy the condition. MUSTER_EINVAL: NULL. MUSTER_EBUSY: as
 * muster_cond_wait(). */
MUSTER_API int muster_cond_signal(muster_cond* cond);
/** Releases all that wait. Else as muster_cond_signal(). */
MUSTER_API int muster_cond_broadcast(muster_cond* cond);
/** Nobody may wait. NULL is ignored. */
MUSTER_API void muster_cond_destroy(muster_cond* cond);

/** A core, as a server or a thread has it. Arrays have these, so it does not grow. */
typedef struct muster_place {
  unsigned core; /**< position among the topology's usable cores */
  unsigned pu;   /**< its first usable PU, by the operating system's number */
  int numa_node; /**< by the operating system's number; -1: none with memory */
} muster_place;

/** Starts a server: a thread on a core of its own that executes the sections of its locks, as many
 * "rcl" and "auto" ones as there are.
 * Sections that block do not stop its other locks: spare threads go on. If no thread can be made,
 * they wait for the section, even where it waits for them. The server sleeps when there is nothing
 * to do. `where`: CPUs it may use ("3", "2-3"; RCLLockInitDefault), or where RCLLockInitNUMA [PS18,
 * Algorithm 1] puts it by a policy, "pack" (NULL: the NUMA node that has the most servers) or
 * "spread" (the fewest); one core stays free of servers. On a machine that MUSTER_TOPOLOGY imposes
 * that is decided and counted, and the thread is not bound. MUSTER_EINVAL: not to there, or the
 * process may not use one of the CPUs; MUSTER_EUNKNOWN: no such policy; MUSTER_ENOMEM,
 * MUSTER_ESYSTEM: no memory or no thread is to be had. */
MUSTER_API int muster_server_start(muster_server** server, const char* where);
/** Moves it. Fails as muster_server_start() does; it is then where it was. MUSTER_EBUSY, as from
 * the next four: it was started in the parent, before a fork. */
MUSTER_API int muster_server_move(muster_server* server, const char* where);
/** Where it is and what it has done. As muster_lock_explain(). */
MUSTER_API int muster_server_explain(const muster_server* server, const char* format, char* text,
                                     size_t bytes, size_t* needed);
/** Its core: of several CPUs the first one's. MUSTER_EDECLINED: that one is not on the topology,
 * which MUSTER_TOPOLOGY may impose. MUSTER_EINVAL: NULL. Not in a server observer. */
MUSTER_API int muster_server_get_place(const muster_server* server, muster_place* place);
/** What a server has done so far. */
typedef struct muster_server_counters {
  uint64_t executed;    /**< sections */
  uint64_t threads;     /**< made so far */
  uint64_t handovers;   /**< a spare thread took over from one that was blocked in a section */
  uint64_t by_watchdog; /**< of these, where nobody but the watchdog saw that */
  uint64_t sleeps;      /**< it had nothing to do */
  uint64_t ahead;       /**< handovers before sections of locks that have blocked */
} muster_server_counters;
/** `size`: sizeof *counters. More members may come after these. */
MUSTER_API int muster_server_get_counters(const muster_server* server,
                                          muster_server_counters* counters, size_t size);
/** Executes what was posted before, ends its threads and frees the handle. Its locks remain usable:
 * their clients then execute the sections. MUSTER_EINVAL, and it goes on, in a section of one of
 * its locks, whoever executes that: what was posted may need it. NULL is ignored. */
MUSTER_API int muster_server_destroy(muster_server* server);

/** Has `changed` called after each server of the process starts, moves or ends (also those that
 * "rcl" and "auto" locks start by themselves), with the NUMA nodes of all servers by the operating
 * system's numbers: each once, ascending; MUSTER_NO_NUMA_NODE for servers on cores without memory
 * of their own. One entry: all share that NUMA node; none: no server runs. At once, if any run. By
 * any thread, one call at a time; it must not start, move, stop or explain servers, nor ask for
 * their place, nor explain their locks or ask for their choice, nor set an observer, nor wait for a
 * section. NULL: nobody is told. A fork's child has the same observer, who hears first that the
 * parent's servers are not there. One observer a process; memory that follows the servers is one.
 */
MUSTER_API int muster_server_set_observer(void (*changed)(const unsigned* numa_nodes,
                                                          unsigned count, void* context),
                                          void* context);

/** Binds the calling thread to a core by RCLHierarchicalAffinity [PS18, Algorithm 2]: of the
 * cores with the fewest threads placed so far the nearest to the server of `lock`, or, if that is
 * NULL or has none, to the first server; the server's own core only if every core has one. The
 * place is given back when the thread ends. A thread that has a place gives it back first. `*core`,
 * if not NULL: which, among the topology's usable cores. On a machine that MUSTER_TOPOLOGY imposes
 * the place is counted, and the thread not bound. MUSTER_EDECLINED: no server runs; MUSTER_ENOMEM,
 * as muster_lock_execute(): a thread with a place counts; MUSTER_ESYSTEM. */
MUSTER_API int muster_thread_bind(const muster_lock* lock, unsigned* core);
/** Gives the calling thread's place back, and binds it as it was before; nothing without one. */
MUSTER_API void muster_thread_unbind(void);

/** Where `count` servers go, one after the other, on `topology` (as in muster_options: NULL for
 * $MUSTER_TOPOLOGY or this machine, as far as the caller may use it): the first `named` on these
 * `cores`, the others by RCLLockInitNUMA with `policy`. Nothing is started or bound: a pure
 * function. MUSTER_EINVAL, MUSTER_EUNKNOWN, MUSTER_EBUSY, MUSTER_ESYSTEM: as their texts say. */
MUSTER_API int muster_place_servers(const char* topology, const char* policy, const unsigned* cores,
                                    unsigned named, muster_place* servers, unsigned count);
/** Where `count` threads go by RCLHierarchicalAffinity, one after the other, with servers on these
 * cores. `near`: for each thread the core of the server that its locks use; NULL: the first
 * server's. */
MUSTER_API int muster_place_threads(const char* topology, const unsigned* servers,
                                    unsigned server_count, const unsigned* near,
                                    muster_place* threads, unsigned count);

/* For lock.hpp, which takes and gives an uncontended "auto" lock without a call. Not for programs:
 * it may change with the library's next minor version, whose file has another name. */

typedef struct muster_lock_row {
  uint32_t held; /**< 1 while somebody has it */
  uint32_t unused;
  uint32_t wanted; /**< not 0: who has it gives it back by muster_give_back() */
  uint32_t more_unused[13];
  uint32_t dozing; /**< odd: who has given it back takes it again, to do that */
} muster_lock_row;
typedef struct muster_lock_words {
  uint64_t number; /**< a thread's while it may take this lock at once */
  muster_lock_row* row;
} muster_lock_words;
MUSTER_API void muster_lock_get_words(muster_lock* lock, muster_lock_words* words);
MUSTER_API void muster_give_back(void);

/** The calling thread's. */
typedef struct muster_thread_words {
  uint64_t number;
  void* seat;
  uint64_t* executed; /**< sections, of the lock that it used last */
  muster_lock* inside;
} muster_thread_words;
#ifdef __GNUC__
MUSTER_API extern __thread muster_thread_words muster_this_thread;
#endif

#ifdef __cplusplus
}
#endif

#endif /* MUSTER_LOCK_H */
