// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/port.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <string>

namespace muster::delegation {
namespace {

/// Before it says that it waits,
constexpr std::int64_t patience_ns = 8'000;
/// and then before it looks whether `other` is 0.
constexpr std::int64_t answer_ns = 2'000;
/// Before it sleeps: who has the lock does not run, or its section is long.
constexpr std::int64_t spin_ns = 14'000;
// Short, then longer: when `other` changes nobody wakes who sleeps on `own`.
constexpr std::int64_t first_slice_ns = 50'000;
constexpr std::int64_t longest_slice_ns = 1'000'000;

}  // namespace

int Port::await_either_slowly(Cell& own, const Cell& other, Cell* wanted) noexcept {
  const std::int64_t start_ns = now_ns();
  std::int64_t next_ns = start_ns + patience_ns;
  std::int64_t slice_ns = first_slice_ns;
  FutexLot lot(false);
  bool said = wanted == nullptr;
  for (;;) {
    if (poll(own, polls_at_last)) return 0;
    const std::int64_t at_ns = now_ns();
    if (at_ns < next_ns) continue;
    if (!said) {
      // Whoever has the lock executes the request now, if it runs.
      wanted->value.store(1, std::memory_order_relaxed);
      said = true;
      next_ns = at_ns + answer_ns;
      continue;
    }
    if (is_free(other)) return poll(own, 1) ? 0 : 1;
    said = wanted == nullptr;
    if (at_ns - start_ns < spin_ns) continue;
    if (wanted != nullptr) wanted->value.store(1, std::memory_order_relaxed);
    lot.set_slice(slice_ns);
    slice_ns = std::min(2 * slice_ns, longest_slice_ns);
    sleep_on(lot, announcements_, own.value, own.sleepers, equals(0));
  }
}

void Port::wake_all_held() noexcept {
  const FutexLot lot(false);
  for (unsigned i = 0; i < held_count_; ++i) lot.unpark_all(held_[i]->value);
  held_count_ = 0;
}

Reserved::Reserved(std::size_t bytes) : bytes_(bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(Status::no_memory, "no " + std::to_string(bytes) + " bytes of address space");
  }
  data_ = static_cast<std::byte*>(memory);
}

Reserved::~Reserved() { munmap(data_, bytes_); }

}  // namespace muster::delegation
