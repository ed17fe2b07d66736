// SPDX-License-Identifier: BSD-3-Clause
// The command `muster`.
#include "cli/command.hpp"
#include "cli/program.hpp"
#include "cli/subcommands.hpp"

int main(int argc, char** argv) {
  return muster::run_command_line(argc, argv,
                                  []([[maybe_unused]] CLI::App& app, muster::Command& root) {
#include "subcommands.inc"
                                  });
}
