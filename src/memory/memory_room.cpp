// SPDX-License-Identifier: BSD-3-Clause
#include "memory/memory_room.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

#include "machine/cgroup.hpp"

namespace muster {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t bytes_per_kib = 1024;

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> number_in_file(const std::string& path) {
  return number_in(read_small_file(path));
}

/// The number after `key` in a file of lines "key number ...".
std::optional<std::uint64_t> field(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    const std::size_t at = line.find_first_not_of(' ', key.size());
    return at == std::string::npos ? std::nullopt : number_in(std::string_view(line).substr(at));
  }
  return std::nullopt;
}

std::uint64_t room_of_machine(const std::string& root) {
  const std::string meminfo = read_small_file(root + "/proc/meminfo");
  const auto available_kib = field(meminfo, "MemAvailable:");
  if (!available_kib) return unlimited;
  return (*available_kib + field(meminfo, "SwapFree:").value_or(0)) * bytes_per_kib;
}

std::uint64_t room_of_group(const CgroupDirectory& group) {
  const bool v2 = group.version == 2;
  const auto limit = number_in_file(group.path + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  const auto usage =
      number_in_file(group.path + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!limit || !usage) return unlimited;  // "max" is no number
  const std::string stat = read_small_file(group.path + "/memory.stat");
  const std::string prefix = v2 ? "" : "total_";
  const std::uint64_t cache = field(stat, prefix + "inactive_file").value_or(0) +
                              field(stat, prefix + "active_file").value_or(0);
  const std::uint64_t held = *usage - std::min(cache, *usage);
  return *limit - std::min(held, *limit);
}

}  // namespace

std::uint64_t memory_room(const std::string& root) {
  std::uint64_t room = room_of_machine(root);
  for (const CgroupDirectory& group : cgroup_directories("memory", root)) {
    room = std::min(room, room_of_group(group));
  }
  return room;
}

}  // namespace muster
