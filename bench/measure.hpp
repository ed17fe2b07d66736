// SPDX-License-Identifier: BSD-3-Clause
// How one implementation is measured, whatever it is and wherever its participants run: threads,
// processes, or a worker program linked to another runtime. Without dependencies but
// bench/latency.cpp, so that all of them run the very same loop.
//
// The coordinator and the participants share one `Control` block. The coordinator starts a *slice*;
// participants run it and go back to sleep, so that only one implementation runs at a time. A slice
// is a sequence of *batches*. Between two batches lies one untimed episode, the junction: before
// it, rank 0 publishes what comes next; after it, everyone reads that. So nothing but the barrier
// under test synchronizes the participants, and a timed batch holds nothing but its episodes.
//
// Where participants are disturbed, a slice is a *turn* instead: back-to-back episodes without
// junctions until the coordinator says that time is up, whatever a single one takes. All of its
// time counts, so that no interruption is lost between two batches, and single episodes are timed
// at random (bench/latency.hpp).
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/latency.hpp"

namespace muster::bench {

inline std::int64_t clock_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

/// A batch: what kind, and of how many episodes; one word.
struct Batch {
  enum Kind : std::uint32_t {
    end = 0,  ///< the slice is over
    warm_up,  ///< not recorded
    timed,    ///< one latency sample
    skew      ///< every participant notes when it left each episode
  };
  Kind kind = end;
  std::uint32_t episodes = 0;  ///< below 2^30

  std::uint32_t encode() const noexcept { return kind << 30 | episodes; }
  static Batch decode(std::uint32_t word) noexcept {
    return {static_cast<Kind>(word >> 30), word & ((1U << 30) - 1)};
  }
};

inline constexpr std::size_t kLine = 128;  // no two participants' counters on one line, anywhere
inline constexpr std::uint32_t kSkewEpisodesMax = 256;  // per slice
inline constexpr std::uint32_t kQuit = ~0U;

/// What one participant reports; sums over all slices.
struct alignas(kLine) RankReport {
  std::uint64_t involuntary_switches;
  std::int64_t cpu_ns;
  std::int64_t exits_ns[kSkewEpisodesMax];  ///< of the last slice's skew batch
};

/// Shared by the coordinator and one team; zero at first, followed by the arrays.
struct Control {
  static constexpr std::uint32_t kMagic = 0x4d555354;

  std::uint32_t magic;
  std::uint32_t participants;
  std::uint32_t mask_words;  ///< 64-bit words of each rank's CPU mask; a mask of 0 is unbound
  std::uint32_t samples_capacity;
  std::uint64_t bytes;                   ///< of the whole block
  std::int64_t batch_ns;                 ///< how long a batch should take
  std::int64_t slice_ns;                 ///< how long a slice should take; rank 0 ends it
  std::int64_t late_ns;                  ///< in turns: how long the last rank sleeps before a wait
  std::uint32_t by_turns;                ///< slices are turns
  char note[192];                        ///< what served: written by the team before it is ready
  char error[512];                       ///< why it failed
  std::atomic<std::uint32_t> reporting;  ///< somebody writes `error`, or has
  std::atomic<std::uint32_t> declined;   ///< the error is that it cannot serve here

  alignas(kLine) std::atomic<std::uint32_t> go;       ///< number of the slice to run, from 1; kQuit
  alignas(kLine) std::atomic<std::uint32_t> idle;     ///< participants that are ready for the next
  std::atomic<std::uint32_t> failed;                  ///< `error` says why
  alignas(kLine) std::atomic<std::uint32_t> plan[2];  ///< by parity of the junction; rank 0 writes
  alignas(kLine) std::atomic<std::uint32_t> over;     ///< the turn's time is up
  std::atomic<std::uint64_t> last_episode;            ///< of the turn, from 1; 0: not known yet
  alignas(kLine) std::uint32_t batch_episodes;        ///< rank 0's from here on
  std::uint32_t skew_episodes;                        ///< in the last slice
  std::uint32_t samples_count;
  std::atomic<std::uint64_t> episodes;  ///< all that were finished, timed or not
  std::int64_t timed_ns;                ///< of timed batches, and of turns
  std::uint64_t timed_episodes;         ///< in these
  LatencySampler::Report singles;       ///< episodes timed in the last turn

  static std::size_t bytes_for(std::uint32_t participants, std::uint32_t mask_words,
                               std::uint32_t samples) {
    return sizeof(Control) + participants * sizeof(RankReport) +
           std::size_t{participants} * mask_words * sizeof(std::uint64_t) + samples * sizeof(float);
  }
  RankReport& report(unsigned rank) noexcept {
    return reinterpret_cast<RankReport*>(this + 1)[rank];
  }
  std::uint64_t* mask(unsigned rank) noexcept {
    return reinterpret_cast<std::uint64_t*>(&report(participants)) + std::size_t{rank} * mask_words;
  }
  float* samples() noexcept { return reinterpret_cast<float*>(mask(participants)); }
};
static_assert(sizeof(Control) % kLine == 0 && sizeof(RankReport) % kLine == 0);

inline void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen,
                     std::int64_t timeout_ns) noexcept {
  const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}
inline void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// Binds the calling thread to its rank's CPUs, if it has any. False if the system refuses.
inline bool bind_self(Control& control, unsigned rank) {
  std::vector<std::uint64_t> mask(control.mask(rank), control.mask(rank) + control.mask_words);
  bool bound = false;
  for (const std::uint64_t word : mask) bound = bound || word != 0;
  if (!bound) return true;
  return syscall(SYS_sched_setaffinity, 0, mask.size() * sizeof(mask[0]), mask.data()) == 0;
}

/// One participant's side.
class Participant {
 public:
  Participant(Control& control, unsigned rank) noexcept
      : control_(control), report_(control.report(rank)), rank_(rank) {}

  /// Runs slices until told to quit. `wait()` is one episode of the barrier under test.
  template <class Wait>
  void serve(Wait&& wait) {
    for (std::uint32_t slice = 1;; ++slice) {
      announce_idle();
      std::uint32_t go = control_.go.load(std::memory_order_acquire);
      while (go != slice && go != kQuit) {
        sleep_on(control_.go, go, 1'000'000'000);
        go = control_.go.load(std::memory_order_acquire);
      }
      if (go == kQuit) return;
      if (control_.by_turns != 0) wait();  // all are awake after it
      const Usage before = usage();
      if (control_.by_turns == 0) {
        run_slice(wait);
      } else if (control_.late_ns > 0 && rank_ + 1 == control_.participants) {
        run_turn([&] {
          nap();  // asleep, so that what CPU time an episode costs is that of who waits
          wait();
        });
      } else {
        run_turn(wait);
      }
      const Usage after = usage();
      report_.involuntary_switches += after.involuntary_switches - before.involuntary_switches;
      report_.cpu_ns += after.cpu_ns - before.cpu_ns;
    }
  }

 private:
  struct Usage {
    std::uint64_t involuntary_switches;
    std::int64_t cpu_ns;
  };

  static Usage usage() noexcept {
    rusage self{};
    getrusage(RUSAGE_THREAD, &self);
    const auto ns = [](const timeval& t) {
      return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_usec * std::int64_t{1'000};
    };
    return {static_cast<std::uint64_t>(self.ru_nivcsw), ns(self.ru_utime) + ns(self.ru_stime)};
  }

  void announce_idle() noexcept {
    if (control_.idle.fetch_add(1, std::memory_order_acq_rel) + 1 == control_.participants) {
      wake_all(control_.idle);
    }
  }

  void nap() const noexcept {
    const timespec time{control_.late_ns / 1'000'000'000, control_.late_ns % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
  }

  /// Rank 0 says which episode is the last one before it arrives there, so that all others know
  /// when they leave it; who leaves the one before late reads a number that is not its own yet.
  template <class Wait>
  void run_turn(Wait&& wait) {
    if (rank_ == 0) return lead_turn(wait);
    std::uint64_t done = 0;
    do {
      wait();
      ++done;
    } while (control_.last_episode.load(std::memory_order_relaxed) != done);
  }

  template <class Wait>
  void lead_turn(Wait&& wait) {
    LatencySampler sampler(control_.episodes.load(std::memory_order_relaxed), 1);
    control_.singles.every = 0;  // the last turn may have been a thousand times as fast
    std::uint64_t timed = sampler.begin(control_.singles);
    std::uint64_t done = 0;
    const std::int64_t begin_ns = clock_ns();
    for (bool last = false; !last; ++done) {
      if (control_.over.load(std::memory_order_relaxed) != 0) {
        last = true;
        control_.last_episode.store(done + 1, std::memory_order_relaxed);
      }
      if (done != timed) {
        wait();
        continue;
      }
      const std::int64_t before_ns = clock_ns();
      wait();
      timed = sampler.record(control_.singles, clock_ns() - before_ns);
    }
    control_.timed_ns += clock_ns() - begin_ns;
    control_.timed_episodes += done;
    control_.episodes.store(control_.episodes.load(std::memory_order_relaxed) + done,
                            std::memory_order_relaxed);
  }

  template <class Wait>
  void run_slice(Wait&& wait) {
    Batch batch{Batch::warm_up, 0};  // the junction alone: all are awake after it
    std::int64_t start_ns = 0;
    std::int64_t took_ns = 0;
    for (unsigned parity = 0;; parity ^= 1) {
      // The plan of junction j is overwritten before junction j + 2, which rank 0 reaches only
      // after everyone has arrived at junction j + 1, and so has read the plan of j.
      if (rank_ == 0) {
        const Batch next = start_ns == 0 ? first_batch() : next_batch(batch, start_ns, took_ns);
        control_.plan[parity].store(next.encode(), std::memory_order_relaxed);
      }
      wait();
      if (rank_ == 0 && start_ns == 0) start_ns = clock_ns();
      batch = Batch::decode(control_.plan[parity].load(std::memory_order_relaxed));
      if (batch.kind == Batch::end) return;
      if (batch.kind == Batch::skew) {
        for (std::uint32_t i = 0; i < batch.episodes; ++i) {
          wait();
          report_.exits_ns[i] = clock_ns();
        }
        continue;
      }
      const std::int64_t begin_ns = rank_ == 0 ? clock_ns() : 0;
      for (std::uint32_t i = 0; i < batch.episodes; ++i) wait();
      if (rank_ == 0) took_ns = clock_ns() - begin_ns;
    }
  }

  Batch first_batch() noexcept {
    control_.skew_episodes = 0;
    samples_before_ = control_.samples_count;
    // Less than a batch of the last slice: this one may come at a slower moment.
    return {Batch::warm_up, control_.batch_episodes / 8 + 1};
  }

  /// What follows `last`, which took `took_ns`. Warm-ups grow until they say how many episodes a
  /// batch should have; then batches are timed until the slice is over, at least one of them that
  /// is long enough for the clock.
  Batch next_batch(const Batch& last, std::int64_t start_ns, std::int64_t took_ns) noexcept {
    control_.episodes.store(control_.episodes.load(std::memory_order_relaxed) + last.episodes + 1,
                            std::memory_order_relaxed);
    if (last.kind == Batch::skew) return {Batch::end, 0};
    if (last.kind == Batch::timed) {
      if (4 * took_ns < control_.batch_ns && last.episodes < kBatchMax) {
        control_.batch_episodes *= 2;  // it was calibrated in a slower moment
      } else {
        record(last, took_ns);
        if (took_ns > 4 * control_.batch_ns && control_.batch_episodes > 1) {
          control_.batch_episodes /= 2;  // in a faster one
        }
      }
    } else {
      if (took_ns * 16 < control_.batch_ns && last.episodes < kBatchMax) {
        return {Batch::warm_up, last.episodes * 16};
      }
      const std::int64_t fitting = last.episodes * control_.batch_ns / (took_ns > 0 ? took_ns : 1);
      control_.batch_episodes = fitting < 1           ? 1
                                : fitting < kBatchMax ? static_cast<std::uint32_t>(fitting)
                                                      : kBatchMax;
      if (last.episodes == 1 && fitting <= 1) record(last, took_ns);  // no batch can be shorter
    }
    const std::int64_t for_skew_ns = control_.slice_ns / 10;
    if (clock_ns() - start_ns < control_.slice_ns - for_skew_ns ||
        (control_.samples_count == samples_before_ && !full())) {
      return {Batch::timed, control_.batch_episodes};
    }
    const std::int64_t affordable = for_skew_ns / (took_ns / last.episodes + 1) + 1;
    control_.skew_episodes =
        affordable < kSkewEpisodesMax ? static_cast<std::uint32_t>(affordable) : kSkewEpisodesMax;
    return {Batch::skew, control_.skew_episodes};
  }

  void record(const Batch& batch, std::int64_t took_ns) noexcept {
    control_.timed_ns += took_ns;
    control_.timed_episodes += batch.episodes;
    if (full()) return;
    control_.samples()[control_.samples_count++] =
        static_cast<float>(static_cast<double>(took_ns) / batch.episodes);
  }

  /// The coordinator makes batches so long that this stays an exception.
  bool full() const noexcept { return control_.samples_count == control_.samples_capacity; }

  static constexpr std::uint32_t kBatchMax = 1U << 24;

  Control& control_;
  RankReport& report_;
  unsigned rank_;
  std::uint32_t samples_before_ = 0;  // rank 0's: when the slice began
};

}  // namespace muster::bench
