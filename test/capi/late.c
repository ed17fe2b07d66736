/* SPDX-License-Identifier: BSD-3-Clause */
/* Three threads, of which the last is late: for what MUSTER_WATCHDOG says on stderr. */
#include <muster/muster.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static muster_barrier* barrier;

static void* participant(void* argument) {
  const unsigned rank = (unsigned)(uintptr_t)argument;
  intptr_t failures = muster_barrier_wait(barrier, rank) != MUSTER_OK;
  if (rank == 2) usleep(200000);
  failures += muster_barrier_wait(barrier, rank) != MUSTER_OK;
  return (void*)failures;
}

int main(void) {
  muster_options options;
  muster_options_init(&options);
  options.participants = 3;
  if (muster_barrier_create(&barrier, &options) != MUSTER_OK) {
    fprintf(stderr, "%s\n", muster_last_error());
    return 1;
  }
  pthread_t threads[3];
  for (uintptr_t rank = 0; rank < 3; ++rank) {
    if (pthread_create(&threads[rank], NULL, participant, (void*)rank) != 0) return 1;
  }
  int failed = 0;
  for (int i = 0; i < 3; ++i) {
    void* failures = NULL;
    pthread_join(threads[i], &failures);
    if (failures != NULL) failed = 1;
  }
  muster_barrier_destroy(barrier);
  return failed;
}
