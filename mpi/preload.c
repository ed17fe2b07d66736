/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libmuster_mpi_preload.so: MPI_Barrier of an unmodified program, whatever its MPI, for LD_PRELOAD.
 * Everything else stays the MPI's. A communicator's team hangs on it as an attribute, so that it
 * goes when the communicator goes. Set by MUSTER_BARRIER, MUSTER_LEVELS, MUSTER_WAIT,
 * MUSTER_VERBOSE, MUSTER_MPI_COUNTERS, MUSTER_REPORT: see doc/mpi.md.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/abi.h"
#include "mpi/team.h"

#define EXPORTED __attribute__((visibility("default")))

static const mpi_abi* mpi;
static int team_key;
static mpi_handle never; /* a request that ends with MPI */
static atomic_bool finalizing;
static mpi_settings settings;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

/* A failure that no error handler has heard of yet. No MPI's code: those are positive. */
enum { untold = -1 };

/* ---- what teams need of the MPI ---- */

/* Teams carry handles as pointers. */
static mpi_handle handle_of(void* comm) { return (mpi_handle)comm; }

static int do_allgather(void* comm, const void* mine, void* all, int bytes) {
  return mpi->Allgather(mine, bytes, mpi->type_byte, all, bytes, mpi->type_byte, handle_of(comm));
}

static int do_broadcast(void* comm, void* data, int bytes) {
  return mpi->Bcast(data, bytes, mpi->type_byte, 0, handle_of(comm));
}

static int do_minimum(void* comm, int* value) {
  const int mine = *value;
  return mpi->Allreduce(&mine, value, 1, mpi->type_int, mpi->op_min, handle_of(comm));
}

static int do_barrier(void* comm) { return mpi->Barrier(handle_of(comm)); }

/* What goes wrong on a communicator of ours is told on the program's: to nobody's handler here. And
 * where no context id is left the MPI's own barrier has to serve: the program's handler, which may
 * end the job, is set aside. */
static int do_split(void* comm, bool leads, void** leaders) {
  void* written = NULL;
  void* handler = NULL;
  const bool has_handler = mpi->Comm_get_errhandler(handle_of(comm), &handler) == 0;
  if (has_handler) mpi->Comm_set_errhandler(handle_of(comm), mpi->errors_return);
  const int status = mpi->Comm_split(handle_of(comm), leads ? 0 : mpi->undefined, 0, &written);
  if (has_handler) {
    mpi->Comm_set_errhandler(handle_of(comm), handle_from(mpi, &handler));
    mpi->Errhandler_free(&handler);
  }
  if (status != 0 || !leads) return status;
  const mpi_handle made = handle_from(mpi, &written);
  *leaders = (void*)made; /* NOLINT: a handle */
  return mpi->Comm_set_errhandler(made, mpi->errors_return);
}

static void do_name(void* comm, char* text, size_t bytes) {
  char whole[1024] = ""; /* no MPI's maximum is more */
  int length = 0;
  mpi->Comm_get_name(handle_of(comm), whole, &length);
  snprintf(text, bytes, "%s", whole);
}

static unsigned do_job_rank(void) {
  int rank = 0;
  mpi->Comm_rank(mpi->comm_world, &rank);
  return (unsigned)rank;
}

static int quietly(int status) { return status == 0 ? 0 : untold; }

static int do_barrier_of_leaders(void* leaders) {
  return quietly(mpi->Barrier(handle_of(leaders)));
}

/* Not a dup, which would call the program's own functions for the attributes that it copies. */
static int do_open_channel(void* comm, void** channel) { return do_split(comm, true, channel); }

static void do_free(void* comm) {
  if (atomic_load(&finalizing)) return;
  mpi->Comm_free(&comm);
}

static int do_send(void* channel, unsigned to) {
  return quietly(mpi->Send(NULL, 0, mpi->type_byte, (int)to, 0, handle_of(channel)));
}

static int do_send_synchronously(void* channel, unsigned to) {
  return quietly(mpi->Ssend(NULL, 0, mpi->type_byte, (int)to, 0, handle_of(channel)));
}

static int do_receive(void* channel, unsigned from) {
  return quietly(
      mpi->Recv(NULL, 0, mpi->type_byte, (int)from, 0, handle_of(channel), mpi->status_ignore));
}

/* All are asked for before the first is waited for, as Open MPI's own does. */
static int do_receive_any(void* channel, unsigned count) {
  mpi_handle* const requests = malloc(count * sizeof *requests); /* an int needs half of it */
  unsigned asked = 0;
  int status = requests == NULL ? mpi->error_other : 0;
  while (asked < count && status == 0) {
    status = mpi->Irecv(NULL, 0, mpi->type_byte, mpi->any_source, 0, handle_of(channel),
                        &requests[asked]);
    if (status == 0) ++asked;
  }
  for (unsigned i = 0; i < asked && status == 0; ++i) {
    status = mpi->Wait(&requests[i], mpi->status_ignore);
  }
  free(requests); /* after an error the others stay asked for, and end with their communicator */
  return quietly(status);
}

/* To look at a request that is not over makes every MPI progress, and unlike a test it may be done
 * by several threads at once. At the end, when there is none any more, a probe of everybody's
 * messages does it, which takes longer. */
static void do_progress(void) {
  int flag = 0;
  if (__builtin_expect(atomic_load_explicit(&finalizing, memory_order_relaxed), 0)) {
    mpi->Iprobe(mpi->any_source, mpi->any_tag, mpi->comm_world, &flag, mpi->status_ignore);
  } else {
    /* Without a yield where there is nothing to do: who waits yields itself, and how long it takes
     * tells whether there was something. */
    if (mpi->set_yield_when_idle != NULL) mpi->set_yield_when_idle(false);
    mpi->Request_get_status(never, &flag, mpi->status_ignore);
    if (mpi->set_yield_when_idle != NULL) mpi->set_yield_when_idle(*mpi->yields_when_idle);
  }
}

static mpi_operations operations = {
    .allgather = do_allgather,
    .broadcast = do_broadcast,
    .minimum = do_minimum,
    .barrier = do_barrier,
    .split = do_split,
    .barrier_of_leaders = do_barrier_of_leaders,
    .free_leaders = do_free,
    .open_channel = do_open_channel,
    .send = do_send,
    .send_synchronously = do_send_synchronously,
    .receive = do_receive,
    .receive_any = do_receive_any,
    .close_channel = do_free,
    .progress = do_progress,
    .locality = NULL,
    .name = do_name,
    .job_rank = do_job_rank,
    .error = untold,
};

/* ---- communicators and their teams ---- */

/* Which team a communicator has, for the last few of this thread: an attribute's lookup takes as
 * long as half a barrier. Void as soon as any communicator is freed, since handles come again. */
enum { remembered = 4 };
typedef struct memory {
  mpi_handle passed; /* as the register had it */
  mpi_handle comm;
  team* its;
  unsigned generation;
} memory;
static _Thread_local memory memories[remembered];
static atomic_uint generation = 1U;

static unsigned place_of(mpi_handle comm) {
  const uintptr_t bits = (uintptr_t)comm;
  return (unsigned)((bits ^ bits >> 4 ^ bits >> 9) % remembered);
}

/* A copy of a communicator is another one: it gets a team of its own. */
static int copy_nothing(mpi_handle comm, int keyval, void* extra, void* in, void* out, int* flag) {
  (void)comm;
  (void)keyval;
  (void)extra;
  (void)in;
  (void)out;
  *flag = 0;
  return 0;
}

/* Of an int the upper half of its register is anything. */
static mpi_handle as_passed(const mpi_abi* abi, mpi_handle comm) {
  return abi->handles_are_ints ? (int)comm : comm;
}

/* A communicator that this thread is freeing. Its other attributes' functions may wait at barriers
 * still, and on some ranks come before ours, on others after it: so its team serves to the end. */
typedef struct departure {
  mpi_handle comm;
  team* its; /* NULL until our attribute is gone */
  struct departure* outer;
} departure;
static _Thread_local departure* departures;

static departure* departure_of(mpi_handle comm) {
  departure* at = departures;
  while (at != NULL && at->comm != comm) at = at->outer;
  return at;
}

static int drop_team(mpi_handle comm, int keyval, void* attribute, void* extra) {
  (void)keyval;
  (void)extra;
  departure* const leaving = departure_of(as_passed(mpi, comm));
  atomic_fetch_add(&generation, 1);
  if (leaving != NULL) {
    leaving->its = attribute;
  } else {
    team_free(attribute, !atomic_load(&finalizing));
  }
  return 0;
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first, the latest first, while MPI still
 * works. The program's own callbacks there may wait at barriers, and on some ranks come before this
 * one, on others after it: so barriers remain ours. */
static int finalize(mpi_handle comm, int keyval, void* attribute, void* extra) {
  (void)comm;
  (void)keyval;
  (void)attribute;
  (void)extra;
  mpi_handle gone = never;
  mpi->Grequest_complete(gone);
  mpi->Wait(&gone, mpi->status_ignore);
  atomic_store(&finalizing, true);
  atomic_fetch_add(&generation, 1);
  /* The next to go, in this thread. */
  static departure world;
  world = (departure){.comm = mpi->comm_world, .outer = departures};
  departures = &world;
  team_finish();
  return 0;
}

/* All ranks of a communicator take this way: one that cannot must not leave the others alone. */
static _Noreturn void give_up(const char* why) {
  fprintf(stderr, "muster: %s: cannot go on, since the other ranks do\n", why);
  abort();
}

static int tell_nothing(void* extra, void* status) {
  (void)extra;
  (void)status;
  return 0;
}
static int forget_nothing(void* extra) {
  (void)extra;
  return 0;
}
static int cancel_nothing(void* extra, int complete) {
  (void)extra;
  (void)complete;
  return 0;
}

static const mpi_abi* start(const mpi_abi* abi) {
  settings = (mpi_settings){.barrier = secure_getenv("MUSTER_BARRIER"),
                            .levels = secure_getenv("MUSTER_LEVELS"),
                            .wait = secure_getenv("MUSTER_WAIT"),
                            .verbose = number_in("MUSTER_VERBOSE"),
                            .counters = number_in("MUSTER_MPI_COUNTERS") != 0,
                            .report = report_asked_for()};
  int finalize_key = 0;
  void* written = NULL;
  if (abi->Comm_create_keyval(copy_nothing, drop_team, &team_key, NULL) != 0 ||
      abi->Comm_create_keyval(copy_nothing, finalize, &finalize_key, NULL) != 0 ||
      abi->Comm_set_attr(abi->comm_self, finalize_key, NULL) != 0) {
    give_up("no attributes of its own");
  }
  /* A request of nothing: a receive would need a communicator of its own, which might get the
   * handle of one that the program has freed, and uses again by mistake. */
  if (abi->Grequest_start(tell_nothing, forget_nothing, cancel_nothing, NULL, &written) != 0) {
    give_up("no request of its own");
  }
  never = handle_from(abi, &written);
  team_start(&operations, &settings);
  return abi;
}

/* False while there is no MPI_COMM_WORLD: before MPI_Init, and where sessions are all there is. */
static bool started(const mpi_abi* abi) {
  static bool told;
  int running = 0;
  pthread_mutex_lock(&starting);
  if (mpi == NULL && abi->Initialized(&running) == 0 && running != 0) mpi = start(abi);
  const bool is_first = mpi == NULL && !told;
  if (is_first) told = true;
  const bool is_started = mpi != NULL;
  pthread_mutex_unlock(&starting);
  if (is_first) fputs("muster: without MPI_Init the MPI's own barrier serves\n", stderr);
  return is_started;
}

/* The team of a communicator that is not among the last few. An error is the MPI's, which has told
 * its handler: of a handle that is no communicator. */
static int find_team(mpi_handle comm, team** its) {
  const departure* const leaving = departure_of(comm);
  int flag = leaving != NULL && leaving->its != NULL;
  int size = 0;
  int rank = 0;
  if (flag != 0) *its = leaving->its;
  int status = flag != 0 ? 0 : mpi->Comm_get_attr(comm, team_key, its, &flag);
  if (status != 0 || flag != 0) return status;
  if ((status = mpi->Comm_size(comm, &size)) != 0 || (status = mpi->Comm_rank(comm, &rank)) != 0 ||
      (status = mpi->Comm_test_inter(comm, &flag)) != 0) {
    return status;
  }
  const char* declined = NULL;
  if (flag != 0) declined = settings.verbose > 0 ? "an intercommunicator" : "";
  if (*mpi->tolerates_faults) declined = faults_are_tolerated;
  *its = team_new((unsigned)size, (unsigned)rank, declined);
  if (*its == NULL || mpi->Comm_set_attr(comm, team_key, *its) != 0) {
    give_up("no memory for a communicator's barrier");
  }
  return 0;
}

/* Of the MPI's own failures it has told the communicator's error handler itself. A handler that
 * returns, as MPI_ERRORS_RETURN does, leaves it to the caller. */
static __attribute__((cold)) int fail(mpi_handle comm, int status) {
  if (status != untold) return status;
  mpi->Comm_call_errhandler(comm, mpi->error_other);
  return mpi->error_other;
}

static int barrier_with(team* its, mpi_handle comm) {
  const int status = team_barrier(its, (void*)comm); /* NOLINT: a handle */
  return __builtin_expect(status == 0, 1) ? 0 : fail(comm, status);
}

/* Not among the last few. Not inlined: the quick way has no registers to save. */
static __attribute__((noinline)) int barrier_of(mpi_handle passed) {
  const mpi_abi* const abi = the_mpi();
  if (abi == NULL) {
    mpi_barrier_function* const theirs = their_barrier();
    if (theirs == NULL) abort(); /* it was said why */
    return theirs(passed);
  }
  const mpi_handle comm = as_passed(abi, passed);
  const unsigned now = atomic_load(&generation);
  team* its = NULL;
  if (!started(abi) || comm == abi->comm_null) return abi->Barrier(comm);
  const int status = find_team(comm, &its);
  if (status != 0) return status;
  memories[place_of(passed)] =
      (memory){.passed = passed, .comm = comm, .its = its, .generation = now};
  return barrier_with(its, comm);
}

/* ---- entry points ---- */

EXPORTED int MPI_Barrier(mpi_handle comm);
int MPI_Barrier(mpi_handle comm) {
  const memory* const last = &memories[place_of(comm)];
  if (__builtin_expect(
          last->passed == comm &&
              last->generation == atomic_load_explicit(&generation, memory_order_relaxed),
          1)) {
    return barrier_with(last->its, last->comm);
  }
  return barrier_of(comm);
}

/* Comm_free or Comm_disconnect, which calls the functions of attributes. */
static int part_from(mpi_free_function* theirs, void* handle) {
  const mpi_abi* const abi = the_mpi();
  if (theirs == NULL) abort(); /* called in a process without MPI */
  if (abi == NULL || handle == NULL) return theirs(handle);
  departure own = {.comm = handle_from(abi, handle), .outer = departures};
  departures = &own;
  /* MPICH's status is that of the attribute's function that it calls last: not to be ours. */
  const bool is_first = mpi != NULL && abi->handles_are_ints && own.comm != abi->comm_null;
  int status = is_first ? mpi->Comm_delete_attr(own.comm, team_key) : 0;
  if (status == 0) status = theirs(handle);
  departures = own.outer;
  if (own.its == NULL) return status;
  atomic_fetch_add(&generation, 1); /* barriers since then have remembered it anew */
  if (status == 0) {
    team_free(own.its, true);
  } else if (mpi->Comm_set_attr(own.comm, team_key, own.its) != 0) { /* somebody refused */
    give_up("a communicator that was not freed has no barrier any more");
  }
  return status;
}

/* Also under the profiling names, which is what Fortran's call. */
EXPORTED mpi_free_function MPI_Comm_free;
EXPORTED mpi_free_function PMPI_Comm_free;
EXPORTED mpi_free_function MPI_Comm_disconnect;
EXPORTED mpi_free_function PMPI_Comm_disconnect;
int MPI_Comm_free(void* comm) { return part_from(their_free_function(__func__), comm); }
int PMPI_Comm_free(void* comm) { return part_from(their_free_function(__func__), comm); }
int MPI_Comm_disconnect(void* comm) { return part_from(their_free_function(__func__), comm); }
int PMPI_Comm_disconnect(void* comm) { return part_from(their_free_function(__func__), comm); }

typedef void fortran_function(const int* comm, int* error);

static bool integers_are_wide;

/* Intel's functions for integers of 8 bytes have the same names, in a library of their own. */
static void find_width(void) {
  Dl_info where;
  integers_are_wide = dladdr(dlsym(RTLD_NEXT, "mpi_barrier_"), &where) != 0 &&
                      where.dli_fname != NULL && strstr(where.dli_fname, "mpi_ilp64") != NULL;
}

/* `name`: what was called; of an MPI that is not known its own serves, which knows its handles. */
static void from_fortran(const char* name, const int* comm, int* error) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const mpi_abi* const abi = the_mpi();
  if (abi == NULL) {
    fortran_function* theirs = NULL;
    void* const symbol = dlsym(RTLD_NEXT, name);
    memcpy(&theirs, &symbol, sizeof symbol);
    if (theirs == NULL) {
      fprintf(stderr, "muster: no %s of the MPI's own: cannot go on\n", name);
      abort();
    }
    theirs(comm, error);
    return;
  }
  pthread_once(&once, find_width);
  const int status = MPI_Barrier(handle_from_fortran(abi, *comm));
  const int64_t wide = status;
  if (error == NULL) return; /* with mpi_f08 it is optional */
  if (integers_are_wide) {
    memcpy(error, &wide, sizeof wide);
  } else {
    *error = status;
  }
}

/* As Fortran compilers spell it; "_f08" is what the module mpi_f08 calls. */
EXPORTED fortran_function mpi_barrier;
EXPORTED fortran_function mpi_barrier_;
EXPORTED fortran_function mpi_barrier__;
EXPORTED fortran_function MPI_BARRIER;
EXPORTED fortran_function mpi_barrier_f08;
EXPORTED fortran_function mpi_barrier_f08_;
void mpi_barrier(const int* comm, int* error) { from_fortran(__func__, comm, error); }
void mpi_barrier_(const int* comm, int* error) { from_fortran(__func__, comm, error); }
void mpi_barrier__(const int* comm, int* error) { from_fortran(__func__, comm, error); }
void MPI_BARRIER(const int* comm, int* error) { from_fortran(__func__, comm, error); }
void mpi_barrier_f08(const int* comm, int* error) { from_fortran(__func__, comm, error); }
void mpi_barrier_f08_(const int* comm, int* error) { from_fortran(__func__, comm, error); }

/** Barriers of this process so far, by what served: inside one host, over several, base-*, the
 * MPI's own. For programs that want to know. */
EXPORTED void muster_mpi_count(unsigned long long counts[4]);
void muster_mpi_count(unsigned long long counts[4]) {
  const mpi_counters all = team_counters();
  counts[0] = all.inside;
  counts[1] = all.hosts;
  counts[2] = all.messages;
  counts[3] = all.theirs;
}
