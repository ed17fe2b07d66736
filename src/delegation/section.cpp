// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/section.hpp"

#include <cxxabi.h>

#include <vector>

namespace muster::delegation {

void CancelledInHandler::leave_handlers() {
  static thread_local std::vector<std::exception_ptr> handled;
  while (std::exception_ptr next = std::current_exception()) {
    handled.push_back(std::move(next));
    abi::__cxa_end_catch();
  }
}

}  // namespace muster::delegation
