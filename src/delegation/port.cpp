// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/port.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <string>

namespace muster::delegation {
namespace {

// Short, then longer: when `other` changes nobody wakes who sleeps on `own`.
constexpr std::int64_t spin_ns = 4'000;
constexpr std::int64_t yield_ns = 1'000'000;
constexpr std::int64_t first_slice_ns = 50'000;
constexpr std::int64_t longest_slice_ns = 1'000'000;

}  // namespace

int Port::await_either_slowly(Cell& own, const Cell& other) noexcept {
  const std::int64_t start_ns = now_ns();
  std::int64_t slice_ns = first_slice_ns;
  FutexLot lot(false);
  for (;;) {
    if (poll(own, polls_between / 2)) return 0;
    if (other.value.load(std::memory_order_acquire) == 0) {
      // Both at once: then the request is executed.
      return own.value.load(std::memory_order_acquire) == 0 ? 0 : 1;
    }
    const std::int64_t waited_ns = now_ns() - start_ns;
    if (waited_ns < spin_ns) continue;
    if (waited_ns < yield_ns) {
      sched_yield();
      continue;
    }
    lot.set_slice(slice_ns);
    slice_ns = std::min(2 * slice_ns, longest_slice_ns);
    sleep_on(lot, announcements_, own.value, own.sleepers, equals(0));
  }
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
