// SPDX-License-Identifier: BSD-3-Clause
// The locks by name: one list for the C ABI, the command line, the benchmarks, the tests and the
// checker. `pthread-mutex` is the C library's, and the only one that is not over a Machine.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "lock/auto.hpp"
#include "lock/cas_spin.hpp"
#include "lock/cc_synch.hpp"
#include "lock/clh.hpp"
#include "lock/dsm_synch.hpp"
#include "lock/flat_combining.hpp"
#include "lock/h_synch.hpp"
#include "lock/mcs.hpp"
#include "lock/oyama.hpp"
#include "lock/phase_fair.hpp"
#include "lock/rcl.hpp"
#include "lock/robust.hpp"
#include "lock/ticket.hpp"
#include "machine/by_name.hpp"
#include "machine/error.hpp"

namespace muster::locks {

/// All locks over one machine, in the order in which they are listed.
template <class M>
using Locks =
    std::tuple<CasSpin<M>, TicketLock<M>, Mcs<M>, Clh<M>, Robust<M>, PhaseFair<M>, Oyama<M>,
               FlatCombining<M>, CcSynch<M>, DsmSynch<M>, HSynch<M>, Rcl<M>, Auto<M>>;

/// The C library's mutex, to compare with, between the threads of one process: two atomic updates
/// while uncontended; a waiter sleeps in the kernel at once.
struct PthreadMutex {
  static constexpr Traits traits{"pthread-mutex", Style::direct, false,
                                 "two while it changes hands, and a context switch",
                                 "the C library's"};
};

/// The names of all locks, as listed; `pthread-mutex` before `auto`, the last.
std::span<const std::string_view> lock_names();

/// The traits of a registered lock. Throws Error(unknown_name), listing the names.
const Traits& traits_of(std::string_view name);

/// Calls `fn.template operator()<L>()` with the lock of that name over M and returns what it
/// returns. Throws Error(unknown_name), also for `pthread-mutex`.
template <class M, class Fn>
decltype(auto) with_lock(std::string_view name, Fn&& fn) {
  return with_named<Locks<M>>(name, fn, [&] {
    static_cast<void>(traits_of(name));  // throws
    throw Error(Status::unknown_name, std::string(name) + " is not over a machine");
  });
}

}  // namespace muster::locks
