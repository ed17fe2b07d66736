// SPDX-License-Identifier: BSD-3-Clause
#include "machine/cgroup.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

namespace muster {
namespace {

bool is_octal(char c) { return c >= '0' && c <= '7'; }

/// mountinfo writes blanks and backslashes as \040 and the like: proc(5).
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool list_has(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == item) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

/// The group of this process in one hierarchy. A line of /proc/self/cgroup is
/// "number:controllers:path"; version 2's is "0::path".
std::optional<std::string> group_of(const std::string& cgroups, std::string_view controller,
                                    unsigned version) {
  std::istringstream lines(cgroups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    const bool unified = controllers.empty() && line.compare(0, first, "0") == 0;
    if (version == 2 ? unified : list_has(controllers, controller)) return line.substr(second + 1);
  }
  return std::nullopt;
}

struct Mount {
  std::string root;  ///< the group that is visible at `point`
  std::string point;
  unsigned version = 2;
};

/// "id parent major:minor root point options [optional fields] - type source super-options".
std::optional<Mount> parse_mount(const std::string& line, std::string_view controller) {
  std::istringstream words(line);
  const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
  const auto dash = std::find(word.begin(), word.end(), "-");
  if (word.end() - dash < 4 || dash - word.begin() < 6) return std::nullopt;
  const bool unified = dash[1] == "cgroup2";
  if (!unified && !(dash[1] == "cgroup" && list_has(dash[3], controller))) return std::nullopt;
  return Mount{unescape(word[3]), unescape(word[4]), unified ? 2U : 1U};
}

/// Where the group lies below the mount's root: "", or begins with '/'. Nothing if not below it.
std::optional<std::string> below(const std::string& group, const std::string& root) {
  if (group.starts_with("/..")) return std::nullopt;  // outside of the cgroup namespace
  const std::string prefix = root == "/" ? "" : root;
  if (!group.starts_with(prefix)) return std::nullopt;
  std::string rest = group.substr(prefix.size());
  if (rest == "/") rest.clear();
  if (!rest.empty() && rest[0] != '/') return std::nullopt;
  return rest;
}

}  // namespace

std::string read_small_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

std::vector<CgroupDirectory> cgroup_directories(std::string_view controller,
                                                const std::string& root) {
  const std::string top = root.ends_with('/') ? root.substr(0, root.size() - 1) : root;
  const std::string cgroups = read_small_file(top + "/proc/self/cgroup");
  std::vector<Mount> mounts;
  std::istringstream lines(read_small_file(top + "/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    if (auto mount = parse_mount(line, controller)) mounts.push_back(std::move(*mount));
  }

  std::vector<CgroupDirectory> directories;
  for (const unsigned version : {1U, 2U}) {
    const auto group = group_of(cgroups, controller, version);
    if (!group) continue;
    const auto serves = [&](const Mount& mount) {
      return mount.version == version && below(*group, mount.root);
    };
    // A container may show a group as its root without saying where: then its root is all we have.
    const bool any = std::any_of(mounts.begin(), mounts.end(), serves);
    for (const Mount& mount : mounts) {
      if (mount.version != version || (any && !serves(mount))) continue;
      const std::string point = mount.point == "/" ? "" : mount.point;
      for (std::string rest = any ? *below(*group, mount.root) : "";;
           rest.erase(rest.find_last_of('/'))) {
        directories.push_back({top + point + rest, version});
        if (rest.empty()) break;
      }
    }
  }
  return directories;
}

}  // namespace muster
