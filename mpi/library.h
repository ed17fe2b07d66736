/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of libmuster that are called here. The component is linked to it; the preload loads
 * it at the first barrier: it brings a C++ runtime and hwloc, which a process without a barrier
 * need not load, and which may be too new for what a program has brought of its own.
 */
#ifndef MUSTER_MPI_LIBRARY_H
#define MUSTER_MPI_LIBRARY_H

#include <muster/muster.h>

#define LIBRARY_FUNCTIONS(DO) \
  DO(strerror)                \
  DO(last_error)              \
  DO(options_init_sized)      \
  DO(barrier_memory)          \
  DO(barrier_create)          \
  DO(barrier_attach_memory)   \
  DO(barrier_set_hooks)       \
  DO(barrier_wait)            \
  DO(barrier_blame)           \
  DO(barrier_get_choice)      \
  DO(barrier_destroy)         \
  DO(segment_create)          \
  DO(segment_attach)          \
  DO(segment_fd)              \
  DO(segment_data)            \
  DO(segment_destroy)         \
  DO(message_barrier_names)   \
  DO(message_barrier_named)

typedef struct library {
#define LIBRARY_MEMBER(name) __typeof__ (&muster_##name)(name);
  LIBRARY_FUNCTIONS(LIBRARY_MEMBER)
} library;

/** Without muster_ before their names. Not before need_library() has returned NULL. */
extern library libmuster;

/** NULL, or why libmuster cannot be had; the text is static. Thread-safe. */
const char* need_library(void);

#endif /* MUSTER_MPI_LIBRARY_H */
