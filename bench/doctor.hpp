// SPDX-License-Identifier: BSD-3-Clause
// `muster doctor`: what on this machine makes synchronization cost more than it need, each found by
// a measurement, with what helps against it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/pu_set.hpp"
#include "topology/topology.hpp"

namespace muster::bench {

enum class Verdict {
  fine,
  costs,
  unknown,  ///< this machine does not let itself be asked
};

struct Diagnosis {
  std::string check;  ///< "quota"
  Verdict verdict = Verdict::fine;
  std::string found;                                     ///< a sentence, with what was measured
  std::string remedy;                                    ///< what helps; empty where nothing has to
  std::vector<std::pair<std::string, double>> measured;  ///< names end in their units
};

/// What others had of the CPUs in half a second, as shares of all.
struct Neighbours {
  bool known = false;
  double busy = 0;
  double steal = 0;     ///< the hypervisor
  std::string busiest;  ///< "name (process 12)"; empty: nobody
};

/// What the checks look at this machine with. Tests have those of machines that are not here.
struct Instruments {
  Instruments();  ///< this machine's

  std::function<Topology()> topology;
  std::function<std::string(const std::string& path)> read;  ///< a small file; "" if there is none
  std::function<Neighbours(const PuSet& cpus)> neighbours;
  std::function<unsigned()> usable_cpus;  ///< by this process
  std::function<unsigned()> online_cpus;
  std::function<std::optional<double>()> quota;  ///< CPUs, of a control group; none: no limit
  std::function<long()> membarrier;              ///< its commands; negative: the error
  /// Nanoseconds in which two processes hand a word to each other on one CPU, in sessions of their
  /// own or in one; 0: no process could be made.
  std::function<double(bool apart, unsigned cpu)> turn_ns;
  /// Half of a flag's way between two CPUs and back.
  std::function<double(unsigned from, unsigned to)> one_way_ns;
  /// What a CPU does in 50 ms beside another one that is busy, of what it does alone.
  std::function<double(unsigned cpu, unsigned beside)> work_share;
  /// How fast a CPU that was idle is in the first 2 ms, of its speed later.
  std::function<double(unsigned cpu)> cold_share;
};

struct Check {
  std::string_view name;
  std::string_view about;
  double seconds;  ///< that it takes, about; 0: it measures nothing
  Diagnosis (*run)(const Instruments&);
};

/// In the order in which they are made: those that need quiet come first.
const std::vector<Check>& all_checks();

/// What a measurement finds costs if it is found three times: an instant's disturbance is not the
/// machine's.
Diagnosis examine(const Check& check, const Instruments& by);

}  // namespace muster::bench
