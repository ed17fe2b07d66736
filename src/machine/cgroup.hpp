// SPDX-License-Identifier: BSD-3-Clause
// Where the control groups of this process keep the files of one controller. Version 1, version 2
// and both at once (hybrid), read from /proc/self/cgroup and /proc/self/mountinfo: cgroups(7).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// One directory of the hierarchy: the process's own group or one of its ancestors.
struct CgroupDirectory {
  std::string path;  ///< in the file system, below `root`
  unsigned version = 2;
};

/// The directories that can limit this process through `controller` ("cpu", "memory"): its own
/// group first, then every ancestor up to the mount's root, for each hierarchy that is mounted.
/// What lies above the mount (outside a container) cannot be seen. Empty if there are no control
/// groups or their description cannot be read. `root` stands before every path, for tests.
std::vector<CgroupDirectory> cgroup_directories(std::string_view controller,
                                                const std::string& root = "/");

/// The whole of a small file; empty if it cannot be read.
std::string read_small_file(const std::string& path);

}  // namespace muster
