// SPDX-License-Identifier: BSD-3-Clause
// The program muster-check, which `muster check` becomes.
#include "cli/check.hpp"
#include "cli/program.hpp"

int main(int argc, char** argv) {
  return muster::run_command_line(argc, argv, [](CLI::App&, muster::Command& root) {
    muster::add_check(root, muster::run_check);
  });
}
