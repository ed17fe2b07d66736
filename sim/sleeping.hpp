// SPDX-License-Identifier: BSD-3-Clause
// The modelled machine with what mutexes ask for beside (lock/parking_front.hpp): a futex, on which
// participants sleep. Each has a line of its own for that, behind the lock's; its waker stores
// there.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "lock/parking_queue.hpp"
#include "sim/modelled.hpp"
#include "wait/parking.hpp"

namespace muster::sim {

/// Of a futex, nanoseconds. The defaults are assumed: of a server that runs Linux.
struct SleepCosts {
  double call = 300;          ///< a call that finds nobody to wake, or nothing to sleep for
  double wake = 1'500;        ///< of who wakes another
  double runs_after = 5'000;  ///< from then until the other one runs
};

/// Who sleeps where.
class Beds {
 public:
  /// Participant p sleeps on line `first` + p.
  Beds(Engine& engine, std::size_t first, const SleepCosts& costs)
      : engine_(engine), first_(first), costs_(costs) {}

  void sleep(unsigned participant, const Line& on, Word seen) {
    std::vector<unsigned>& here = asleep_[&on];
    here.push_back(participant);  // before it looks: so no wake-up is missed
    engine_.delay(participant, from_ns(costs_.call));
    if (engine_.load(participant, on) != seen && std::erase(here, participant) != 0) return;
    engine_.await(participant, bed(participant), Test::of(Differs{woken_[participant]}));
    woken_[participant] = bed(participant).value;
    engine_.delay(participant, from_ns(costs_.runs_after - costs_.wake));
  }

  void wake(unsigned participant, const Line& on) {
    std::vector<unsigned>& here = asleep_[&on];
    if (here.empty()) return engine_.delay(participant, from_ns(costs_.call));
    const unsigned other = here.front();
    here.erase(here.begin());
    engine_.delay(participant, from_ns(costs_.wake));
    engine_.store(participant, bed(other), bed(other).value + 1);
  }

 private:
  Line& bed(unsigned participant) { return engine_.line(first_ + participant); }

  Engine& engine_;
  std::size_t first_;
  SleepCosts costs_;
  std::unordered_map<const Line*, std::vector<unsigned>> asleep_;  ///< first come first
  std::unordered_map<unsigned, Word> woken_;                       ///< its bed, the last time
};

class Sleeping : public Modelled {
 public:
  Sleeping(Engine& engine, unsigned participant, Beds& beds)
      : Modelled(engine, participant), beds_(&beds) {}

  template <class Pred>
  bool poll(Cell& cell, Pred pred) {
    if (pred(load(cell, relaxed))) return true;
    for (unsigned looks = 0; const unsigned pauses = Parking::pauses(looks); ++looks) {
      linger(pauses);
      if (pred(load(cell, relaxed))) return true;
    }
    return false;
  }
  bool is_overdue() { return parking_.is_overdue(engine().clock(participant()) / from_ns(1)); }
  bool park(const Cell& cell, Word seen) {
    beds_->sleep(participant(), cell, seen);
    return true;
  }
  void unpark(const Cell& cell) { beds_->wake(participant(), cell); }
  /// Before each section: a port on hardware belongs to one call.
  void begin() { parking_ = {}; }

 private:
  Beds* beds_;
  Parking parking_;
};

}  // namespace muster::sim
