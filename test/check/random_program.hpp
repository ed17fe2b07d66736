// SPDX-License-Identifier: BSD-3-Clause
// Small random programs as data, so that the explorer and the oracle can each interpret them in
// their own way.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace muster::check::test {

enum class Code : std::uint8_t {
  load,
  store,
  store_read,  ///< stores what was read last, plus value
  add,
  exchange,
  compare_exchange,
  await_equal,
  await_at_least,
  await_any,  ///< any of all atomic locations equals value
  fence,
  plain_read,
  plain_write,
  choose,   ///< 0 or 1
  skip_if,  ///< skips the next instruction if what was read last equals value
};

enum class MemoryOrder : std::uint8_t { relaxed, acquire, release, acq_rel, seq_cst };

struct Instruction {
  Code code;
  MemoryOrder order = MemoryOrder::relaxed;
  unsigned location = 0;  ///< atomic ones first, then plain ones
  std::uint32_t value = 0;
  std::uint32_t expected = 0;
};

struct RandomProgram {
  unsigned atomics = 1;
  unsigned plains = 0;
  std::vector<std::vector<Instruction>> threads;

  std::string text() const;  ///< one instruction a line
};

/// What the generator may use; everything is equally likely.
struct Taste {
  std::vector<Code> codes;
  std::vector<MemoryOrder> fence_orders;
  unsigned threads_min = 2, threads_max = 3;
  unsigned instructions_max = 3;  ///< per thread
  unsigned events_max = 8;        ///< all threads together
  unsigned atomics_max = 2;
  unsigned plains_max = 1;
};

RandomProgram make_random_program(const Taste& taste, std::mt19937& random);

}  // namespace muster::check::test
