/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that makes a barrier, for secure.sh: what came of it, and what is left of the
 * environment. "secure": whether it has rights that its caller has not. */
#include <muster/muster.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(int argc, char** argv) {
  char text[4096] = "";
  muster_barrier* barrier = NULL;
  muster_options options;
  (void)argv;
  if (argc > 1) return getauxval(AT_SECURE) != 0 ? 0 : 77;
  muster_options_init(&options);
  options.map_by = "core";
  if (muster_barrier_create(&barrier, &options) != MUSTER_OK) {
    puts(muster_last_error());
  } else {
    muster_barrier_wait(barrier, 0);
    muster_barrier_explain(barrier, NULL, text, sizeof text, NULL);
    fputs(text, stdout);
    muster_barrier_destroy(barrier);
  }
  for (char** at = environ; *at != NULL; ++at) {
    if (strncmp(*at, "HWLOC_", 6) == 0) puts(*at);
  }
  return 0;
}
