// SPDX-License-Identifier: BSD-3-Clause
// The measured loop, and what a team's process shares with the coordinator.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/latency.hpp"
#include "bench/measure.hpp"
#include "sim/split_mix.hpp"
#include "sim/walk.hpp"
#include "topology/pu_set.hpp"

namespace muster::bench {

struct LockSetting {
  std::string lock;
  unsigned threads = 1;
  Pattern pattern = Pattern::sequential;
  std::uint64_t stride = 20;
  std::uint64_t operations = 0;  ///< in a slice, of all threads; 0: as many as fit
  std::uint64_t seed = 1;
  double readers = 0;  ///< of the sections, how many only read; drawn at random
  std::uint32_t* array = nullptr;
  std::uint64_t words = 0;
  std::vector<PuSet> bindings;  ///< per thread; an empty set is unbound
  std::string cgroup;           ///< that its process joins; empty: none
};

struct LockShared;

/// What a section does with its word.
struct Increment {
  void operator()(std::uint32_t* word) const { ++*word; }
};
struct Read {
  void operator()(const std::uint32_t* word) const {
    static_cast<void>(__atomic_load_n(word, __ATOMIC_RELAXED));  // not left out, as a plain one is
  }
};

/// One thread's loop over a lock; made by lock_subjects.
class Slice {
 public:
  Slice(LockShared& shared, unsigned thread, const LockSetting& setting);
  /// `exclusive(word, section)` has `section(word)` executed inside the lock.
  template <class Exclusive>
  void run(Exclusive&& exclusive) {
    run(exclusive, exclusive);
  }
  /// `shared(word, section)` too, beside others that only read.
  template <class Exclusive, class Shared>
  void run(Exclusive&& exclusive, Shared&& shared) {
    if (setting_.readers == 0) {
      loop([&](std::uint32_t* word) { exclusive(word, Increment()); });
      return;
    }
    const auto reading = static_cast<std::uint64_t>(setting_.readers * 0x1p32);
    loop([&](std::uint32_t* word) {
      if (random_.next() >> 32 < reading) {
        shared(word, Read());
      } else {
        exclusive(word, Increment());
      }
    });
  }

 private:
  template <class Operation>
  void loop(Operation&& operate);

  LockShared& shared_;
  unsigned thread_;
  const LockSetting& setting_;
  Walk walk_;
  SplitMix64 random_;  ///< who only reads
  LatencySampler sampler_;
};

/// A lock under test.
class LockSubject {
 public:
  LockSubject() = default;
  virtual ~LockSubject() = default;
  LockSubject(const LockSubject&) = delete;
  LockSubject& operator=(const LockSubject&) = delete;
  /// One slice of one thread.
  virtual void run(Slice& slice) = 0;
  /// After a slice, by the thread: waits for what it did not wait for.
  virtual void settle() {}
};

inline constexpr unsigned kProgressEvery = 16;  // of a given number of operations: a store

struct alignas(kLine) LockReport {
  std::uint64_t operations;                     // in all slices
  std::atomic<std::uint64_t> slice_operations;  // in the last one; so far, of a given number
  std::int64_t begin_ns;
  std::int64_t end_ns;
  std::uint64_t involuntary_switches;
  LatencySampler::Report latencies;  // in the last slice
};

/// Followed by a LockReport for each thread; zero at first.
struct LockShared {
  alignas(kLine) std::atomic<std::uint32_t> go;
  alignas(kLine) std::atomic<std::uint32_t> stop;  // number of the slice to stop
  alignas(kLine) std::atomic<std::uint32_t> idle;
  std::atomic<std::uint32_t> failed;
  std::atomic<std::uint64_t> cache_references;  // of the whole process; 0: nobody tells
  std::atomic<std::uint64_t> cache_misses;
  char error[512];

  LockReport& report(unsigned thread) noexcept {
    return reinterpret_cast<LockReport*>(this + 1)[thread];
  }
};

template <class Operation>
void Slice::loop(Operation&& operate) {
  LockReport& report = shared_.report(thread_);
  const std::uint32_t slice = shared_.go.load(std::memory_order_relaxed);
  const std::uint64_t most = setting_.operations == 0
                                 ? ~std::uint64_t{0}
                                 : setting_.operations / setting_.threads +
                                       (thread_ < setting_.operations % setting_.threads ? 1 : 0);
  std::uint32_t* const array = setting_.array;
  std::uint64_t done = 0;
  const auto goes_on = [&] {
    if (setting_.operations == 0) return shared_.stop.load(std::memory_order_relaxed) != slice;
    if (done % kProgressEvery == 0) report.slice_operations.store(done, std::memory_order_relaxed);
    return true;
  };
  std::uint64_t timed = sampler_.begin(report.latencies);
  report.begin_ns = clock_ns();
  for (;;) {
    for (const std::uint64_t until = std::min(timed, most); done != until && goes_on(); ++done) {
      operate(array + walk_.next());
    }
    if (done != timed || done == most) break;
    std::uint32_t* const word = array + walk_.next();
    const std::int64_t before_ns = clock_ns();
    operate(word);
    timed = sampler_.record(report.latencies, clock_ns() - before_ns);
    ++done;
  }
  report.slice_operations.store(done, std::memory_order_relaxed);
}

}  // namespace muster::bench
