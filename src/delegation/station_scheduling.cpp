// SPDX-License-Identifier: BSD-3-Clause
// On which CPUs a server's threads run, and whom they outrank there.
#include <pthread.h>
#include <sched.h>

#include <cstring>
#include <utility>

#include "delegation/cpus.hpp"
#include "delegation/station.hpp"

namespace muster::delegation {
namespace {

/// Without SCHED_FIFO, or so far above its lowest priority. Who looks after threads that may never
/// give the CPU back has to outrank them.
enum Rank : int { usual = -1, servants = 0, watchdogs = 1 };

/// False: it is not allowed.
bool set_rank(std::thread& thread, Rank rank) {
  sched_param priority{};
  if (rank != usual) priority.sched_priority = sched_get_priority_min(SCHED_FIFO) + rank;
  const int policy = rank == usual ? SCHED_OTHER : SCHED_FIFO;
  return pthread_setschedparam(thread.native_handle(), policy, &priority) == 0;
}

}  // namespace

/// Empty, or why the thread is not where it should be. The system leaves out the CPUs that are not
/// there: that is refused of those that were `named`.
std::string Station::bind(Servant& servant, const PuSet& cpus, const PuSet& named) {
  if (cpus.empty()) return {};
  const int error = bind_thread(servant.thread, cpus);
  std::string why;
  if (error != 0) {
    why = std::strerror(error);
  } else {
    if (named.empty()) return {};
    const PuSet bound_to = binding_of(servant.thread);
    const PuSet left_out = named - bound_to;
    if (bound_to.empty() || left_out.empty()) return {};
    why = "it may not use " + left_out.to_string();
  }
  return "it cannot be bound to CPU " + cpus.to_string() + ": " + why +
         "; name CPUs this process may use";
}

/// With roles_ locked: SCHED_FIFO for all threads of the server, or for none. Whoever may have the
/// watchdog's rank may have the lower one.
void Station::grant_realtime() {
  realtime_granted_ = set_rank(*watchdog_, watchdogs);
  if (!realtime_granted_) return;
  for (const auto& servant : servants_) {
    servant->outranked = !servant->counted;
    if (servant->counted) rank_anew(*servant);
  }
}

/// With roles_ locked: a new thread has the rank of the one that made it.
void Station::rank_anew(Servant& servant) const {
  if (realtime_granted_) set_rank(servant.thread, servants);
}

/// With roles_ locked: a section that takes long keeps the CPU from nobody.
void Station::outrank(Servant& servant) const {
  if (realtime_granted_) servant.outranked = set_rank(servant.thread, usual);
}

/// With roles_ locked: who comes back is as before.
void Station::restore_rank(Servant& self) const {
  if (realtime_granted_ && std::exchange(self.outranked, false)) set_rank(self.thread, servants);
}

}  // namespace muster::delegation
