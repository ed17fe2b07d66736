/* SPDX-License-Identifier: BSD-3-Clause */
/* What all functions return, and texts for it. Part of muster.h. Functions in line are `__inline`:
 * C90 has no `inline`. */
#ifndef MUSTER_STATUS_H
#define MUSTER_STATUS_H

#if defined(__GNUC__)
#define MUSTER_API __attribute__((visibility("default")))
#else
#define MUSTER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define MUSTER_VERSION_MAJOR 0
#define MUSTER_VERSION_MINOR 1

/** What a function returns. Values are never renumbered. */
typedef enum muster_status {
  MUSTER_OK = 0,
  /** An argument is out of range, malformed or contradicts another. */
  MUSTER_EINVAL = 1,
  /** No algorithm, level, mapping or wait policy has this name. */
  MUSTER_EUNKNOWN = 2,
  /** Valid, but this algorithm, machine, kernel or process cannot do it. */
  MUSTER_ENOTSUP = 3,
  /** With MUSTER_EXACT: the algorithm declines this placement. Of servers: none runs, or it is not
   * on the topology. */
  MUSTER_EDECLINED = 4,
  /** Memory, or the segment, is exhausted. */
  MUSTER_ENOMEM = 5,
  /** A system call failed; the text names it. */
  MUSTER_ESYSTEM = 6,
  /** What was attached to is not ours, or not of this version or user. */
  MUSTER_EFOREIGN = 7,
  /** The deadline passed; a barrier is broken then for all its participants. */
  MUSTER_ETIMEDOUT = 8,
  /** Another participant timed out, a completion failed, the barrier was destroyed, or its memory
   * overwritten; see muster_barrier_blame(). */
  MUSTER_EBROKEN = 9,
  /** A participant died, or its process has destroyed its side; see muster_barrier_blame(). Of
   * locks: a process died in a section. */
  MUSTER_EPEER = 10,
  /** The rank is waiting already or belongs to another process, the name is taken, or a fork made
   * the handle unusable. */
  MUSTER_EBUSY = 11
} muster_status;

/** A short text for a status. Static; thread-safe. */
MUSTER_API const char* muster_strerror(int status);

/** The calling thread's last failure, in full: what, why, and what to do. Valid until this thread's
 * next call. */
MUSTER_API const char* muster_last_error(void);

/** The library's version, "0.1.0". */
MUSTER_API const char* muster_version(void);

#ifdef __cplusplus
}
#endif

#endif /* MUSTER_STATUS_H */
