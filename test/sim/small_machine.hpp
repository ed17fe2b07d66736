// SPDX-License-Identifier: BSD-3-Clause
// A machine small enough to calculate by hand: two dies of two cores, 10 ns inside a die and 100 ns
// between them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "sim/modelled.hpp"

namespace muster::sim {

inline constexpr Time within = from_ns(10);
inline constexpr Time across = from_ns(100);

inline Geometry two_dies() {
  Geometry geometry;
  geometry.dies_ = 2;
  geometry.die_of_ = {0, 0, 1, 1};
  geometry.between_ = {within, across, across, within};
  return geometry;
}

class SmallMachine : public testing::Test {
 protected:
  SmallMachine() {
    parameters_.hit_ns = 1;
    parameters_.load_gap_ns = 2;
    parameters_.store_gap_ns = 1;
    parameters_.rmw_local_ns = 3;
    parameters_.memory_ns = 50;
    parameters_.poll_overlap = 8;
    parameters_.store_overlap = 8;
    parameters_.store_entries = 16;
  }

  /// Each body on its participant, from its time on; returns when all ended.
  struct Part {
    unsigned participant;
    std::function<void(Modelled&)> body;
    Time at = 0;
  };
  void play(const std::vector<Part>& parts) {
    engine_ = std::make_unique<Engine>(geometry_, parameters_, mechanisms_, 1, 16, pool_);
    for (const Part& part : parts) {
      engine_->start(
          part.participant,
          [this, part] {
            Modelled port(*engine_, part.participant);
            part.body(port);
          },
          part.at);
    }
    engine_->run(100000);
  }
  Line& cell(unsigned n) { return engine_->line(n); }
  Time clock(const Modelled& m) { return m.engine().clock(m.participant()); }

  Geometry geometry_ = two_dies();
  Parameters parameters_;
  Mechanisms mechanisms_ = Mechanisms::all();
  StackPool pool_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace muster::sim
