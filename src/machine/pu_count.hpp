// SPDX-License-Identifier: BSD-3-Clause
// How many of a barrier's participants arrived on one PU, in one word: the episode modulo 4, how
// many arrived there in its last one, how many in this one so far. A hint: a participant that was
// moved, or an update that was lost, makes it wrong, and the next episode counts anew. More than
// 2^15 on one PU only mix it up.
#pragma once

#include "machine/machine.hpp"

namespace muster {

class PuCount {
 public:
  explicit PuCount(Word word) : word_(word) {}
  Word word() const { return word_; }

  /// Counts one in. True if as many have arrived now as in the episode before.
  bool count_in(Word episode) {
    constexpr Word episodes = 4;
    if (word_ >> 2 * bits != episode % episodes) {
      word_ = episode % episodes << 2 * bits | (word_ & mask) << bits;
    }
    ++word_;
    return (word_ & mask) == (word_ >> bits & mask);
  }

 private:
  static constexpr unsigned bits = 15;
  static constexpr Word mask = (Word{1} << bits) - 1;

  Word word_;
};

}  // namespace muster
