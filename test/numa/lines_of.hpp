// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace muster::test {

/// What a program says on its standard output, a line each; its end must be good. `first`: in its
/// process, before it.
std::vector<std::string> lines_of(
    const std::vector<std::string>& words, const std::function<void()>& first = [] {});

}  // namespace muster::test
