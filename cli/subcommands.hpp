// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of `muster`. Each has a file of its own, cli/<name>.cpp, and registers itself
// here. cli/CMakeLists.txt leaves out what this tree lacks something for.
//
// A subcommand throws muster::Error for what goes wrong: see run_command_line() (program.hpp).
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace muster {

class Command;

Command* add_bench(Command& app);  ///< the group that the next four are in
void add_bench_barrier(Command& bench);
void add_bench_lock(Command& bench);
void add_bench_mpi(Command& bench);
void add_bench_summary(Command& bench);
void add_topo(Command& app);
void add_place(Command& app);
void add_run(Command& app);
void add_list(Command& app);
void add_doctor(Command& app);
void add_compare(Command& app);
void add_measure(Command& app);
void add_report(Command& app);
void add_explain(Command& app);
void add_check(Command& app);
Command* add_sim(Command& app);  ///< the group that the next five are in
void add_sim_barrier(Command& sim);
void add_sim_fit(Command& sim);
void add_sim_validate(Command& sim);
void add_sim_lock(Command& sim);
void add_sim_reproduce(Command& sim);
void add_tune(Command& app);
void add_machine(Command& app);
/// After all others, of which it tells.
void add_reference(CLI::App& root, const Command& commands);

/// All that `muster list` shows of these kinds.
std::vector<std::string> listed_names(const std::vector<std::string>& kinds);

/// Of `muster run`; all but the first are ours.
inline constexpr const char* mutex_names[] = {"pthread", "spin-then-park", "mcs", "cna"};

}  // namespace muster
