// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of `muster`. Each has a file of its own, cli/<name>.cpp, and registers itself
// here; a file that does not exist yet is left out by cli/CMakeLists.txt.
//
// A subcommand throws muster::Error for what goes wrong: see run_command_line() (program.hpp).
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace muster {

class Command;

void add_topo(Command& app);
void add_place(Command& app);
void add_run(Command& app);
void add_list(Command& app);
void add_compare(Command& app);
void add_doctor(Command& app);
void add_explain(Command& app);
void add_bench_barrier(Command& group);  ///< takes the group `muster bench`
void add_bench_lock(Command& group);     ///< takes the group `muster bench`
void add_bench_mpi(Command& group);      ///< takes the group `muster bench`
void add_bench_summary(Command& group);  ///< takes the group `muster bench`
void add_check(Command& app);
void add_sim(Command& app);
void add_tune(Command& app);
void add_machine(Command& app);
void add_measure(Command& app);
void add_report(Command& app);
void add_reference(CLI::App& root);  ///< after all others, of which it tells

}  // namespace muster
