// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/cpus.hpp"

#include <dirent.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "machine/hardware.hpp"
#include "machine/no_cancellation.hpp"
#include "machine/usable_cpus.hpp"

namespace muster::delegation {
namespace {

using MaskWord = unsigned long;
constexpr unsigned bits_per_word = 8 * sizeof(MaskWord);

constexpr std::int64_t between_counts_ns = 1'000'000'000;
std::atomic<std::int64_t> next_count_ns{0};
std::atomic<unsigned> last_count{1};

/// `read(mask, bytes)`: zero, or the system's error.
template <class Read>
PuSet read_binding(Read read) {
  for (std::size_t words = 1024 / bits_per_word; words <= PuSet::kEnd / bits_per_word; words *= 4) {
    std::vector<MaskWord> mask(words);
    const int error = read(mask.data(), words * sizeof(MaskWord));
    if (error == EINVAL) continue;  // the kernel's mask is longer
    PuSet cpus;
    for (unsigned cpu = 0; error == 0 && cpu < words * bits_per_word; ++cpu) {
      if ((mask[cpu / bits_per_word] >> cpu % bits_per_word & 1) != 0) cpus.add(cpu);
    }
    return cpus;
  }
  return {};
}

/// `write(mask, bytes)`: zero, or the system's error.
template <class Write>
int write_binding(const PuSet& cpus, Write write) {
  std::vector<MaskWord> mask;
  for (const unsigned cpu : cpus.to_vector()) {
    mask.resize(cpu / bits_per_word + 1);
    mask.back() |= MaskWord{1} << cpu % bits_per_word;
  }
  return write(mask.data(), mask.size() * sizeof(MaskWord));
}

}  // namespace

PuSet binding_of(int thread_id) {
  return read_binding([&](MaskWord* mask, std::size_t bytes) {
    return syscall(SYS_sched_getaffinity, thread_id, bytes, mask) < 0 ? errno : 0;
  });
}

PuSet binding_of(std::thread& thread) {
  return read_binding([&](MaskWord* mask, std::size_t bytes) {
    return pthread_getaffinity_np(thread.native_handle(), bytes,
                                  reinterpret_cast<cpu_set_t*>(mask));
  });
}

int bind_thread(int thread_id, const PuSet& cpus) {
  return write_binding(cpus, [&](const MaskWord* mask, std::size_t bytes) {
    return syscall(SYS_sched_setaffinity, thread_id, bytes, mask) == 0 ? 0 : errno;
  });
}

int bind_thread(std::thread& thread, const PuSet& cpus) {
  return write_binding(cpus, [&](const MaskWord* mask, std::size_t bytes) {
    return pthread_setaffinity_np(thread.native_handle(), bytes,
                                  reinterpret_cast<const cpu_set_t*>(mask));
  });
}

PuSet binding_of_process() {
  PuSet cpus = binding_of(0);
  const auto close = [](DIR* directory) { closedir(directory); };
  const std::unique_ptr<DIR, decltype(close)> threads(opendir("/proc/self/task"), close);
  if (threads == nullptr) {
    cpus |= binding_of(getpid());
    return cpus;
  }
  while (const dirent* const thread = readdir(threads.get())) {
    const int thread_id = std::atoi(thread->d_name);
    if (thread_id > 0) cpus |= binding_of(thread_id);
  }
  return cpus;
}

unsigned cpus_of_process() noexcept {
  const std::int64_t now = now_ns();
  std::int64_t due = next_count_ns.load(std::memory_order_relaxed);
  if (now >= due && next_count_ns.compare_exchange_strong(due, now + between_counts_ns)) {
    const NoCancellation whole;
    const int error = errno;  // the section's of whoever asks
    try {
      const unsigned allowed = std::max(1U, static_cast<unsigned>(binding_of_process().count()));
      last_count.store(std::min(allowed, cpu_quota().value_or(~0U)), std::memory_order_relaxed);
    } catch (const std::bad_alloc&) {  // the last count stays
    }
    errno = error;
  }
  return cpus_last_counted();
}

unsigned cpus_last_counted() noexcept { return last_count.load(std::memory_order_relaxed); }

}  // namespace muster::delegation
