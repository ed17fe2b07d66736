// SPDX-License-Identifier: BSD-3-Clause
// Ctrl-C ends a measurement early, and keeps what it has.
#pragma once

namespace muster::bench {

/// From now on Ctrl-C (SIGINT) only asks to stop, and says so; whoever measures looks at
/// stop_asked(). A second one ends the process as usual. Children that run no other program
/// inherit that.
void stop_on_ctrl_c();

/// For any thread.
bool stop_asked() noexcept;

/// Where it was asked: exits with 130, as shells say of what Ctrl-C ended. For when all results are
/// out.
void end_if_stopped();

}  // namespace muster::bench
