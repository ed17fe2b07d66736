// SPDX-License-Identifier: BSD-3-Clause
// When to look for what another thread is about to write to a line that this one has written last:
// a client for its answer, a server for the next request. A look before that takes the line from
// the writer, and costs two transfers; a late one costs what it is late.
#pragma once

#include <algorithm>

#include "machine/hardware.hpp"

namespace muster::delegation {

/// Learns the time from its looks, so that one first look in five is early where the writer is not
/// farther away than `most_pauses`. Of one thread.
class FirstLook {
 public:
  /// 100 ns on Zen 5, where a quick transfer takes 25 and a slow one 130 to 150. Elsewhere a pause
  /// takes several times as long, and nothing was measured.
  static constexpr unsigned most_pauses = relaxes_briefly ? 20 : 4;

  /// So many relax_briefly(); none at first.
  unsigned pauses() const noexcept { return std::min(sixteenths_ / one, most_pauses); }
  void pause() const noexcept {
    for (unsigned left = pauses(); left > 0; --left) relax_briefly();
  }

  void was_in_time() noexcept { sixteenths_ -= std::min(sixteenths_, 1U); }
  void was_early() noexcept { sixteenths_ = std::min(sixteenths_ + step, most); }
  /// Early, but to wait would not have helped.
  void was_useless() noexcept { sixteenths_ -= std::min(sixteenths_, step); }

 private:
  static constexpr unsigned one = 16;
  /// One early look costs some 30 ns, and one that is late by a pause 5. With 2 or 8 instead of 4
  /// calls took a tenth longer.
  static constexpr unsigned step = 4;
  static constexpr unsigned most = most_pauses * one + step - 1;

  unsigned sixteenths_ = 0;
};

}  // namespace muster::delegation
