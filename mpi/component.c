/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll/muster: the barrier of Open MPI's communicators, as a loadable component. Written for the
 * coll interfaces 2.0.0 (Open MPI 4.0, 4.1), 2.4.0 (5.0) and 3.0.0 (later); tested with 4.1, tried
 * with 5.0.7, for later ones only compiled, see test/mpi/interfaces.sh. The module takes the
 * barrier alone; all else stays whoever's it was.
 */
#include "ompi_config.h"

#if defined(MCA_threads_mutex_base_include_HEADER)
#if !__has_include(MCA_threads_mutex_base_include_HEADER)
_Static_assert(__builtin_strcmp(MCA_threads_mutex_base_include_HEADER,
                                "opal/mca/threads/pthreads/threads_pthreads_mutex.h") == 0,
               "an Open MPI over other threads than pthread's, whose headers are not installed");
#undef MCA_threads_mutex_base_include_HEADER
#undef MCA_threads_base_include_HEADER
#undef MCA_threads_tsd_base_include_HEADER
#define MCA_threads_mutex_base_include_HEADER "mpi/openmpi_threads.h"
#define MCA_threads_base_include_HEADER "mpi/openmpi_threads.h"
#define MCA_threads_tsd_base_include_HEADER "mpi/openmpi_threads.h"
#endif
#endif

#include <stdio.h>
#include <stdlib.h>

#include "mpi.h"
#include "mpi/library.h"
#include "mpi/team.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "ompi/runtime/params.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/runtime/opal_progress.h"

/* The interfaces differ in the names of their versions, in where locality strings come from, and in
 * who saves and installs a communicator's functions. */
#if defined(MCA_COLL_BASE_VERSION_3_0_0)
#define COLL_VERSION MCA_COLL_BASE_VERSION_3_0_0
#elif defined(MCA_COLL_BASE_VERSION_2_4_0)
#define COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#else
#define COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
#endif
#if OMPI_MAJOR_VERSION >= 5
#include "opal/mca/pmix/pmix-internal.h"
#define LOCALITY_STRING PMIX_LOCALITY_STRING
#define LOCALITY_TYPE PMIX_STRING
#else
#include "opal/mca/pmix/pmix.h"
#define LOCALITY_STRING OPAL_PMIX_LOCALITY_STRING
#define LOCALITY_TYPE OPAL_STRING
#endif

#define LINKED(name) .name = muster_##name,
library libmuster = {LIBRARY_FUNCTIONS(LINKED)};
const char* need_library(void) { return NULL; }

typedef struct muster_module {
  mca_coll_base_module_t super;
  ompi_communicator_t* comm;
  team* its;
  mca_coll_base_module_barrier_fn_t previous_barrier;
  mca_coll_base_module_t* previous_barrier_module;
} muster_module;
OBJ_CLASS_DECLARATION(muster_module);

static int priority = 95; /* above tuned (30), fca (80), hcoll (90): beside an equal it is open who
                             gets the barrier, and whether on all hosts the same */
static char* barrier_name = "auto"; /* of these Open MPI makes copies */
static char* levels;
static char* wait_policy = "auto";
static int verbose;
static mpi_settings settings;

/* ---- what teams need of the MPI; `comm` is the module ---- */

static ompi_communicator_t* comm_of(void* comm) { return ((muster_module*)comm)->comm; }

static int do_allgather(void* comm, const void* mine, void* all, int bytes) {
  ompi_communicator_t* const c = comm_of(comm);
  return c->c_coll->coll_allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, c,
                                   c->c_coll->coll_allgather_module);
}

static int do_broadcast(void* comm, void* data, int bytes) {
  ompi_communicator_t* const c = comm_of(comm);
  return c->c_coll->coll_bcast(data, bytes, MPI_BYTE, 0, c, c->c_coll->coll_bcast_module);
}

static int do_minimum(void* comm, int* value) {
  ompi_communicator_t* const c = comm_of(comm);
  int mine = *value;
  return c->c_coll->coll_allreduce(&mine, value, 1, MPI_INT, MPI_MIN, c,
                                   c->c_coll->coll_allreduce_module);
}

static int do_barrier(void* comm) {
  const muster_module* const module = comm;
  return module->previous_barrier(module->comm, module->previous_barrier_module);
}

static int do_split(void* comm, bool leads, void** leaders) {
  ompi_communicator_t* made = NULL;
  const int status = ompi_comm_split(comm_of(comm), leads ? 0 : MPI_UNDEFINED, 0, &made, false);
  if (status == OMPI_SUCCESS && leads) *leaders = made;
  return status;
}

static int barrier(ompi_communicator_t* comm, mca_coll_base_module_t* module);

/* Ours would only find that each of them has a host of its own. */
static int do_barrier_of_leaders(void* leaders) {
  ompi_communicator_t* const c = leaders;
  if (c->c_coll->coll_barrier == barrier) return do_barrier(c->c_coll->coll_barrier_module);
  return c->c_coll->coll_barrier(c, c->c_coll->coll_barrier_module);
}

static void do_free_leaders(void* leaders) {
  ompi_communicator_t* gone = leaders;
  ompi_comm_free(&gone);
}

/* Collectives have tags of their own: the communicator's own channel does. */
static int do_open_channel(void* comm, void** channel) {
  *channel = comm;
  return OMPI_SUCCESS;
}

static void do_close_channel(void* channel) { (void)channel; }

static int do_send(void* channel, unsigned to) {
  return MCA_PML_CALL(send(NULL, 0, MPI_BYTE, (int)to, MCA_COLL_BASE_TAG_BARRIER,
                           MCA_PML_BASE_SEND_STANDARD, comm_of(channel)));
}

static int do_send_synchronously(void* channel, unsigned to) {
  return MCA_PML_CALL(send(NULL, 0, MPI_BYTE, (int)to, MCA_COLL_BASE_TAG_BARRIER,
                           MCA_PML_BASE_SEND_SYNCHRONOUS, comm_of(channel)));
}

static int do_receive(void* channel, unsigned from) {
  return MCA_PML_CALL(recv(NULL, 0, MPI_BYTE, (int)from, MCA_COLL_BASE_TAG_BARRIER,
                           comm_of(channel), MPI_STATUS_IGNORE));
}

/* As coll/base: all are asked for before the first is waited for. */
static int do_receive_any(void* channel, unsigned count) {
  ompi_request_t** const requests = calloc(count, sizeof(ompi_request_t*));
  int status = requests == NULL ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_SUCCESS;
  for (unsigned i = 0; i < count && status == OMPI_SUCCESS; ++i) {
    status = MCA_PML_CALL(irecv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, MCA_COLL_BASE_TAG_BARRIER,
                                comm_of(channel), &requests[i]));
  }
  if (status == OMPI_SUCCESS) {
    status = ompi_request_wait_all(count, requests, MPI_STATUSES_IGNORE);
  }
  for (unsigned i = 0; i < count && requests != NULL && status != OMPI_SUCCESS; ++i) {
    if (requests[i] != NULL && requests[i] != MPI_REQUEST_NULL) ompi_request_free(&requests[i]);
  }
  free(requests);
  return status;
}

/* Without a yield where there is nothing to do: who waits yields itself, and how long it takes
 * tells whether there was something. */
extern bool ompi_mpi_yield_when_idle; /* not in every series' headers */
static void do_progress(void) {
  opal_progress_set_yield_when_idle(false);
  opal_progress();
  opal_progress_set_yield_when_idle(ompi_mpi_yield_when_idle);
}

/* Each rank's own string: what the flags of a process say is how it meets this one, and meeting is
 * not transitive. */
static bool do_locality(void* comm, int rank, char* text, size_t bytes) {
  const ompi_proc_t* const its = ompi_comm_peer_lookup(comm_of(comm), rank);
  char* locality = NULL;
  int status = OMPI_ERROR;
  OPAL_MODEX_RECV_VALUE_OPTIONAL(status, LOCALITY_STRING, &its->super.proc_name, &locality,
                                 LOCALITY_TYPE);
  const bool known = status == OMPI_SUCCESS && locality != NULL;
  if (known) snprintf(text, bytes, "%s", locality);
  free(locality);
  return known;
}

/* Not c_name: what the program has not named, Open MPI names by a number that it uses again. */
static void do_name(void* comm, char* text, size_t bytes) {
  char whole[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  PMPI_Comm_get_name(comm_of(comm), whole, &length);
  snprintf(text, bytes, "%s", whole);
}

static unsigned do_job_rank(void) { return ompi_proc_local()->super.proc_name.vpid; }

static const mpi_operations operations = {
    .allgather = do_allgather,
    .broadcast = do_broadcast,
    .minimum = do_minimum,
    .barrier = do_barrier,
    .split = do_split,
    .barrier_of_leaders = do_barrier_of_leaders,
    .free_leaders = do_free_leaders,
    .open_channel = do_open_channel,
    .send = do_send,
    .send_synchronously = do_send_synchronously,
    .receive = do_receive,
    .receive_any = do_receive_any,
    .close_channel = do_close_channel,
    .progress = do_progress,
    .locality = do_locality,
    .name = do_name,
    .job_rank = do_job_rank,
    .error = OMPI_ERROR,
};

/* ---- the module ---- */

static int barrier(ompi_communicator_t* comm, mca_coll_base_module_t* module) {
  (void)comm;
  return team_barrier(((muster_module*)module)->its, module);
}

/* Until then MPI works, also for those that MPI_Finalize calls. */
static bool finalizing(void) {
  return ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT;
}

static void construct(muster_module* module) {
  module->comm = NULL;
  module->its = NULL;
  module->previous_barrier = NULL;
  module->previous_barrier_module = NULL;
}

static void release_previous(muster_module* module) {
  if (module->previous_barrier_module != NULL) OBJ_RELEASE(module->previous_barrier_module);
  module->previous_barrier_module = NULL;
}

static void destruct(muster_module* module) {
  team_free(module->its, !finalizing());
  release_previous(module);
}

OBJ_CLASS_INSTANCE(muster_module, mca_coll_base_module_t, construct, destruct);

static bool tolerates_faults(void) {
#if defined(OPAL_ENABLE_FT_MPI) && OPAL_ENABLE_FT_MPI /* from 5.0 on */
  return ompi_ftmpi_enabled;
#else
  return false;
#endif
}

static int enable(mca_coll_base_module_t* base, ompi_communicator_t* comm) {
  muster_module* const module = (muster_module*)base;
#if defined(MCA_COLL_SAVE_API)
  MCA_COLL_SAVE_API(comm, barrier, module->previous_barrier, module->previous_barrier_module,
                    "muster");
#else
  module->previous_barrier = comm->c_coll->coll_barrier;
  module->previous_barrier_module = comm->c_coll->coll_barrier_module;
#endif
  if (module->previous_barrier == NULL || module->previous_barrier_module == NULL) {
    return OMPI_ERROR; /* nobody to hand over to */
  }
  module->its = team_new((unsigned)ompi_comm_size(comm), (unsigned)ompi_comm_rank(comm),
                         tolerates_faults() ? faults_are_tolerated : NULL);
  if (module->its == NULL) return OMPI_ERR_OUT_OF_RESOURCE;
  module->comm = comm;
  OBJ_RETAIN(module->previous_barrier_module);
#if defined(MCA_COLL_INSTALL_API)
  MCA_COLL_INSTALL_API(comm, barrier, barrier, &module->super, "muster");
#endif
  return OMPI_SUCCESS;
}

#if defined(MCA_COLL_INSTALL_API)
static int disable(mca_coll_base_module_t* base, ompi_communicator_t* comm) {
  muster_module* const module = (muster_module*)base;
  /* Not if another's has been put over it since. */
  if (module->previous_barrier_module != NULL && comm->c_coll->coll_barrier_module == base) {
    MCA_COLL_INSTALL_API(comm, barrier, module->previous_barrier, module->previous_barrier_module,
                         "muster");
  }
  release_previous(module); /* may be called again */
  return OMPI_SUCCESS;
}
#endif

/* Local and without agreement: so it depends on nothing that could differ between ranks. */
static mca_coll_base_module_t* query(ompi_communicator_t* comm, int* its_priority) {
  if (priority < 0 || OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2) return NULL;
  muster_module* const module = OBJ_NEW(muster_module);
  if (module == NULL) return NULL;
  *its_priority = priority;
  module->super.coll_module_enable = enable;
#if defined(MCA_COLL_INSTALL_API)
  module->super.coll_module_disable = disable;
#endif
  module->super.coll_barrier = barrier;
  return &module->super;
}

/* ---- the component ---- */

/* What this was compiled against differs between series of Open MPI that share the number of the
 * interface, as 4.0 and 4.1 do. Rank 0 of the job says so. */
static bool is_the_right_series(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  int major = 0;
  int minor = 0;
  if (PMPI_Get_library_version(version, &length) != MPI_SUCCESS ||
      sscanf(version, "Open MPI v%d.%d", &major, &minor) != 2) {
    return true; /* a vendor's, of its own name */
  }
  if (major == OMPI_MAJOR_VERSION && minor == OMPI_MINOR_VERSION) return true;
  const char* const rank = secure_getenv("OMPI_COMM_WORLD_RANK");
  if (rank == NULL || atoi(rank) == 0) {
    fprintf(stderr,
            "muster: coll/muster was built for Open MPI %d.%d, this is %d.%d: it takes no part. "
            "Build and install it with this one's mpicc (make install-openmpi).\n",
            OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, major, minor);
  }
  return false;
}

static int init_query(bool with_progress_threads, bool with_threads) {
  (void)with_progress_threads;
  (void)with_threads;
  if (!is_the_right_series()) return OMPI_ERR_NOT_AVAILABLE;
  settings = (mpi_settings){.barrier = barrier_name,
                            .levels = levels,
                            .wait = wait_policy,
                            .verbose = verbose,
                            .counters = number_in("MUSTER_MPI_COUNTERS") != 0,
                            .report = report_asked_for()};
  team_start(&operations, &settings);
  return OMPI_SUCCESS;
}

static int close_component(void) {
  team_finish();
  return OMPI_SUCCESS;
}

static int register_parameters(void);

/* Open MPI looks for this name. */
OMPI_DECLSPEC extern const mca_coll_base_component_t mca_coll_muster_component;
const mca_coll_base_component_t mca_coll_muster_component = {
    .collm_version =
        {
            COLL_VERSION,
            .mca_component_name = "muster",
            MCA_BASE_MAKE_VERSION(component, MUSTER_VERSION_MAJOR, MUSTER_VERSION_MINOR, 0),
            .mca_close_component = close_component,
            .mca_register_component_params = register_parameters,
            .reserved = {0},
        },
    .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .collm_init_query = init_query,
    .collm_comm_query = query,
};

static void register_int(const char* name, const char* help, int* value) {
  mca_base_component_var_register(&mca_coll_muster_component.collm_version, name, help,
                                  MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_4,
                                  MCA_BASE_VAR_SCOPE_READONLY, value);
}

static void register_text(const char* name, const char* help, char** value) {
  mca_base_component_var_register(&mca_coll_muster_component.collm_version, name, help,
                                  MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_4,
                                  MCA_BASE_VAR_SCOPE_READONLY, value);
}

/* What tools read as MPI_T variables: of this process, over all its communicators. */
static int get_barriers(const struct mca_base_pvar_t* variable, void* value, void* object) {
  (void)variable;
  (void)object;
  const mpi_counters all = team_counters();
  *(unsigned long long*)value = all.inside + all.hosts + all.messages;
  return OMPI_SUCCESS;
}

static int get_waited(const struct mca_base_pvar_t* variable, void* value, void* object) {
  (void)variable;
  (void)object;
  *(unsigned long long*)value = team_counters().waited_ns;
  return OMPI_SUCCESS;
}

static int get_own(const struct mca_base_pvar_t* variable, void* value, void* object) {
  (void)variable;
  (void)object;
  *(unsigned long long*)value = team_counters().own_ns;
  return OMPI_SUCCESS;
}

static void register_measured(const char* name, const char* help, mca_base_get_value_fn_t get) {
  mca_base_component_pvar_register(
      &mca_coll_muster_component.collm_version, name, help, OPAL_INFO_LVL_4,
      MPI_T_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MPI_T_BIND_NO_OBJECT,
      MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, get, NULL, NULL, NULL);
}

static int register_parameters(void) {
  register_measured("barriers", "Barriers that muster served", get_barriers);
  register_measured("waited_ns",
                    "Nanoseconds that this rank waited for the last ones (with MUSTER_REPORT)",
                    get_waited);
  register_measured("own_ns", "Nanoseconds that the barriers themselves took (with MUSTER_REPORT)",
                    get_own);
  register_int("priority", "Priority of the muster barrier; negative: it is not used", &priority);
  register_text("barrier",
                "Which barrier: auto (default), one that `muster list` names, or base-linear, "
                "base-double-ring, base-recursive-doubling, base-bruck, base-tree over MPI's own "
                "send and receive",
                &barrier_name);
  register_text("levels",
                "Levels of the machine that the hierarchy uses, such as numa,socket (default: all "
                "that group cores here)",
                &levels);
  register_text("wait",
                "How ranks wait: auto (default), spin, yield, sleep, spin-yield, spin-yield-sleep, "
                "yield-sleep",
                &wait_policy);
  register_int("verbose",
               "1: say which barrier each communicator got, and why; 2: of those used again too",
               &verbose);
  return OMPI_SUCCESS;
}
