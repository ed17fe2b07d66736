/* SPDX-License-Identifier: BSD-3-Clause */
/* muster.h is strict C11. The ABI: test/install/libmuster.abi. */
#include <muster/muster.h>

int main(void) {
  muster_options options;
  muster_options_init(&options);
  if (options.size != sizeof options || options.participants != 1) return 1;
  muster_barrier* barrier = NULL;
  if (muster_barrier_create(&barrier, &options) != MUSTER_OK) return 2;
  if (muster_barrier_wait(barrier, 0) != MUSTER_OK) return 3;
  muster_barrier_destroy(barrier);
  return 0;
}
