// SPDX-License-Identifier: BSD-3-Clause
// When to look for what another thread is about to write to a line that this one has written last:
// a client for its answer, a server for the next request. A look before that takes the line from
// the writer, and costs two transfers; a late one costs what it is late.
#pragma once

#include <algorithm>

#include "machine/hardware.hpp"

namespace muster::delegation {

/// Learns the time from its looks, so that one first look in five is early. Of one thread.
class FirstLook {
 public:
  static constexpr unsigned most_pauses = 20;  ///< on x86 not quite as long as a slow transfer
  /// So many relax_briefly(), at most `most_pauses`; none at first.
  unsigned pauses() const noexcept { return sixteenths_ / one; }
  void pause() const noexcept {
    for (unsigned left = pauses(); left > 0; --left) relax_briefly();
  }

  /// `early`: looks before the one that found it. By a few: to wait longer would have been better.
  /// By more: the writer was not at it; or lines are slow, and who asks early has one soonest.
  void learn(unsigned early) noexcept {
    if (early != 0 && early <= few) {
      sixteenths_ = std::min(sixteenths_ + step, most);
    } else {
      sixteenths_ -= std::min(sixteenths_, early == 0 ? 1 : step);
    }
  }

 private:
  static constexpr unsigned one = 16;
  static constexpr unsigned most = most_pauses * one;
  static constexpr unsigned step = 4;
  static constexpr unsigned few = 2;

  unsigned sixteenths_ = 0;
};

}  // namespace muster::delegation
