// SPDX-License-Identifier: BSD-3-Clause
// The barriers over messages by name: the list beside registry.hpp's.
#pragma once

#include <string_view>
#include <tuple>
#include <vector>

#include "barrier/base_bruck.hpp"
#include "barrier/base_double_ring.hpp"
#include "barrier/base_linear.hpp"
#include "barrier/base_recursive_doubling.hpp"
#include "barrier/base_tree.hpp"

namespace muster {

/// In the order of [K22, Fig. 4].
template <class M>
using BaseBarriers = std::tuple<BaseLinear<M>, BaseDoubleRing<M>, BaseRecursiveDoubling<M>,
                                BaseBruck<M>, BaseTree<M>>;

/// Calls `fn.template operator()<B>()` for each of them over M.
template <class M, class Fn>
void for_each_base_barrier(Fn&& fn) {
  [&]<class... B>(std::tuple<B...>*) {
    (fn.template operator()<B>(), ...);
  }(static_cast<BaseBarriers<M>*>(nullptr));
}

}  // namespace muster
