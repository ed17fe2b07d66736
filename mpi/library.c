/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

library libmuster;
static char missing[512];

static void find(void* handle, const char* name, void* function) {
  void* const found = handle != NULL ? dlsym(handle, name) : NULL;
  memcpy(function, &found, sizeof found);
  if (found != NULL || missing[0] != '\0') return;
  const char* const why = dlerror();
  snprintf(missing, sizeof missing, "libmuster cannot be loaded: %s", why != NULL ? why : name);
}

static void load(void) {
  void* const handle = dlopen(MUSTER_SONAME, RTLD_NOW | RTLD_LOCAL);
#define LIBRARY_FIND(name) find(handle, "muster_" #name, &libmuster.name);
  LIBRARY_FUNCTIONS(LIBRARY_FIND)
}

const char* need_library(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return missing[0] != '\0' ? missing : NULL;
}
