// SPDX-License-Identifier: BSD-3-Clause
// Keeps forks and hwloc's mutex apart. hwloc holds it while it loads its plugins: a child that is
// forked then never gets it.
#pragma once

namespace muster {

void enter_hwloc();
void leave_hwloc() noexcept;

/// Whatever takes hwloc's mutex: waits for forks, and forks wait for it, a second at most.
auto within_hwloc(auto call) {
  enter_hwloc();
  const auto result = call();
  leave_hwloc();
  return result;
}

/// Throws Error(busy) in a child that was forked while another thread was there all the same.
void require_hwloc();

}  // namespace muster
