// SPDX-License-Identifier: BSD-3-Clause
// From a name to a type: algorithms are templates, and users know their names.
#pragma once

#include <string_view>
#include <tuple>

namespace muster {

/// Calls `fn.template operator()<T>()` with the first T of the tuple type whose `T::traits.name` is
/// `name`, and returns what it returns; else `unknown()`, which throws.
template <class Tuple, class Fn, class Unknown>
decltype(auto) with_named(std::string_view name, Fn&& fn, Unknown&& unknown) {
  using Result = decltype(fn.template operator()<std::tuple_element_t<0, Tuple>>());
  const auto dispatch = [&]<class First, class... Rest>(auto&& self,
                                                        std::tuple<First, Rest...>*) -> Result {
    if (name == First::traits.name) return fn.template operator()<First>();
    if constexpr (sizeof...(Rest) > 0) {
      return self(self, static_cast<std::tuple<Rest...>*>(nullptr));
    } else {
      unknown();
      __builtin_unreachable();
    }
  };
  return dispatch(dispatch, static_cast<Tuple*>(nullptr));
}

}  // namespace muster
