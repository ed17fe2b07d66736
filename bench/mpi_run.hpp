// SPDX-License-Identifier: BSD-3-Clause
// `muster bench mpi`: MPI_Barrier of every MPI found here, its own algorithms one by one and ours,
// in one interleaved run.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/run.hpp"
#include "bench/stats.hpp"

namespace muster::bench {

/// An MPI on this machine.
struct MpiInstallation {
  std::string name;      ///< "Open MPI 4.1.4"
  std::string family;    ///< "openmpi", "mpich" or "intel"
  std::string launcher;  ///< path of mpirun
  std::string library;   ///< path of the library that programs load
  std::vector<std::pair<std::string, std::string>> environment;
};

/// A program as the shell finds it; "" if there is none.
std::string find_in_path(const std::string& name);

/// Where `make peers` has put them, if this program is in a build tree beside; else empty.
std::string default_peers();

/// The MPIs of Debian, and those below the folder `peers` (made by cmake/peers.sh), which may be
/// missing.
std::vector<MpiInstallation> find_mpis(const std::string& peers);

/// One way to have the barrier under one MPI.
struct MpiContender {
  const MpiInstallation* mpi = nullptr;
  std::string name;  ///< "default", "tuned linear", "muster (component)", ...
  bool ours = false;
  std::vector<std::string> launcher_arguments;
  std::vector<std::pair<std::string, std::string>> environment;
  bool reports = false;  ///< with MUSTER_REPORT; comes right after the same without
};

/// Whether so many ranks are bound to cores each, or, as there are too few, not at all.
bool ranks_are_bound(unsigned ranks);
/// What launches so many ranks of muster-bench-mpi, but for its last word.
std::vector<std::string> mpi_command(const MpiContender& contender, unsigned ranks);
/// By what the ranks of a launch of ours said at their end: why the barriers were not ours; "" if
/// they were, and for an MPI's own.
std::string why_not_ours(const MpiContender& contender, const std::string& err);

/// Who serves the ranks that a command starts.
struct MpiService {
  bool ours = false;
  std::string placed;  ///< "by PMIx locality strings", "by affinity masks", ...; empty: not told
  std::string why;     ///< if they are not ours; empty if no Muster is there
  double mean_us = 0;  ///< a barrier
  unsigned ranks = 0;
  unsigned cpus = 0;  ///< that rank 0 may run on
};

/// Launches a few ranks for a moment: `launcher` and what it is given, such as {"srun", "-n", "4"},
/// its ranks with this environment; `library`: of its MPI. Throws Error(unsupported) if the worker
/// is not there, (invalid) with the launcher's reason if it failed.
MpiService try_launcher(const std::vector<std::string>& launcher,
                        const std::vector<std::pair<std::string, std::string>>& environment,
                        const std::string& library);

/// The path of the preload library; empty if it was not built.
std::string mpi_preload();

/// What each round of a contender gave, us.
struct MpiSamples {
  MpiContender contender;
  unsigned ranks = 0;
  std::vector<double> latency;  ///< as osu_barrier's average; NaN: that round failed
  std::vector<double> least;    ///< of the ranks' means, the least
  std::vector<double> greatest;
  std::vector<double> cycle;  ///< dup, 8 barriers, free
  std::vector<double> skew;   ///< from the first rank's leaving to the last's, median
  std::vector<double> fetch;  ///< MPI_Fetch_and_op to a rank that waits in its barrier, mean
  std::vector<double> fetch_median;
  std::vector<double> count;  ///< barriers timed
  std::string why;            ///< if a round failed: the first reason
  bool hopeless = false;      ///< beyond MpiRunOptions::hopeless in the first round, its only one
};

struct MpiRunOptions {
  std::vector<unsigned> ranks;
  unsigned rounds = 5;
  double seconds = 0.2;        ///< of barriers in each launch
  double timeout_s = 30;       ///< of each launch
  double hopeless = 50;        ///< who is so many times slower than the best has one round only
  std::string peers;           ///< folder
  std::string only;            ///< part of a contender's or an MPI's name; empty: all
  bool own_algorithms = true;  ///< an MPI's algorithms one by one; else its default alone
  bool report = false;         ///< ours once more, with MUSTER_REPORT
};

struct MpiRunResults {
  std::vector<MpiInstallation> mpis;  ///< where the samples' contenders point
  std::vector<MpiSamples> samples;    ///< in the order of ranks, then of contenders
  bool stopped = false;               ///< by Ctrl-C: there are fewer rounds, or contenders
};

/// Who is to be measured, by those options; they point to the MPIs found. Throws Error: unsupported
/// if there is none, unknown_name if none has that name.
std::vector<MpiContender> find_contenders(const MpiRunOptions& options,
                                          std::vector<MpiInstallation>& mpis);

/// Launches everything in turn, round by round. Throws what find_contenders() throws.
/// `report` is called before each launch.
MpiRunResults run_mpi(const MpiRunOptions& options,
                      const std::function<void(const Progress&)>& report);

/// The best of others' at the same number of ranks by median latency; null if there is none.
const MpiSamples* best_peer(const MpiRunResults& results, unsigned ranks);

/// What MUSTER_REPORT adds to a barrier, us, by the samples of who reports; without rounds if they
/// are not.
PairedDifference report_cost(const MpiRunResults& results, const MpiSamples& reporting);

/// Of what is not NaN; NaN if nothing is.
double median_of_rounds(const std::vector<double>& values);
double mean_of_rounds(const std::vector<double>& values);

}  // namespace muster::bench
