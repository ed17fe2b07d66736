// SPDX-License-Identifier: BSD-3-Clause
// What the C ABI's opaque handles are.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "capi/engine.hpp"
#include "memory/arena.hpp"
#include "memory/segment.hpp"
#include "muster/muster.h"

namespace muster {

/// The process's generation: a fork's child has another, and none of its parent's threads.
unsigned fork_generation() noexcept;

/// Closes a descriptor at the end of its scope.
struct FdCloser {
  int fd;
  ~FdCloser() { close(fd); }
};

}  // namespace muster

struct muster_segment {
  explicit muster_segment(std::unique_ptr<muster::Segment> mapped)
      : segment(std::move(mapped)), arena(segment->size()) {
    arena.allocate(64, 64);  // so that no barrier's handle is 0
  }

  std::unique_ptr<muster::Segment> segment;
  std::mutex mutex;            // of the arena and the server
  muster::SubAllocator arena;  // its creator's bookkeeping; idle in processes that attached
  std::unique_ptr<muster::FdServer> server;
};

struct muster_barrier {
  void set_engine(std::unique_ptr<muster::Engine> made) {
    engine = std::move(made);
    participants = engine->participants();
    seats = engine->seats();
    algorithm = engine->plan().algorithm.text();
  }

  std::shared_ptr<std::byte> memory;  // of the block; its deleter gives back whatever it is part of
  std::unique_ptr<muster::Engine> engine;
  // The engine's, kept here too: each load less on the way to the first store is a nanosecond.
  unsigned participants = 0;
  const std::unique_ptr<muster::Seat>* seats = nullptr;
  const unsigned made_in = muster::fork_generation();  // the process that made the handle
  std::atomic<unsigned> seats_of{made_in};             // whose seats the engine has; see with_rank
  bool owns_block = false;                             // this process created it and ends it
  bool own_memory = false;                             // of this process, and nobody else's
  int fd = -1;  // of the segment it is in; the segment closes it
  std::uint64_t handle = 0;
  std::unique_ptr<muster::FdServer> server;
  std::string algorithm;                      // that serves, with its parameters
  const muster_barrier* next_kept = nullptr;  // of those that could not be given back
};
