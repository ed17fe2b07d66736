/* SPDX-License-Identifier: BSD-3-Clause */
/* A barrier handed to programs that this one starts, by an inherited descriptor: no name needed. */
#include <muster/muster.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { participants = 3, episodes = 1000 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, muster_last_error());
  return 1;
}

static int meet(muster_barrier* barrier, unsigned rank) {
  for (int i = 0; i < episodes; ++i) {
    if (muster_barrier_wait(barrier, rank) != MUSTER_OK) return fail("wait");
  }
  muster_barrier_destroy(barrier);
  return 0;
}

/* What the started programs do: `descriptor FD RANK`. */
static int participate(int fd, unsigned rank) {
  muster_barrier* barrier = NULL;
  if (muster_barrier_attach(&barrier, fd) != MUSTER_OK) return fail("attach");
  close(fd); /* the barrier has its own */
  return meet(barrier, rank);
}

int main(int argc, char** argv) {
  if (argc == 3) return participate(atoi(argv[1]), (unsigned)atoi(argv[2]));

  muster_options options;
  muster_options_init(&options);
  options.participants = participants;
  options.flags = MUSTER_SHARED;
  muster_barrier* barrier = NULL;
  if (muster_barrier_create(&barrier, &options) != MUSTER_OK) return fail("create");
  for (unsigned rank = 1; rank < participants; ++rank) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      char fd[16];
      char number[16];
      /* The barrier's descriptor is closed by exec; a duplicate is not. */
      snprintf(fd, sizeof fd, "%d", dup(muster_barrier_fd(barrier)));
      snprintf(number, sizeof number, "%u", rank);
      execl(argv[0], argv[0], fd, number, (char*)NULL);
      perror(argv[0]);
      _exit(1);
    }
  }
  int failed = meet(barrier, 0);
  int status = 0;
  while (wait(&status) > 0) failed |= status;
  if (failed != 0) return 1;
  printf("%d programs met %d times\n", participants, episodes);
  return 0;
}
