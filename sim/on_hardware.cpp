// SPDX-License-Identifier: BSD-3-Clause
#include "sim/on_hardware.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "machine/error.hpp"
#include "machine/run_threads.hpp"

namespace muster::sim {
namespace {

constexpr std::size_t line = 128;  // or two of them: no two cells share one anywhere

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

}  // namespace

HardwareCells::HardwareCells(unsigned participants, const Layout& layout) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  rank_stride_ = round_up(std::max(1U, layout.cells_per_rank) * line, page);
  ranks_at_ = round_up((1 + layout.global_cells) * line, page);
  words_at_ = ranks_at_ + participants * rank_stride_;
  bytes_ = words_at_ + layout.words * sizeof(Word);
  void* const memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(Status::no_memory, "no " + std::to_string(bytes_) + " bytes for the measurement");
  }
  base_ = static_cast<std::byte*>(memory);
}

HardwareCells::~HardwareCells() { munmap(base_, bytes_); }

Hardware::Domain& HardwareCells::domain() const {
  static_assert(sizeof(Hardware::Domain) <= line);
  return *std::launder(reinterpret_cast<Hardware::Domain*>(base_));
}

Hardware::Cells HardwareCells::cells() const {
  return {base_ + line, base_ + ranks_at_, line, rank_stride_, 0, base_ + words_at_};
}

void HardwareCells::touch(unsigned rank) const {
  std::memset(base_ + ranks_at_ + rank * rank_stride_, 0, rank_stride_);
}

void on_pus(const std::vector<unsigned>& pus, const std::function<void(unsigned rank)>& body) {
  run_threads(static_cast<unsigned>(pus.size()), [&](unsigned rank) {
    const std::size_t words = pus[rank] / CPU_SETSIZE + 1;
    std::vector<cpu_set_t> set(words);
    const std::size_t bytes = words * sizeof(cpu_set_t);
    CPU_ZERO_S(bytes, set.data());
    CPU_SET_S(pus[rank], bytes, set.data());
    // Refused: then it runs unbound, which the ping-pong beside each round shows.
    static_cast<void>(sched_setaffinity(0, bytes, set.data()));
    body(rank);
  });
}

}  // namespace muster::sim
