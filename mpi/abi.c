/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/abi.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mpi_abi found;
static bool usable;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void* library; /* where the symbols are */

enum { names_max = 64 };
typedef struct names {
  char* all[names_max];
  unsigned count;
} names;

static int note_name(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  names* const noted = data;
  const char* const folder_end = info->dlpi_name != NULL ? strrchr(info->dlpi_name, '/') : NULL;
  if (folder_end != NULL && strstr(folder_end, "libmpi") != NULL && noted->count < names_max) {
    noted->all[noted->count++] = strdup(info->dlpi_name);
  }
  return 0;
}

/* An MPI that was loaded by dlopen, as Python's modules load it, is in nobody's default scope. Each
 * is opened when the list is complete: under its lock, dlopen could wait for a thread that is in
 * dlopen and waits for that lock. */
static void look_into_libraries(void) {
  names noted = {.count = 0};
  dl_iterate_phdr(note_name, &noted);
  for (unsigned i = 0; i < noted.count; ++i) {
    void* const handle = library == NULL && noted.all[i] != NULL
                             ? dlopen(noted.all[i], RTLD_LAZY | RTLD_NOLOAD)
                             : NULL;
    if (handle != NULL && dlsym(handle, "PMPI_Barrier") != NULL) {
      library = handle;
    } else if (handle != NULL) {
      dlclose(handle);
    }
    free(noted.all[i]);
  }
}

static bool find(void* function, const char* name) {
  void* const symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol); /* C has no cast from object to function pointers */
  return symbol != NULL;
}

/* A function that we export too. */
static bool find_next(void* function, const char* name) {
  void* const symbol = dlsym(library == RTLD_DEFAULT ? RTLD_NEXT : library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* The standard ABI's handles are other ones, whoever's MPI it is. */
static bool has_standard_abi(void) {
  Dl_info where;
  return dladdr(dlsym(library, "PMPI_Barrier"), &where) != 0 && where.dli_fname != NULL &&
         strstr(where.dli_fname, "libmpi_abi") != NULL;
}

/* MPICH, or one of those that keep to its ABI; all say so of themselves. */
static bool is_mpich(char* version, size_t bytes) {
  enum { version_bytes = 8192 }; /* what the largest MPI_MAX_LIBRARY_VERSION_STRING asks for */
  static const char* const families[] = {"MPICH", "MVAPICH", "Intel(R) MPI", NULL};
  int (*get_version)(char* text, int* length) = NULL;
  char text[version_bytes] = "";
  int length = 0;
  if (!find(&get_version, "PMPI_Get_library_version") || get_version(text, &length) != 0) {
    return false;
  }
  snprintf(version, bytes, "%.*s", (int)strcspn(text, "\n"), text);
  for (const char* const* family = families; *family != NULL; ++family) {
    if (strstr(text, *family) != NULL) return true;
  }
  return false;
}

static bool set_constants(void) {
  static const bool no = false;
  char version[128] = "of unknown version";
  if (has_standard_abi()) {
    fputs("muster: MPI's standard ABI is not known: the MPI's own barrier serves\n", stderr);
    return false;
  }
  if (dlsym(library, "PMPI_Comm_f2c") != NULL && dlsym(library, "ompi_mpi_comm_self") != NULL) {
    /* Handles are the addresses of its objects. */
    found.comm_null = (mpi_handle)dlsym(library, "ompi_mpi_comm_null");
    found.comm_self = (mpi_handle)dlsym(library, "ompi_mpi_comm_self");
    found.comm_world = (mpi_handle)dlsym(library, "ompi_mpi_comm_world");
    found.type_byte = (mpi_handle)dlsym(library, "ompi_mpi_byte");
    found.type_int = (mpi_handle)dlsym(library, "ompi_mpi_int");
    found.op_min = (mpi_handle)dlsym(library, "ompi_mpi_op_min");
    found.errors_return = (mpi_handle)dlsym(library, "ompi_mpi_errors_return");
    found.any_source = -1;
    found.any_tag = -1;
    found.undefined = -32766;
    found.error_other = 16;
    found.status_ignore = NULL;
    found.tolerates_faults = dlsym(library, "ompi_ftmpi_enabled");
    if (found.tolerates_faults == NULL) found.tolerates_faults = &no; /* before 5.0 */
    return found.comm_null != 0 && found.comm_world != 0 && found.type_byte != 0 &&
           found.type_int != 0 && found.op_min != 0 && found.errors_return != 0;
  }
  if (!is_mpich(version, sizeof version)) {
    fprintf(stderr, "muster: this MPI (%s) is not known: its own barrier serves\n", version);
    return false;
  }
  found.handles_are_ints = true;
  found.comm_null = 0x04000000;
  found.comm_self = 0x44000001;
  found.comm_world = 0x44000000;
  found.type_byte = 0x4c00010d;
  found.type_int = 0x4c000405;
  found.op_min = 0x58000002;
  found.errors_return = 0x54000001;
  found.any_source = -2;
  found.any_tag = -1;
  found.undefined = -32766;
  found.error_other = 15;
  found.status_ignore = (void*)1; /* NOLINT: the ABI's constant */
  found.tolerates_faults = &no;   /* MPIX_Comm_revoke is there, and fails */
  return true;
}

static bool set_functions(void) {
  find(&found.Comm_f2c, "PMPI_Comm_f2c");
  found.yields_when_idle = dlsym(library, "ompi_mpi_yield_when_idle");
  if (found.yields_when_idle != NULL) {
    find(&found.set_yield_when_idle, "opal_progress_set_yield_when_idle");
  }
  return find(&found.Allgather, "PMPI_Allgather") && find(&found.Bcast, "PMPI_Bcast") &&
         find(&found.Allreduce, "PMPI_Allreduce") && find(&found.Send, "PMPI_Send") &&
         find(&found.Ssend, "PMPI_Ssend") && find(&found.Recv, "PMPI_Recv") &&
         find(&found.Irecv, "PMPI_Irecv") && find(&found.Grequest_start, "PMPI_Grequest_start") &&
         find(&found.Grequest_complete, "PMPI_Grequest_complete") &&
         find(&found.Request_get_status, "PMPI_Request_get_status") &&
         find(&found.Iprobe, "PMPI_Iprobe") && find(&found.Wait, "PMPI_Wait") &&
         find(&found.Comm_rank, "PMPI_Comm_rank") && find(&found.Comm_size, "PMPI_Comm_size") &&
         find(&found.Comm_test_inter, "PMPI_Comm_test_inter") &&
         find(&found.Comm_get_name, "PMPI_Comm_get_name") &&
         find(&found.Comm_split, "PMPI_Comm_split") && find(&found.Comm_dup, "PMPI_Comm_dup") &&
         find_next(&found.Comm_free, "PMPI_Comm_free") &&
         find(&found.Comm_create_keyval, "PMPI_Comm_create_keyval") &&
         find(&found.Comm_set_attr, "PMPI_Comm_set_attr") &&
         find(&found.Comm_get_attr, "PMPI_Comm_get_attr") &&
         find(&found.Comm_delete_attr, "PMPI_Comm_delete_attr") &&
         find(&found.Comm_get_errhandler, "PMPI_Comm_get_errhandler") &&
         find(&found.Comm_set_errhandler, "PMPI_Comm_set_errhandler") &&
         find(&found.Errhandler_free, "PMPI_Errhandler_free") &&
         find(&found.Comm_call_errhandler, "PMPI_Comm_call_errhandler") &&
         find(&found.Initialized, "PMPI_Initialized");
}

static void search(void) {
  if (dlsym(RTLD_DEFAULT, "PMPI_Barrier") != NULL) {
    library = RTLD_DEFAULT;
  } else {
    look_into_libraries();
  }
  if (!find(&found.Barrier, "PMPI_Barrier")) { /* RTLD_DEFAULT is NULL */
    fputs("muster: MPI was called, but this process has none\n", stderr);
  } else if (set_constants()) {
    usable = set_functions();
    if (!usable) {
      fputs("muster: this MPI lacks functions that Muster needs: its own barrier serves\n", stderr);
    }
  }
}

const mpi_abi* the_mpi(void) {
  pthread_once(&once, search);
  return usable ? &found : NULL;
}

mpi_barrier_function* their_barrier(void) {
  pthread_once(&once, search);
  return found.Barrier;
}

mpi_free_function* their_free_function(const char* name) {
  mpi_free_function* theirs = NULL;
  pthread_once(&once, search);
  find_next(&theirs, name);
  return theirs;
}

mpi_handle handle_from(const mpi_abi* abi, const void* written) {
  if (abi->handles_are_ints) {
    int handle = 0;
    memcpy(&handle, written, sizeof handle);
    return handle;
  }
  mpi_handle handle = 0;
  memcpy(&handle, written, sizeof handle);
  return handle;
}

mpi_handle handle_from_fortran(const mpi_abi* abi, int comm) {
  return abi->handles_are_ints ? comm : (mpi_handle)abi->Comm_f2c(comm);
}
