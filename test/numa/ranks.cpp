// SPDX-License-Identifier: BSD-3-Clause
// A rank of an MPI job that its launcher has bound. Says of each barrier that its communicators
// have, a line each, what is read in the shared memory itself, past the MPI and our interface:
//
//   <rank> on NUMA node <n>, its pages on <n ...>: <algorithm>
//
// Exits with 1 if a rank leaves a barrier before all have come.
#define OMPI_SKIP_MPICXX 1
#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "capi/block.hpp"
#include "machine/error.hpp"
#include "pages_of.hpp"

namespace muster::test {
namespace {

constexpr unsigned ranks_max = 64;
constexpr int episodes = 10;

/// Who has come how often, for all ranks: a file that they share.
std::atomic<int>* share_arrivals() {
  const int fd = open("/dev/shm/numa-ranks", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const std::size_t bytes = ranks_max * sizeof(std::atomic<int>);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return nullptr;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<std::atomic<int>*>(memory);
}

/// False if somebody is behind, or a barrier fails. Episodes go on from `begin`.
bool meet(MPI_Comm comm, int rank, int size, int begin, std::atomic<int>* arrivals) {
  for (int episode = begin + 1; episode <= begin + episodes; ++episode) {
    arrivals[rank].store(episode, std::memory_order_relaxed);
    if (MPI_Barrier(comm) != MPI_SUCCESS) return false;
    for (int other = 0; other < size; ++other) {
      const int seen = arrivals[other].load(std::memory_order_relaxed);
      if (seen != episode && seen != episode + 1) return false;
    }
  }
  return true;
}

/// Says what begins there, if it is a barrier of so many.
void tell_of(std::byte* at, std::size_t available, unsigned rank, unsigned size) try {
  Plan plan;
  const Block block = Block::attach(at, available, plan);
  if (plan.participants != size) return;
  const std::string text = fmt::format(
      "{} on NUMA node {}, its pages on {}: {}\n", rank, numa_of_this_thread(),
      fmt::join(numa_nodes_of_pages(block.rank_memory(rank), block.layout().rank_stride), " "),
      plan.algorithm.text());
  // In one piece: all ranks write to the same.
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) std::exit(1);
} catch (const Error&) {
  // none begins there
}

/// Every barrier in this process's shared segments.
void tell_of_barriers(unsigned rank, unsigned size) {
  constexpr std::size_t alignment = 128;
  std::ifstream maps("/proc/self/maps");
  std::uintptr_t first = 0;
  std::uintptr_t end = 0;
  const auto look = [&] {
    for (std::uintptr_t at = first; at < end; at += alignment) {
      tell_of(reinterpret_cast<std::byte*>(at), end - at, rank, size);
    }
  };
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t past = 0;
    if (line.find("/memfd:muster") == std::string::npos ||
        std::sscanf(line.c_str(), "%lx-%lx", &begin, &past) != 2) {
      continue;
    }
    // Where parts of a segment have policies of their own it is several mappings.
    if (begin != end) {
      look();
      first = begin;
    }
    end = past;
  }
  look();
}

int run() {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::atomic<int>* const arrivals = share_arrivals();
  if (arrivals == nullptr || size > static_cast<int>(ranks_max)) return 1;
  // The second one's memory is of a segment that all ranks have long mapped.
  MPI_Comm second = MPI_COMM_NULL;
  bool met = meet(MPI_COMM_WORLD, rank, size, 0, arrivals);
  MPI_Comm_dup(MPI_COMM_WORLD, &second);
  met = met && meet(second, rank, size, episodes, arrivals);
  tell_of_barriers(static_cast<unsigned>(rank), static_cast<unsigned>(size));
  MPI_Barrier(MPI_COMM_WORLD);  // nobody takes a barrier away from under another's eyes
  MPI_Comm_free(&second);
  return met ? 0 : 1;
}

}  // namespace
}  // namespace muster::test

int main(int argc, char** argv) {
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
  const int status = muster::test::run();
  MPI_Finalize();
  return status;
}
