// SPDX-License-Identifier: BSD-3-Clause
// Ctrl-C ends a measurement early, and keeps what it has.
#pragma once

namespace muster::bench {

/// From now on SIGINT and SIGTERM only ask to stop; whoever measures looks at stop_signal(). A
/// second one ends the process as usual.
void stop_on_signals();

/// The signal that asked to stop; 0: none did. For any thread.
int stop_signal() noexcept;

/// Where one did: exits with 128 and its number, 130 for Ctrl-C. For when all results are out.
void end_if_stopped();

}  // namespace muster::bench
