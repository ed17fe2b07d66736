// SPDX-License-Identifier: BSD-3-Clause
// Remote Core Locking. A client writes its request to its own slot and waits until the server has
// cleared it; the server walks the slots and executes what it finds. The protected data stays in
// the server's cache, and the lock changes hands only when a server comes or goes: without one,
// clients help themselves as those of `auto` do, so nothing is ever lost.
//
// Cost: two line transfers a section.
// Source: Lozi, David, Thomas, Lawall and Muller, USENIX ATC 2012 and ACM TOCS 33(4), 2016.
//
// Invariants: attended.hpp's, whatever clients know of the server.
#pragma once

#include "lock/attended.hpp"

namespace muster::locks {

template <LockMachine M>
class Rcl : public Attended<M> {
 public:
  static constexpr Traits traits{"rcl", Style::server, true, "two",
                                 "Lozi et al. 2012 and 2016, with numbered requests"};

  Rcl(const Shape& shape, typename M::Cells cells) : Attended<M>(shape, cells, true) {}
};

}  // namespace muster::locks
