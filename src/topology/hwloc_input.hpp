// SPDX-License-Identifier: BSD-3-Clause
// What hwloc is given, where it would hang or crash instead of refusing it.
#pragma once

#include <string>

namespace muster {

/// Whether a synthetic topology would have too many PUs.
bool is_too_large(const std::string& description);
/// For messages.
std::string how_to_describe();

/// Throws Error(invalid) for a topology's XML, read from `path`, that hwloc 2.8 crashes on.
void check_xml(const std::string& text, const std::string& path);

}  // namespace muster
