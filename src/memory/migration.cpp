// SPDX-License-Identifier: BSD-3-Clause
#include "memory/migration.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "memory/pages.hpp"

namespace muster {

namespace {

constexpr std::size_t batch_pages = 1024;

struct Batch {
  std::array<void*, batch_pages> pages;
  std::array<int, batch_pages> to;
  std::array<int, batch_pages> before;
  std::array<int, batch_pages> after;
  std::size_t count = 0;
};

bool ask(const Batch& batch, std::array<int, batch_pages>& where) {
  return syscall(SYS_move_pages, 0, batch.count, batch.pages.data(), nullptr, where.data(), 0) == 0;
}

bool absent(int where) {  // the zero page, which reading leaves behind, counts as no page too
  return where == -ENOENT || where == -EFAULT;
}

/// 0, or errno. Where it fails, or does not get to some pages, `after` has what was there before.
int move(Batch& batch, int numa) {
  batch.after = batch.before;
  const long left = syscall(SYS_move_pages, 0, batch.count, batch.pages.data(), batch.to.data(),
                            batch.after.data(), MPOL_MF_MOVE);
  const int error = left < 0 ? errno : left > 0 ? EBUSY : 0;
  // A huge page moves when its first part is named; of the others the kernel then says that they
  // are busy. Where they are is what counts.
  const auto stayed = [&](int where) { return where != numa && !absent(where); };
  if (!std::any_of(batch.after.begin(), batch.after.begin() + batch.count, stayed)) return error;
  std::array<int, batch_pages> now;
  if (!ask(batch, now)) return error;
  for (std::size_t i = 0; i < batch.count; ++i) {
    if (now[i] == numa) batch.after[i] = numa;
  }
  return error;
}

void refuse(Migration& migration, int error) {
  ++migration.refused;
  if (migration.first_refusal == 0) migration.first_refusal = error;
}

void count(const Batch& batch, int numa, int error, Migration& migration) {
  for (std::size_t i = 0; i < batch.count; ++i) {
    if (batch.before[i] == numa) {
      ++migration.already_there;
    } else if (absent(batch.before[i])) {
      ++migration.not_there_yet;
    } else if (batch.after[i] == numa) {
      ++migration.moved;
    } else {
      refuse(migration, batch.after[i] < 0 ? -batch.after[i] : error);
    }
  }
}

}  // namespace

Migration& Migration::operator+=(const Migration& other) noexcept {
  moved += other.moved;
  already_there += other.already_there;
  not_there_yet += other.not_there_yet;
  refused += other.refused;
  if (first_refusal == 0) first_refusal = other.first_refusal;
  return *this;
}

Migration migrate_to_numa(const void* address, std::size_t bytes, unsigned numa_os_index) noexcept {
  Migration migration;
  if (bytes == 0) return migration;
  const std::size_t page = page_size();
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t last = (begin + bytes - 1) / page;
  const int numa = numa_os_index <= INT_MAX ? static_cast<int>(numa_os_index) : INT_MAX;
  Batch batch;
  batch.to.fill(numa);
  for (std::uintptr_t next = begin / page; next <= last;) {
    // Huge pages begin at multiples of their size: one that were cut in two would come along whole
    // with its first part, and be found there with the second.
    batch.count = std::min<std::size_t>(batch_pages - next % batch_pages, last - next + 1);
    for (std::size_t i = 0; i < batch.count; ++i) {
      batch.pages[i] = reinterpret_cast<void*>((next + i) * page);
    }
    next += batch.count;
    if (!ask(batch, batch.before)) {
      const int error = errno;
      for (std::size_t i = 0; i < batch.count; ++i) refuse(migration, error);
      continue;
    }
    const int error = move(batch, numa);
    count(batch, numa, error, migration);
  }
  return migration;
}

}  // namespace muster
