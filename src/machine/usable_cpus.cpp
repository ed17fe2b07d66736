// SPDX-License-Identifier: BSD-3-Clause
#include "machine/usable_cpus.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "machine/cgroup.hpp"

namespace muster {
namespace {

/// The number at the front of `text`, which is moved past it and a blank; nothing if there is none,
/// or if it is not positive: "max" and -1 mean no limit.
std::optional<double> take_positive(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto taken = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || number <= 0) return std::nullopt;
  if (taken < text.size() && text[taken] != ' ' && text[taken] != '\n') return std::nullopt;
  text.remove_prefix(std::min(taken + 1, text.size()));
  return static_cast<double>(number);
}

/// CPUs granted by one group; nothing if it sets no limit.
std::optional<double> quota_of(const CgroupDirectory& group) {
  // Version 2: one file, "quota period". Version 1: a file each.
  std::string text = group.version == 2 ? read_small_file(group.path + "/cpu.max")
                                        : read_small_file(group.path + "/cpu.cfs_quota_us");
  if (group.version == 1) {
    while (text.ends_with('\n')) text.pop_back();
    text += ' ' + read_small_file(group.path + "/cpu.cfs_period_us");
  }
  std::string_view rest = text;
  const auto quota_us = take_positive(rest);
  const auto period_us = quota_us ? take_positive(rest) : std::nullopt;
  if (!period_us) return std::nullopt;
  return *quota_us / *period_us;
}

}  // namespace

unsigned affinity_cpus() noexcept {
  // The kernel's mask may be longer than cpu_set_t's 1024 CPUs; it says so with EINVAL.
  for (int cpus = CPU_SETSIZE; cpus <= 1 << 20; cpus *= 2) {
    cpu_set_t* mask = CPU_ALLOC(cpus);
    if (mask == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    CPU_ZERO_S(bytes, mask);
    const bool known = sched_getaffinity(0, bytes, mask) == 0;
    const bool too_short = !known && errno == EINVAL;
    const int count = known ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (known) return static_cast<unsigned>(std::max(count, 1));
    if (!too_short) break;
  }
  return static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

std::optional<double> exact_cpu_quota(const std::string& root) {
  std::optional<double> tightest;
  for (const CgroupDirectory& group : cgroup_directories("cpu", root)) {
    const auto quota = quota_of(group);
    if (quota && (!tightest || *quota < *tightest)) tightest = quota;
  }
  return tightest;
}

std::optional<unsigned> cpu_quota(const std::string& root) {
  const std::optional<double> tightest = exact_cpu_quota(root);
  if (!tightest) return std::nullopt;
  const double most = std::numeric_limits<unsigned>::max();
  return static_cast<unsigned>(std::clamp(std::ceil(*tightest), 1.0, most));
}

unsigned usable_cpus(const std::string& root) {
  return std::min(affinity_cpus(), cpu_quota(root).value_or(~0U));
}

}  // namespace muster
