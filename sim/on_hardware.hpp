// SPDX-License-Identifier: BSD-3-Clause
// Running a barrier, or a pattern that looks like one, on this machine's cores for some episodes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "barrier/shape.hpp"
#include "machine/hardware.hpp"

namespace muster::sim {

/// Shared memory of a run: the domain's line, then the cells, each rank's on pages of their own.
class HardwareCells {
 public:
  /// Throws Error(no_memory).
  HardwareCells(unsigned participants, const Layout& layout);
  ~HardwareCells();
  HardwareCells(const HardwareCells&) = delete;
  HardwareCells& operator=(const HardwareCells&) = delete;

  Hardware::Domain& domain() const;
  Hardware::Cells cells() const;
  /// Touches a rank's pages, so that they come from its core's memory.
  void touch(unsigned rank) const;

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t rank_stride_ = 0;
  std::size_t ranks_at_ = 0;
  std::size_t words_at_ = 0;
};

/// Calls body(rank) on a thread of its own for each of `pus`, bound to it. Rethrows nothing: the
/// bodies do not throw.
void on_pus(const std::vector<unsigned>& pus, const std::function<void(unsigned rank)>& body);

/// The median over a few batches of the mean time of an episode [ns], by rank 0's clock.
/// `batch_ns`: how long a batch takes, about.
template <class B>
double time_on_hardware(const Shape& shape, const std::vector<unsigned>& pus,
                        std::int64_t batch_ns) {
  const Layout layout = B::layout(shape);
  const HardwareCells memory(shape.participants, layout);
  const B barrier(shape, memory.cells());
  constexpr unsigned batches = 5;
  constexpr unsigned trial = 200;
  std::atomic<unsigned> ready{0};
  std::atomic<std::uint32_t> episodes{0};
  double samples[batches] = {};
  on_pus(pus, [&](unsigned rank) {
    memory.touch(rank);
    Hardware port(memory.domain(), rank, WaitPolicy::spin(), false);
    auto ticket = barrier.ticket(rank);
    const auto run = [&](unsigned count) {
      for (unsigned n = 0; n < count; ++n) barrier.wait(port, ticket);
    };
    ready.fetch_add(1);
    while (ready.load() < shape.participants) relax();
    run(trial);
    const std::int64_t begin = now_ns();
    run(trial);
    if (rank == 0) {
      const std::int64_t each = (now_ns() - begin) / trial + 1;
      episodes.store(static_cast<std::uint32_t>(std::max<std::int64_t>(batch_ns / each, 10)));
    }
    // Everybody has to run as many: an untimed episode tells them all that it is decided.
    while (episodes.load() == 0) relax();
    const unsigned count = episodes.load();
    for (double& sample : samples) {
      run(8);
      const std::int64_t start = now_ns();
      run(count);
      if (rank == 0) sample = static_cast<double>(now_ns() - start) / count;
    }
  });
  std::sort(samples, samples + batches);
  return samples[batches / 2];
}

}  // namespace muster::sim
