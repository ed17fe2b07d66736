// SPDX-License-Identifier: BSD-3-Clause
// What the mutexes of programs about servers and conditions share.
#pragma once

#include <type_traits>

namespace muster::check {

/// body(), then leave(); what body() returned. If it throws, the execution is over.
template <class Body, class Leave>
auto then_leave(Body body, Leave leave) {
  if constexpr (std::is_void_v<decltype(body())>) {
    body();
    leave();
  } else {
    const auto result = body();
    leave();
    return result;
  }
}

}  // namespace muster::check
