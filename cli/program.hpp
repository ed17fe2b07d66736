// SPDX-License-Identifier: BSD-3-Clause
// What the programs of this folder are: a command line whose subcommand is found and run.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace muster {

class Command;

/// Turns what goes wrong into one line on standard error and an exit code: 0 success, 1 failure, 2
/// a mistake in the command line.
int run_command_line(int argc, char** argv,
                     const std::function<void(CLI::App&, Command&)>& add_commands);

/// The first of these files that is there, relative to the running program's folder; "" if none is.
std::string own_file(const std::vector<std::string>& places);

/// Becomes another program of this build or installation, with the same command line. Throws Error.
[[noreturn]] void become_program(const std::string& name);

}  // namespace muster
