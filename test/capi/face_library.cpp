// SPDX-License-Identifier: BSD-3-Clause
// Two libraries with hidden visibility, whose threads meet at one barrier.
#include <muster/muster.hpp>

[[gnu::visibility("default")]] void MEET(muster::barrier<>& sync);

void MEET(muster::barrier<>& sync) { sync.arrive_and_wait(); }
