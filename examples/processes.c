/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that find a barrier by its name; nothing is left behind, however they end. */
#include <muster/muster.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { participants = 3, episodes = 1000 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, muster_last_error());
  return 1;
}

static int participate(const char* name, unsigned rank) {
  muster_barrier* barrier = NULL;
  const int64_t ten_seconds = INT64_C(10000000000);
  if (muster_barrier_attach_name(&barrier, name, ten_seconds) != MUSTER_OK) return fail("attach");
  for (int i = 0; i < episodes; ++i) {
    if (muster_barrier_timedwait(barrier, rank, ten_seconds) != MUSTER_OK) return fail("wait");
  }
  muster_barrier_destroy(barrier);
  return 0;
}

int main(void) {
  char name[64];
  snprintf(name, sizeof name, "example-%d", (int)getpid());
  for (unsigned rank = 1; rank < participants; ++rank) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) return participate(name, rank);
  }
  muster_options options;
  muster_options_init(&options);
  options.participants = participants;
  options.flags = MUSTER_SHARED;
  muster_barrier* barrier = NULL;
  if (muster_barrier_create(&barrier, &options) != MUSTER_OK) return fail("create");
  if (muster_barrier_publish(barrier, name) != MUSTER_OK) return fail("publish");
  for (int i = 0; i < episodes; ++i) {
    if (muster_barrier_wait(barrier, 0) != MUSTER_OK) return fail("wait");
  }
  muster_barrier_destroy(barrier);

  int status = 0;
  int failed = 0;
  while (wait(&status) > 0) failed |= status;
  if (failed != 0) return 1;
  printf("%d processes met %d times\n", participants, episodes);
  return 0;
}
