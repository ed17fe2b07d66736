// SPDX-License-Identifier: BSD-3-Clause
// Files that a user names.
#pragma once

#include <string>
#include <string_view>

namespace muster {

/// The whole of a regular file of 64 MiB at most, but for a byte order mark. Throws Error(invalid),
/// which begins with `what` ("topology file") and the path, if there is none, it cannot be read, or
/// it is something else: a device or a pipe may never end.
std::string read_text_file(const std::string& path, std::string_view what);

}  // namespace muster
