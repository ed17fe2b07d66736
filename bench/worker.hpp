// SPDX-License-Identifier: BSD-3-Clause
// What worker programs share: they get the Control block (bench/measure.hpp) as a descriptor.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

#include "bench/measure.hpp"

namespace muster::bench {

/// Null if it is none.
inline Control* map_control(int fd) {
  struct stat file {};
  if (fstat(fd, &file) != 0 || static_cast<std::size_t>(file.st_size) < sizeof(Control))
    return nullptr;
  const auto bytes = static_cast<std::size_t>(file.st_size);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const control = static_cast<Control*>(memory);
  return control->magic == Control::kMagic && control->bytes == bytes ? control : nullptr;
}

inline void report_failure(Control& control, const char* why) {
  std::uint32_t nobody = 0;
  if (!control.reporting.compare_exchange_strong(nobody, 1)) return;
  std::strncpy(control.error, why, sizeof control.error - 1);
  control.failed.store(1, std::memory_order_release);
  wake_all(control.idle);
}

}  // namespace muster::bench
