// SPDX-License-Identifier: BSD-3-Clause
// A machine description of the machine at hand, by micro-benchmarks: the same patterns
// (patterns.hpp) run on its cores and in the model, whose parameters are fitted until both agree.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/machine_model.hpp"
#include "sim/predict.hpp"

namespace muster::sim {

/// One micro-benchmark, or a barrier, on some cores.
struct MicroBenchmark {
  std::string pattern;          ///< "ping-pong", "one-writer", ..., or a barrier's name
  std::string label;            ///< for people: "one reader, 8 flags of 1 writer"
  std::vector<unsigned> cores;  ///< positions in Topology::cores(), one a participant
  unsigned count = 1;           ///< flags, stores or additions of an episode
};

struct MicroResult {
  MicroBenchmark what;
  double measured_ns = 0;  ///< an episode
  double modelled_ns = 0;
  bool fitted = false;   ///< took part in the fit
  bool barrier = false;  ///< a barrier of two ranks: a prediction
};

struct MeasureOptions {
  std::string topology;  ///< a machine file's "topology"; empty: this machine's
  std::string name = "this-machine";
  unsigned rounds = 15;     ///< each runs every benchmark once
  unsigned cores_max = 16;  ///< participants of the benchmarks that take many
  bool barriers = true;     ///< measure and predict barriers of two participants too
  std::function<void(const std::string&)> progress;
};

struct Measured {
  MachineModel machine;
  std::vector<MicroResult> results;
  unsigned rounds_kept = 0;  ///< in which this machine was as fast as in most of them
  unsigned rounds = 0;
  double ping_pong_ns = 0;  ///< one way between two flags of the innermost class
};

/// Takes some seconds and wants the machine for itself. Threads are bound to cores, one each.
/// Throws Error(unsupported) with fewer than two usable cores.
Measured measure_machine(const MeasureOptions& options);

/// An episode in the model, in nanoseconds.
double model_ns(const MachineModel& machine, const MicroBenchmark& benchmark, StackPool& pool);

}  // namespace muster::sim
