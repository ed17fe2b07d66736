// SPDX-License-Identifier: BSD-3-Clause
#include "bench/lock_team.hpp"

#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <limits>

#include "bench/child.hpp"
#include "bench/lock_slice.hpp"
#include "bench/regime.hpp"
#include "machine/error.hpp"
#include "machine/run_threads.hpp"

namespace muster::bench {
namespace {

void bind(const PuSet& pus) {
  if (pus.empty()) return;
  std::vector<std::uint64_t> mask(PuSet::kEnd / 64);
  for (const unsigned pu : pus.to_vector()) mask[pu / 64] |= std::uint64_t{1} << pu % 64;
  if (syscall(SYS_sched_setaffinity, 0, 1024, mask.data()) != 0) {
    throw Error(Status::system, "a thread cannot be bound to " + pus.to_string());
  }
}

/// A counter of the calling thread and of all threads that come of it, servers included; negative
/// if this machine has none.
int open_counter(std::uint64_t event) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = event;
  attributes.exclude_kernel = 1;
  attributes.inherit = 1;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}

std::uint64_t read_counter(int counter) {
  std::uint64_t value = 0;
  return read(counter, &value, sizeof value) == sizeof value ? value : 0;
}

/// Cache references and misses of a team's process.
class CacheCounters {
 public:
  void read_into(LockShared& shared) const {
    if (references_ < 0 || misses_ < 0) return;
    shared.cache_references.store(read_counter(references_), std::memory_order_relaxed);
    shared.cache_misses.store(read_counter(misses_), std::memory_order_relaxed);
  }

 private:
  int references_ = open_counter(PERF_COUNT_HW_CACHE_REFERENCES);
  int misses_ = open_counter(PERF_COUNT_HW_CACHE_MISSES);
};

/// The array is shared, but which pages of it this process has is its own to learn: else the first
/// round would measure that.
void map_pages(const LockSetting& setting) {
  const auto page_words = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) / sizeof *setting.array;
  for (std::uint64_t word = 0; word < setting.words; word += page_words) {
    static_cast<void>(__atomic_load_n(setting.array + word, __ATOMIC_RELAXED));
  }
}

/// The calling thread's slices until it is told to quit.
void be_thread(LockShared& shared, LockSubject& subject, const LockSetting& setting,
               const CacheCounters& counters, unsigned thread) {
  if (!setting.bindings.empty()) bind(setting.bindings[thread]);
  LockReport& report = shared.report(thread);
  Slice slice(shared, thread, setting);
  for (std::uint32_t number = 1;; ++number) {
    shared.idle.fetch_add(1, std::memory_order_acq_rel);
    wake_all(shared.idle);
    std::uint32_t go = shared.go.load(std::memory_order_acquire);
    while (go != number && go != kQuit) {
      sleep_on(shared.go, go, 1'000'000'000);
      go = shared.go.load(std::memory_order_acquire);
    }
    if (go == kQuit) return;
    rusage before{};
    rusage after{};
    getrusage(RUSAGE_THREAD, &before);
    subject.run(slice);
    subject.settle();
    report.end_ns = clock_ns();
    getrusage(RUSAGE_THREAD, &after);
    report.operations += report.slice_operations.load(std::memory_order_relaxed);
    report.involuntary_switches += static_cast<std::uint64_t>(after.ru_nivcsw - before.ru_nivcsw);
    counters.read_into(shared);
  }
}

}  // namespace

Slice::Slice(LockShared& shared, unsigned thread, const LockSetting& setting)
    : shared_(shared),
      thread_(thread),
      setting_(setting),
      walk_(setting.pattern, setting.words, setting.stride, setting.seed + thread),
      random_(setting.seed * 31 + thread),
      sampler_(~(setting.seed + thread)) {}

LockTeam::LockTeam(const LockEntry& entry, const LockSetting& setting)
    : memory_(
          std::make_unique<SharedBytes>(sizeof(LockShared) + setting.threads * sizeof(LockReport))),
      shared_(reinterpret_cast<LockShared*>(memory_->data())),
      threads_(setting.threads) {
  const pid_t coordinator = getpid();
  root_ = fork();
  if (root_ < 0) throw Error(Status::system, "a process for a lock cannot be made");
  if (root_ > 0) return;
  die_with(coordinator);
  be_root(entry, setting);
}

void LockTeam::be_root(const LockEntry& entry, const LockSetting& setting) {
  try {
    join_cgroup(setting.cgroup);
    map_pages(setting);
    const CacheCounters counters;
    const std::unique_ptr<LockSubject> subject = entry.make(setting.lock);
    run_threads(setting.threads, [&](unsigned t) {
      try {
        be_thread(*shared_, *subject, setting, counters, t);
      } catch (const std::exception& error) {
        std::strncpy(shared_->error, error.what(), sizeof shared_->error - 1);
        shared_->failed.store(1, std::memory_order_release);
      }
    });
  } catch (const std::exception& error) {
    std::strncpy(shared_->error, error.what(), sizeof shared_->error - 1);
    shared_->failed.store(1, std::memory_order_release);
  }
  _exit(0);
}

LockTeam::~LockTeam() {
  kill(root_, SIGKILL);
  waitpid(root_, nullptr, 0);
}

LockTeam::State LockTeam::await_idle(std::int64_t until_ns) {
  for (;;) {
    const std::uint32_t idle = shared_->idle.load(std::memory_order_acquire);
    if (shared_->failed.load(std::memory_order_acquire) != 0) return State::failed;
    if (idle == threads_) return State::idle;
    siginfo_t ended{};
    if (waitid(P_PID, static_cast<id_t>(root_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        ended.si_pid != 0) {
      return State::failed;
    }
    const std::int64_t left_ns = until_ns - clock_ns();
    if (left_ns <= 0) return State::busy;
    sleep_on(shared_->idle, idle, std::min<std::int64_t>(left_ns, 50'000'000));
  }
}

LockTeam::State LockTeam::await_operations(std::int64_t stall_ns,
                                           const std::function<void(std::uint64_t)>& look) {
  constexpr std::int64_t kLook_ns = 200'000'000;
  std::uint64_t seen = slice_operations();
  std::int64_t seen_ns = clock_ns();
  for (;;) {
    const State state = await_idle(std::min(clock_ns() + kLook_ns, seen_ns + stall_ns));
    if (state != State::busy) return state;
    if (const std::uint64_t now = slice_operations(); now != seen) {
      seen = now;
      seen_ns = clock_ns();
      look(seen);
    } else if (clock_ns() - seen_ns >= stall_ns) {
      return state;
    }
  }
}

void LockTeam::start_slice() {
  shared_->idle.store(0, std::memory_order_relaxed);
  shared_->go.store(++slice_, std::memory_order_release);
  wake_all(shared_->go);
}

void LockTeam::end_slice() { shared_->stop.store(slice_, std::memory_order_relaxed); }

std::string LockTeam::error() const {
  return shared_->error[0] != '\0' ? shared_->error : "its process died";
}

std::uint64_t LockTeam::slice_operations() const {
  std::uint64_t sum = 0;
  for (unsigned t = 0; t < threads_; ++t) {
    sum += shared_->report(t).slice_operations.load(std::memory_order_relaxed);
  }
  return sum;
}

Turn LockTeam::slice() const {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = 0;
  for (unsigned t = 0; t < threads_; ++t) {
    const LockReport& report = shared_->report(t);
    begin_ns = std::min(begin_ns, report.begin_ns);
    end_ns = std::max(end_ns, report.end_ns);
  }
  return {static_cast<double>(std::max<std::int64_t>(1, end_ns - begin_ns)),
          static_cast<double>(slice_operations())};
}

std::vector<std::uint64_t> LockTeam::operations() const {
  std::vector<std::uint64_t> all;
  for (unsigned t = 0; t < threads_; ++t) all.push_back(shared_->report(t).operations);
  return all;
}

std::vector<LatencySample> LockTeam::latencies() const {
  std::vector<LatencySample> all;
  for (unsigned t = 0; t < threads_; ++t) add_samples(shared_->report(t).latencies, all);
  return all;
}

double LockTeam::cache_misses_percent() const {
  const auto references = static_cast<double>(shared_->cache_references.load());
  const auto misses = static_cast<double>(shared_->cache_misses.load());
  // No run is without any: that counter is not there, or the machine did not let it run.
  if (references == 0 || misses == 0) return std::numeric_limits<double>::quiet_NaN();
  return 100 * misses / references;
}

std::uint64_t LockTeam::involuntary_switches() const {
  std::uint64_t sum = 0;
  for (unsigned t = 0; t < threads_; ++t) sum += shared_->report(t).involuntary_switches;
  return sum;
}

std::int64_t LockTeam::cpu_ns() const {
  clockid_t clock{};
  timespec now{};
  if (clock_getcpuclockid(root_, &clock) != 0 || clock_gettime(clock, &now) != 0) return 0;
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace muster::bench
