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
  double error() const { return modelled_ns / measured_ns - 1; }
};

/// A pattern's name, "alone" for what one core does, or "barriers".
std::string kind_of(const MicroResult& result);

/// One kind of what was measured, judged: does the model give it back?
struct Closure {
  std::string kind;
  double tolerance = 0;  ///< relative; each result of the kind has to be within it
  unsigned good = 0;
  unsigned all = 0;
  double worst = 0;         ///< modelled / measured - 1, the farthest from 0
  std::string worst_label;  ///< which one that is
  bool prediction = false;  ///< the fit has not seen it
  bool closes() const { return good == all; }
};

/// How far a benchmark that the model was made from, and a barrier that it was not, may be off.
inline constexpr double closure_tolerance = 0.15;
inline constexpr double prediction_tolerance = 0.25;

/// By kind, in the order in which they come.
std::vector<Closure> closures_of(const std::vector<MicroResult>& results);

/// Whether everything closes that the model was made from, predictions aside.
bool all_close(const std::vector<Closure>& closures);

/// In a line of words: whether it closes, how many are within the tolerance, and the worst.
std::string verdict(const Closure& closure);

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
