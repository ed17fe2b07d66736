// SPDX-License-Identifier: BSD-3-Clause
// One steady episode of a barrier, operation by operation: as a trace for Perfetto, and as the
// chain of operations that decided how long it took.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/machine_model.hpp"
#include "sim/predict.hpp"
#include "sim/recorder.hpp"

namespace muster::sim {

/// What a participant did.
struct Operation {
  enum class Kind : std::uint8_t { enter, store, update, await, await_set, leave };
  Kind kind;
  unsigned participant;
  std::uint32_t line = nobody;  ///< of a set, the one whose commit came last
  std::size_t set_size = 1;
  Time begin = 0;
  Time end = 0;
  /// What it saw: who committed the line last, and when; an update: before its own commit.
  std::uint32_t writer = nobody;
  Time committed_at = -1;
};

/// Records the episode after `warm_up` others; install it as BarrierSetup::recorder.
class EpisodeLog : public Recorder {
 public:
  explicit EpisodeLog(unsigned participants) : inside_(participants, false) {}

  void entered(unsigned participant, Time at) override;
  void left(unsigned participant, Time at) override;
  void stored(unsigned participant, const Line& line, Time at) override;
  void committed(const Line& line, unsigned participant, Time at) override;
  void updated(unsigned participant, const Line& line, Time begin, Time end) override;
  void awaited(unsigned participant, const Line& line, Time begin, Time end) override;
  void awaited_set(unsigned participant, std::span<Line* const> set, Time begin, Time end) override;

  /// In the order in which they ended.
  const std::vector<Operation>& operations() const { return operations_; }

 private:
  struct Commit {
    std::uint32_t writer = nobody;
    Time at = -1;
  };

  std::vector<bool> inside_;  ///< by participant
  std::vector<Operation> operations_;
  /// By line: the last, the one before.
  std::map<std::uint32_t, std::pair<Commit, Commit>> commits_;
};

/// An episode with what is needed to speak of it.
struct Episode {
  std::vector<Operation> operations;
  Geometry geometry;
  Layout layout;
  std::string machine;
  std::string barrier;
  double latency_us = 0;  ///< the mean period of the whole run
  /// How far apart two participants are: "NUMA", "PACKAGE", "MACHINE".
  std::function<std::string(unsigned, unsigned)> distance;

  /// "cell 1 of rank 5", "global cell 0".
  std::string cell(std::uint32_t line) const;
};

/// Runs the query as predict() does and records one steady episode.
Episode record_episode(const MachineModel& machine, const Query& query, const Effort& effort);

/// Chrome's trace format (JSON): a track for each rank, grouped by die; a slice for each operation;
/// an arrow from each store to the wait that it ended.
std::string chrome_trace(const Episode& episode);

/// The chain of operations that ended last, from the arrival it began with, in words, and how much
/// of it went where.
std::string why(const Episode& episode);

}  // namespace muster::sim
