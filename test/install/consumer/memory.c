/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of the installed library: muster_alloc(), or malloc() where it is preloaded. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#ifdef PRELOADED
#include <dlfcn.h>
#else
#include <muster/memory.h>
#endif

int main(int argc, char** argv) {
#ifdef PRELOADED
  int (*home)(const void*) = (int (*)(const void*))dlsym(RTLD_DEFAULT, "muster_memory_numa");
  void* block = malloc(100);
  const int found = home != NULL ? home(block) : -1;
  free(block);
#else
  const unsigned numa_nodes[1] = {0};
  muster_memory_servers(numa_nodes, 1);
  void* block = muster_alloc(100);
  const int found = muster_memory_numa(block);
  muster_free(block);
#endif
  printf("memory, %s: %s\n", argc > 1 ? argv[1] : "", found == 0 ? "there" : "not there");
  return found == 0 ? 0 : 1;
}
