// SPDX-License-Identifier: BSD-3-Clause
// The mutex `mcs`: lock/parking_queue.hpp, whose first one calls the next in line.
#pragma once

#include "lock/parking_queue.hpp"

namespace muster::locks {

template <class M>
struct InLine {
  static constexpr Traits traits{"mcs", Style::direct, false, "two",
                                 "Mellor-Crummey and Scott 1991, beside a word as in qspinlock"};
  template <class Q>
  static Word choose(M&, const Q&, const typename Q::Ticket&, Word next) {
    return next;
  }
  template <class Q>
  static Word rest(M&, const Q&, const typename Q::Ticket&) {
    return 0;
  }
};
template <class M>
using ParkingMcs = ParkingQueue<M, InLine>;

}  // namespace muster::locks
