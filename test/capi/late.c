/* SPDX-License-Identifier: BSD-3-Clause */
/* Three processes, of which rank 2's stops itself: for what MUSTER_WATCHDOG says on stderr. */
#include <muster/muster.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int take_part(muster_barrier* barrier, unsigned rank) {
  if (muster_barrier_wait(barrier, rank) != MUSTER_OK) return 1;
  if (rank == 2) raise(SIGSTOP);
  return muster_barrier_wait(barrier, rank) == MUSTER_OK ? 0 : 1;
}

int main(void) {
  muster_options options;
  muster_options_init(&options);
  options.participants = 3;
  options.flags = MUSTER_SHARED;
  muster_barrier* barrier = NULL;
  if (muster_barrier_create(&barrier, &options) != MUSTER_OK) {
    fprintf(stderr, "%s\n", muster_last_error());
    return 1;
  }
  for (unsigned rank = 1; rank < 3; ++rank) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      _exit(take_part(barrier, rank));
    }
  }
  int failed = take_part(barrier, 0);
  for (unsigned rank = 1; rank < 3; ++rank) {
    int status = 1;
    if (wait(&status) < 0 || status != 0) failed = 1;
  }
  muster_barrier_destroy(barrier);
  return failed;
}
