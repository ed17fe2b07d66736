// SPDX-License-Identifier: BSD-3-Clause
// What set-up code throws. The hot path never does; the C edge turns it into a code and a text.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace muster {

/// Why something failed. The values are the C ABI's (`muster.h`, MUSTER_E*): append, never
/// renumber.
enum class Status : int {
  ok = 0,
  invalid = 1,       ///< an argument is out of range, malformed or contradicts another
  unknown_name = 2,  ///< no algorithm, level, mapping or policy has this name
  unsupported = 3,   ///< valid, but this algorithm, machine or kernel cannot do it
  declined = 4,      ///< the algorithm declines this placement (unbound ranks); another one serves
  no_memory = 5,     ///< memory, /dev/shm or the segment is exhausted
  system = 6,        ///< a system call failed; the text names it and its errno
  foreign = 7,  ///< not one of our segments: magic, version, owner, mode, seal or layout differ
  timeout = 8,  ///< the deadline passed; the barrier is broken for all
  broken = 9,   ///< another participant timed out or broke the barrier before
  peer = 10,    ///< a participant died
  busy = 11,    ///< the rank or object is in use by another
};

/// A text for a terminal, on one line: what may be quoted from elsewhere keeps its letters, of any
/// script, while control characters and what is no UTF-8 become "\\x1b" and the like.
inline std::string printable(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  // Bytes of the character that begins there; 0: none that can be shown.
  const auto length_at = [&](std::size_t at) -> std::size_t {
    const unsigned first = byte(at);
    const unsigned second = byte(at + 1);
    if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
    if (first < 0xc2 || first > 0xf4) return 0;
    // Below these it is a control character (C1), or longer than it need be; above, no character.
    const unsigned least = first == 0xc2 || first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (second < least || second > most) return 0;
    const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    for (std::size_t n = 2; n < length; ++n) {
      if (byte(at + n) < 0x80 || byte(at + n) > 0xbf) return 0;
    }
    return length;
  };
  constexpr char digits[] = "0123456789abcdef";
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t length = length_at(at); length > 0) {
      shown += text.substr(at, length);
      at += length;
    } else {
      shown += {'\\', 'x', digits[byte(at) >> 4], digits[byte(at) & 0xfU]};
      ++at;
    }
  }
  return shown;
}

/// Its text is printable().
class Error : public std::runtime_error {
 public:
  Error(Status code, const std::string& message)
      : std::runtime_error(printable(message)), code_(code) {}
  Status code() const noexcept { return code_; }

 private:
  Status code_;
};

}  // namespace muster
