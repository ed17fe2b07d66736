// SPDX-License-Identifier: BSD-3-Clause
// The command `muster`.
#include "cli/command.hpp"
#include "cli/program.hpp"
#include "cli/subcommands.hpp"

int main(int argc, char** argv) {
  return muster::run_command_line(argc, argv, [](CLI::App& app, muster::Command& root) {
    muster::Command* const bench = root.add_subcommand("bench", "Measure on this machine");
    bench->require_subcommand(1);
#include "subcommands.inc"
    muster::add_reference(app);
  });
}
