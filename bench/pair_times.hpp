// SPDX-License-Identifier: BSD-3-Clause
// How long a cache line takes between each two CPUs of this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/noise.hpp"
#include "bench/run.hpp"
#include "sim/pair_matrix.hpp"

namespace muster::bench {

struct PairOptions {
  std::vector<unsigned> cpus;  ///< the operating system's numbers, two or more; each once
  unsigned rounds = 0;         ///< each measures every pair once; 0: 5, and more within 2 s
};

struct PairTimes {
  std::vector<unsigned> cpus;  ///< of each row
  sim::PairMatrix ns;          ///< one way, the median over the rounds
  sim::PairMatrix low_ns;      ///< its quartiles
  sim::PairMatrix high_ns;
  unsigned rounds = 0;  ///< that are whole; 0: the first was broken off, and some pairs lack a time
  double seconds = 0;   ///< that it took
  Noise noise;
};

/// What times a pair of CPUs, by the operating system's numbers, and a clock.
struct PairMeter {
  std::function<double(unsigned cpu, unsigned other)> one_way_ns;
  std::function<std::int64_t()> now_ns;
};
/// Two threads, bound to the two CPUs, pass a flag to and fro; half of a round trip is one way.
PairMeter hardware_meter();

/// One pair at a time: two at once would share links, and the clock rate that busy cores leave each
/// other. Pairs are in random order, another one in each round, so that a slow second is not one
/// row's. Takes about 2 ms a pair and round; ends early when bench/stop.hpp says so. Throws
/// Error(no_memory). Not thread-safe: it binds CPUs that it wants for itself.
PairTimes measure_pairs(const PairOptions& options,
                        const std::function<void(const Progress&)>& progress,
                        const PairMeter& meter = hardware_meter());

}  // namespace muster::bench
