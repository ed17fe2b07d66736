// SPDX-License-Identifier: BSD-3-Clause
// How often each row of the table of faults (doc/faults.md) is provoked.
#pragma once

#include <cstdlib>

namespace muster::test {

/// 12 times, 200 in a soak, 3 under a sanitizer or an emulator.
inline unsigned fault_rounds() {
  if (std::getenv("MUSTER_SOAK") != nullptr) return 200;  // NOLINT(concurrency-mt-unsafe)
#if defined(MUSTER_TEST_REDUCED) || defined(__SANITIZE_ADDRESS__)
  return 3;
#else
  return 12;  // each of four ranks under each of three ways to wait
#endif
}

}  // namespace muster::test
