// SPDX-License-Identifier: BSD-3-Clause
// `muster bench`: the group of what measures on this machine.
#include "cli/command.hpp"
#include "cli/subcommands.hpp"

namespace muster {

Command* add_bench(Command& app) {
  Command* const bench = app.add_subcommand("bench", "Measure on this machine");
  bench->require_subcommand(1);
  return bench;
}

}  // namespace muster
