// SPDX-License-Identifier: BSD-3-Clause
// What core-to-core latency tools write: a CSV without a header, the lower triangle of a matrix,
// nanoseconds one way; row and column n stand for CPU n. And what classes of distance it has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/machine_model.hpp"

namespace muster::sim {

struct PairMatrix {
  unsigned size = 0;
  std::vector<double> ns;      ///< size x size, symmetric; NaN where nothing was measured
  std::size_t unmeasured = 0;  ///< pairs without a time
  /// By how much the two directions differ, in the median, of pairs that have both: 0.1 is a tenth.
  double asymmetry = 0;
  double at(unsigned a, unsigned b) const { return ns[std::size_t{a} * size + b]; }
};

/// Where both triangles are filled the mean counts. "nan" and "-" are no time, as an empty field.
/// Throws Error(invalid), "source:line: what".
PairMatrix parse_pair_matrix(const std::string& text, const std::string& source);
PairMatrix load_pair_matrix(const std::string& file);

/// The levels that may tell distances apart, bottom up: those of several units.
std::vector<const Level*> distance_levels(const Topology& topology);

/// The pairs whose innermost common level is this one.
struct DistanceClass {
  std::optional<LevelKind> level;  ///< empty: MACHINE
  std::size_t pairs = 0;
  double median_ns = 0;
  double p10_ns = 0;
  double p90_ns = 0;
  /// What holds 10 to 90 % of the pairs on both sides of the median, as machine files have it; a
  /// tenth at least.
  double margin() const;
  std::string name() const { return level ? std::string(level_name(*level)) : "MACHINE"; }
};

struct Distances {
  std::vector<DistanceClass> classes;  ///< bottom up, as the topology has them; MACHINE last
  /// What becomes of them: neighbours that differ by less than 10 %, or that are not farther than
  /// the one below, are one.
  std::vector<DistanceClass> merged;
  std::optional<double> siblings_ns;  ///< PUs of one core: no two ranks of the model are so near
  double explained = 0;  ///< share of the variance of the logarithms that the merged classes hold
  double explained_with_siblings = 0;  ///< the same, and these are a class, too
  double within = 0;  ///< what the merged classes do not hold: squared deviations of logarithms
  /// Pairs of all other packages are as far apart as those of two: the lines' home was in this one.
  std::optional<unsigned> home;
};

/// How a matrix's rows may be numbered.
struct Numbering {
  std::string name;            ///< "siblings last, packages by turns"
  std::vector<unsigned> cpus;  ///< of each row, the operating system's number in the topology
};

/// What systems are seen to do with this topology's PUs, each once: first as it numbers them.
std::vector<Numbering> usual_numberings(const Topology& topology);

/// The usual numbering that explains most of the matrix; the first, unless another explains a
/// twentieth of the variance more. Throws as distances_of().
Numbering infer_numbering(const PairMatrix& matrix, const Topology& topology);

/// Row n is PU cpus[n] of the topology, by the operating system's number; an empty list: the PUs
/// in ascending order. Throws Error(invalid) if the matrix has other CPUs than the topology.
Distances distances_of(const PairMatrix& matrix, const Topology& topology,
                       std::vector<unsigned> cpus);

/// What is known of a machine besides `like`, another one whose parameters it takes over: the
/// occupancies in proportion to the latency inside a die.
struct MachineSketch {
  std::string name;
  std::string about;
  std::string topology;  ///< as in a machine file
  bool ll_sc = false;
  std::string rmw_source = "assumed: of this architecture";
  std::vector<LatencyClass> latencies;  ///< bottom up; the last is MACHINE
  std::string latency_source;           ///< "measured: ..."
  bool home_way = false;                ///< as Distances::home says
};

/// The dies are the units of the innermost of L3, NUMA and PACKAGE that the machine has several of.
/// Throws as Topology does.
MachineModel machine_like(const MachineModel& like, const MachineSketch& sketch);

/// What the matrix of `source` tells: each class has its median and margin. Throws likewise.
MachineModel imported_machine(const MachineModel& like, MachineSketch sketch,
                              const Distances& distances, const std::string& source);

/// A machine of which nothing but the topology is known: an MPI's ranks with the costs that
/// costs_for() guesses; what it says nothing of is as on the known machine that is nearest.
/// `statement`: the topology as in a machine file. Throws likewise.
MachineModel assumed_machine(const Topology& topology, const std::string& statement);

/// hwloc's synthetic description of a topology whose levels nest regularly. Throws
/// Error(unsupported) for others, and says by which option of the caller's a file is named.
std::string synthetic_description(const Topology& topology, std::string_view option);

}  // namespace muster::sim
