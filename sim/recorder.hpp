// SPDX-License-Identifier: BSD-3-Clause
// Who wants to know what happens on the modelled machine: the trace, and the search for the
// critical path. Every call is made in simulated order of its participant.
#pragma once

#include <span>

#include "sim/line.hpp"
#include "sim/time.hpp"

namespace muster::sim {

class Recorder {
 public:
  virtual ~Recorder() = default;
  /// A participant calls the barrier; it has left it.
  virtual void entered(unsigned participant, Time at) = 0;
  virtual void left(unsigned participant, Time at) = 0;
  /// A store entered the participant's buffer.
  virtual void stored(unsigned participant, const Line& line, Time at) = 0;
  /// A store or an update became visible to everybody.
  virtual void committed(const Line& line, unsigned participant, Time at) = 0;
  virtual void updated(unsigned participant, const Line& line, Time begin, Time end) = 0;
  /// A wait is over; the line's last commit is what ended it.
  virtual void awaited(unsigned participant, const Line& line, Time begin, Time end) = 0;
  virtual void awaited_set(unsigned participant, std::span<Line* const> set, Time begin,
                           Time end) = 0;
};

}  // namespace muster::sim
