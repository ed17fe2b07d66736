// SPDX-License-Identifier: BSD-3-Clause
#include "sim/barrier_run.hpp"

#include "barrier/registry.hpp"

namespace muster::sim {

BarrierOutcome run_barrier(std::string_view name, const BarrierSetup& setup, StackPool& pool) {
  return with_barrier<Modelled>(name, [&]<class B>() { return run_barrier_as<B>(setup, pool); });
}

}  // namespace muster::sim
