/* SPDX-License-Identifier: BSD-3-Clause */
/* muster.h is strict C11, and the ABI is what it was: values and places that programs are built on.
 */
#include <muster/muster.h>

_Static_assert(MUSTER_OK == 0 && MUSTER_EINVAL == 1 && MUSTER_EUNKNOWN == 2, "");
_Static_assert(MUSTER_ENOTSUP == 3 && MUSTER_EDECLINED == 4 && MUSTER_ENOMEM == 5, "");
_Static_assert(MUSTER_ESYSTEM == 6 && MUSTER_EFOREIGN == 7 && MUSTER_ETIMEDOUT == 8, "");
_Static_assert(MUSTER_EBROKEN == 9 && MUSTER_EPEER == 10 && MUSTER_EBUSY == 11, "");
_Static_assert(MUSTER_SHARED == 1 && MUSTER_SPLIT == 2 && MUSTER_EXACT == 4, "");

#if UINTPTR_MAX == UINT64_MAX
_Static_assert(offsetof(muster_options, participants) == 8, "");
_Static_assert(offsetof(muster_options, algorithm) == 16, "");
_Static_assert(offsetof(muster_options, wait) == 24, "");
_Static_assert(offsetof(muster_options, flags) == 32, "");
_Static_assert(offsetof(muster_options, topology) == 40, "");
_Static_assert(offsetof(muster_options, map_by) == 48, "");
_Static_assert(offsetof(muster_options, bindings) == 56, "");
_Static_assert(offsetof(muster_options, others) == 64, "");
_Static_assert(offsetof(muster_options, other_bindings) == 72, "");
_Static_assert(offsetof(muster_options, segment) == 80, "");
_Static_assert(offsetof(muster_options, memory) == 88, "");
_Static_assert(offsetof(muster_options, memory_bytes) == 96, "");
_Static_assert(offsetof(muster_options, progress) == 104, "");
_Static_assert(offsetof(muster_options, completion) == 112, "");
_Static_assert(offsetof(muster_options, context) == 120, "");
_Static_assert(offsetof(muster_options, first_episode) == 128, "");
#endif

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
