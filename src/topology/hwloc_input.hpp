// SPDX-License-Identifier: BSD-3-Clause
// What hwloc is given, where it would hang or crash instead of refusing it.
#pragma once

#include <string>

namespace muster {

/// Throws Error(invalid) for a synthetic topology of too many PUs.
void check_synthetic(const std::string& description);

/// Throws Error(invalid) for a topology's XML, read from `path`, that hwloc 2.8 crashes on.
void check_xml(const std::string& text, const std::string& path);

}  // namespace muster
