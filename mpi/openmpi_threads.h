/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI 5.0's headers include some of its threads', opal/mca/threads/pthreads/, which its
 * installation leaves out. This is what the others want of them. component.c calls nothing of it,
 * but there are mutexes in what it looks into: they are pthread's here as there.
 */
#ifndef MUSTER_MPI_OPENMPI_THREADS_H
#define MUSTER_MPI_OPENMPI_THREADS_H

#include <pthread.h>
#include <sched.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define opal_thread_internal_mutex_init(mutex, recursive) \
  ((void)(recursive), pthread_mutex_init(mutex, NULL))
#define opal_thread_internal_mutex_destroy pthread_mutex_destroy
#define opal_thread_internal_mutex_lock pthread_mutex_lock
#define opal_thread_internal_mutex_trylock(mutex) (pthread_mutex_trylock(mutex) != 0)
#define opal_thread_internal_mutex_unlock pthread_mutex_unlock
#define opal_thread_internal_cond_init(cond) pthread_cond_init(cond, NULL)
#define opal_thread_internal_cond_destroy pthread_cond_destroy
#define opal_thread_internal_cond_signal pthread_cond_signal
#define opal_thread_internal_cond_broadcast pthread_cond_broadcast
#define opal_thread_internal_cond_wait pthread_cond_wait

static inline void opal_thread_yield(void) { sched_yield(); }

#endif /* MUSTER_MPI_OPENMPI_THREADS_H */
