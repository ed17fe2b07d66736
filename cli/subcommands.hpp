// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of `muster`. Each has a file of its own, cli/<name>.cpp, and registers itself
// here; a file that does not exist yet is left out by cli/CMakeLists.txt.
//
// A subcommand throws muster::Error for what goes wrong: main() prints it after "muster: " and
// exits with 2 for a mistake in the command line (invalid, unknown_name), else with 1.
#pragma once

namespace CLI {
class App;
}

namespace muster {

void add_topo(CLI::App& app);
void add_place(CLI::App& app);
void add_run(CLI::App& app);
void add_list(CLI::App& app);
void add_explain(CLI::App& app);
void add_bench_barrier(CLI::App& group);  ///< takes the group `muster bench`
void add_bench_lock(CLI::App& group);     ///< takes the group `muster bench`
void add_bench_mpi(CLI::App& group);      ///< takes the group `muster bench`
void add_bench_summary(CLI::App& group);  ///< takes the group `muster bench`
void add_check(CLI::App& app);
void add_sim(CLI::App& app);
void add_machine(CLI::App& app);

}  // namespace muster
