// SPDX-License-Identifier: BSD-3-Clause
// How a lock that ends knows what sections of other locks have posted to it. Such posts are kept
// until their thread is outside of all sections, and sent then; the lock counts them meanwhile.
//
// Each is a template over what has a Machine's fetch_add() and await().
// Source: ours.
//
// Invariant: a post is counted, or in the lock's rings, or executed.
#pragma once

#include "machine/machine.hpp"

namespace muster::locks {

template <class M>
struct KeptPosts {
  /// In the section that makes the post: its lock cannot end before that section has.
  static void keep(M& m, auto& kept) { m.fetch_add(kept, 1, relaxed); }

  /// Outside of all sections. `post()` sends it; if it throws, the post is still kept.
  static void send(M& m, auto& kept, auto post) {
    post();
    m.fetch_add(kept, Word(-1), release);  // pairs with await_sent()
  }

  /// By who ends the lock: from here on whatever was posted to it is seen.
  static bool await_sent(M& m, auto& kept) {
    return m.await(kept, equals(0), acquire);  // pairs with send()
  }
};

}  // namespace muster::locks
