/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads of a C program meet at an installed library's barrier. */
#include <muster/muster.h>
#include <pthread.h>
#include <stdio.h>

static muster_barrier* barrier;
static int written[2];

static void* participant(void* argument) {
  const unsigned rank = *(const unsigned*)argument;
  written[rank] = 1;
  if (muster_barrier_wait(barrier, rank) != MUSTER_OK) return NULL;
  return written[1 - rank] == 1 ? argument : NULL;
}

int main(void) {
  unsigned ranks[2] = {0, 1};
  pthread_t threads[2];
  int met = 1;
  muster_options options;

  muster_options_init(&options);
  options.participants = 2;
  if (muster_barrier_create(&barrier, &options) != MUSTER_OK) {
    fprintf(stderr, "%s\n", muster_last_error());
    return 1;
  }
  for (int i = 0; i < 2; ++i) {
    if (pthread_create(&threads[i], NULL, participant, &ranks[i]) != 0) return 1;
  }
  for (int i = 0; i < 2; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    met = met && result != NULL;
  }
  muster_barrier_destroy(barrier);
  printf("C, muster %s: %s\n", muster_version(), met ? "met" : "did not meet");
  return met ? 0 : 1;
}
