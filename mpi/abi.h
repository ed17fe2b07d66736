/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any MPI, without its header: the functions, found by name in the running process, and the
 * constants of its binary interface. There are two families: Open MPI, whose handles are pointers,
 * and MPICH with all that share its ABI (Intel MPI, MVAPICH, Cray), whose handles are ints. Both
 * fit a register, so one preloaded library serves both. test/mpi holds the constants against the
 * real headers.
 */
#ifndef MUSTER_MPI_ABI_H
#define MUSTER_MPI_ABI_H

#include <stdbool.h>
#include <stdint.h>

/** An MPI handle as it is passed: a pointer, or an int with its sign extended. */
typedef intptr_t mpi_handle;

typedef int mpi_barrier_function(mpi_handle comm);
typedef int mpi_free_function(void* comm);
typedef int mpi_delete_function(mpi_handle comm, int keyval, void* attribute, void* extra);
typedef int mpi_copy_function(mpi_handle comm, int keyval, void* extra, void* in, void* out,
                              int* flag);

typedef struct mpi_abi {
  bool handles_are_ints;
  mpi_handle comm_null;
  mpi_handle comm_self;
  mpi_handle comm_world;
  mpi_handle type_byte;
  mpi_handle type_int;
  mpi_handle op_min;
  mpi_handle errors_return;
  int any_source;
  int any_tag;
  int undefined;
  int error_other;
  void* status_ignore;
  const bool* tolerates_faults; /**< after MPI_Init: it was asked to go on after failures */

  mpi_barrier_function* Barrier;
  int (*Allgather)(const void* in, int count, mpi_handle type, void* out, int out_count,
                   mpi_handle out_type, mpi_handle comm);
  int (*Bcast)(void* data, int count, mpi_handle type, int root, mpi_handle comm);
  int (*Allreduce)(const void* in, void* out, int count, mpi_handle type, mpi_handle op,
                   mpi_handle comm);
  int (*Send)(const void* data, int count, mpi_handle type, int to, int tag, mpi_handle comm);
  int (*Ssend)(const void* data, int count, mpi_handle type, int to, int tag, mpi_handle comm);
  int (*Recv)(void* data, int count, mpi_handle type, int from, int tag, mpi_handle comm,
              void* status);
  int (*Irecv)(void* data, int count, mpi_handle type, int from, int tag, mpi_handle comm,
               void* request);
  int (*Grequest_start)(int (*query)(void* extra, void* status), int (*drop)(void* extra),
                        int (*cancel)(void* extra, int complete), void* extra, void* request);
  int (*Grequest_complete)(mpi_handle request);
  int (*Request_get_status)(mpi_handle request, int* flag, void* status);
  int (*Iprobe)(int from, int tag, mpi_handle comm, int* flag, void* status);
  int (*Wait)(void* request, void* status);
  int (*Comm_rank)(mpi_handle comm, int* rank);
  int (*Comm_size)(mpi_handle comm, int* size);
  int (*Comm_test_inter)(mpi_handle comm, int* flag);
  int (*Comm_get_name)(mpi_handle comm, char* name, int* length);
  int (*Comm_split)(mpi_handle comm, int color, int key, void* result);
  int (*Comm_dup)(mpi_handle comm, void* result); /**< the benchmark's */
  mpi_free_function* Comm_free;
  int (*Comm_create_keyval)(mpi_copy_function* copy, mpi_delete_function* drop, int* keyval,
                            void* extra);
  int (*Comm_set_attr)(mpi_handle comm, int keyval, void* attribute);
  int (*Comm_get_attr)(mpi_handle comm, int keyval, void* attribute, int* flag);
  int (*Comm_delete_attr)(mpi_handle comm, int keyval);
  int (*Comm_get_errhandler)(mpi_handle comm, void* handler);
  int (*Comm_set_errhandler)(mpi_handle comm, mpi_handle handler);
  int (*Errhandler_free)(void* handler);
  int (*Comm_call_errhandler)(mpi_handle comm, int code);
  int (*Initialized)(int* flag);
  void* (*Comm_f2c)(int comm);              /**< NULL where Fortran's handles are C's */
  bool (*set_yield_when_idle)(bool yields); /**< Open MPI's progress; NULL elsewhere */
  const bool* yields_when_idle;             /**< as the user wants it, then */
} mpi_abi;

/** The MPI of this process, found at the first call; NULL, with the reason on standard error, if
 * there is none that is known. Thread-safe. */
const mpi_abi* the_mpi(void);

/** Its own barrier, also of an MPI that is not known, whose handles fit a register all the same;
 * NULL if the process has no MPI. Thread-safe. */
mpi_barrier_function* their_barrier(void);

/** Its function of this name, whose only argument is a communicator to be freed; NULL if the
 * process has no MPI. Thread-safe. */
mpi_free_function* their_free_function(const char* name);

/** A handle that an MPI function wrote to `*written`. */
mpi_handle handle_from(const mpi_abi* abi, const void* written);

/** A Fortran handle as C's. */
mpi_handle handle_from_fortran(const mpi_abi* abi, int comm);

#endif /* MUSTER_MPI_ABI_H */
