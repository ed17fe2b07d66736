/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/abi.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static mpi_abi found;
static bool usable;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void* library; /* where the symbols are */

/* Stops at a library that has the function. An MPI that was loaded by dlopen, as Python's modules
 * load it, is in nobody's default scope. */
static int look_into(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  (void)data;
  const char* const name = info->dlpi_name;
  if (name == NULL || strstr(name, "mpi") == NULL) return 0;
  void* const handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == NULL) return 0;
  if (dlsym(handle, "PMPI_Barrier") != NULL) {
    library = handle;
    return 1;
  }
  dlclose(handle);
  return 0;
}

static bool set_constants(void) {
  if (dlsym(library, "PMPI_Comm_f2c") != NULL && dlsym(library, "ompi_mpi_comm_self") != NULL) {
    found.family = "Open MPI";
    /* Handles are the addresses of its objects. */
    found.comm_null = (mpi_handle)dlsym(library, "ompi_mpi_comm_null");
    found.comm_self = (mpi_handle)dlsym(library, "ompi_mpi_comm_self");
    found.type_byte = (mpi_handle)dlsym(library, "ompi_mpi_byte");
    found.type_int = (mpi_handle)dlsym(library, "ompi_mpi_int");
    found.op_min = (mpi_handle)dlsym(library, "ompi_mpi_op_min");
    found.undefined = -32766;
    found.error_other = 16;
    found.status_ignore = NULL;
    return found.comm_null != 0 && found.type_byte != 0 && found.type_int != 0 && found.op_min != 0;
  }
  found.family = "MPICH";
  found.handles_are_ints = true;
  found.comm_null = 0x04000000;
  found.comm_self = 0x44000001;
  found.type_byte = 0x4c00010d;
  found.type_int = 0x4c000405;
  found.op_min = 0x58000002;
  found.undefined = -32766;
  found.error_other = 15;
  found.status_ignore = (void*)1; /* NOLINT: the ABI's constant */
  return true;
}

static bool find(void* function, const char* name) {
  void* const symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol); /* C has no cast from object to function pointers */
  return symbol != NULL;
}

static bool set_functions(void) {
  find(&found.Comm_f2c, "PMPI_Comm_f2c");
  return find(&found.Barrier, "PMPI_Barrier") && find(&found.Allgather, "PMPI_Allgather") &&
         find(&found.Bcast, "PMPI_Bcast") && find(&found.Allreduce, "PMPI_Allreduce") &&
         find(&found.Send, "PMPI_Send") && find(&found.Recv, "PMPI_Recv") &&
         find(&found.Irecv, "PMPI_Irecv") &&
         find(&found.Request_get_status, "PMPI_Request_get_status") &&
         find(&found.Cancel, "PMPI_Cancel") && find(&found.Wait, "PMPI_Wait") &&
         find(&found.Comm_rank, "PMPI_Comm_rank") && find(&found.Comm_size, "PMPI_Comm_size") &&
         find(&found.Comm_test_inter, "PMPI_Comm_test_inter") &&
         find(&found.Comm_split, "PMPI_Comm_split") && find(&found.Comm_dup, "PMPI_Comm_dup") &&
         find(&found.Comm_free, "PMPI_Comm_free") &&
         find(&found.Comm_create_keyval, "PMPI_Comm_create_keyval") &&
         find(&found.Comm_set_attr, "PMPI_Comm_set_attr") &&
         find(&found.Comm_get_attr, "PMPI_Comm_get_attr") &&
         find(&found.Comm_call_errhandler, "PMPI_Comm_call_errhandler") &&
         find(&found.Initialized, "PMPI_Initialized") && find(&found.Finalized, "PMPI_Finalized");
}

static void search(void) {
  if (dlsym(RTLD_DEFAULT, "PMPI_Barrier") != NULL) {
    library = RTLD_DEFAULT;
  } else {
    dl_iterate_phdr(look_into, NULL);
  }
  if (dlsym(library, "PMPI_Barrier") == NULL) { /* RTLD_DEFAULT is NULL */
    fputs("muster: MPI_Barrier was called, but this process has no MPI\n", stderr);
    return;
  }
  usable = set_constants() && set_functions();
  if (!usable) fputs("muster: this MPI lacks functions that Muster needs\n", stderr);
}

const mpi_abi* the_mpi(void) {
  pthread_once(&once, search);
  return usable ? &found : NULL;
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
