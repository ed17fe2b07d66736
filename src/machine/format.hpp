// SPDX-License-Identifier: BSD-3-Clause
// Formatting of the library's texts: by the standard library, where it can, else by {fmt}, which
// that was made from. So libmuster needs hwloc alone with a compiler that is new enough.
#pragma once

#include <version>

#ifdef __cpp_lib_format
#include <format>
namespace muster {
using std::format;
using std::format_to_n;
}  // namespace muster
#else
#include <fmt/format.h>
namespace muster {
using fmt::format;
using fmt::format_to_n;
}  // namespace muster
#endif
