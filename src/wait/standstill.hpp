// SPDX-License-Identifier: BSD-3-Clause
// Whether waits without a limit have become waits without an end: all participants wait, and each
// has looked in vain since the last of them began to. Only nonsense in shared memory does that.
//
// Participants look in rounds, as in a barrier: nobody is more than a round ahead of those who wait
// in the same episode. A wait joins where the foremost is, in round `from`. If all are in a wait
// that joined by round R, and all have come to R + 3, it is certain: all had come to R + 1 when the
// first went on to R + 2, so all waited then; and each has looked since, between R + 2 and R + 3.
// The first to be released after that would need a store by one that waits. Who is stopped, or runs
// something else, does not look, and holds up the rounds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "machine/machine.hpp"

namespace muster {

/// One participant's part. Not thread-safe; others see its word().
class Standstill {
 public:
  /// Once a wait has failed to end: begin(), see() the word of each other that waits in the same
  /// episode, end(). True: nobody will be released any more. Publish word() afterwards. `wait`:
  /// tells the participant's waits apart.
  void begin(std::int64_t wait) noexcept {
    joins_ = wait != wait_;
    wait_ = wait;
    seen_ = 0;
    behind_ = ahead_ = 0;
    latest_ = static_cast<std::int16_t>(from_ - round_);
  }
  void see(Word theirs) noexcept {
    const auto round = static_cast<std::int16_t>((theirs & 0xffffU) - round_);
    const auto from = static_cast<std::int16_t>((theirs >> 16) - round_);
    behind_ = std::min(behind_, round);
    ahead_ = std::max(ahead_, round);
    latest_ = std::max(latest_, from);
    ++seen_;
  }
  bool end() noexcept {
    // Who has gone on may have stored, and nobody is far ahead but by nonsense: all look again.
    if (joins_ || seen_ != others_ || ahead_ > 1) {
      others_ = seen_;
      round_ = static_cast<std::uint16_t>(round_ + ahead_);
      from_ = round_;
      return false;
    }
    const bool stands = behind_ - latest_ >= rounds;
    if (behind_ == 0) ++round_;
    return stands;
  }
  /// Somebody has not come yet.
  void forget() noexcept { wait_ = 0; }

  Word word() const noexcept { return Word{from_} << 16 | round_; }

 private:
  static constexpr int rounds = 3;

  std::int64_t wait_ = 0;
  unsigned others_ = 0;
  std::uint16_t round_ = 0;  // modulo 2^16, and so are differences
  std::uint16_t from_ = 0;
  // Of those seen and the own, from the own round.
  std::int16_t behind_ = 0;
  std::int16_t ahead_ = 0;
  std::int16_t latest_ = 0;
  unsigned seen_ = 0;
  bool joins_ = false;
};

}  // namespace muster
