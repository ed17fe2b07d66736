// SPDX-License-Identifier: BSD-3-Clause
// Locks of a station whose server runs.
#pragma once

#include <gtest/gtest.h>
#include <time.h>

#include <memory>

#include "delegation/any_lock.hpp"
#include "delegation/station.hpp"
#include "trial.hpp"

namespace muster::test {

inline void sleep_ms(long ms) {
  const timespec time{ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&time, nullptr);
}

class WithServer : public testing::Test {
 protected:
  void SetUp() override { station_->start({}); }
  std::unique_ptr<delegation::AnyLock> make(const char* kind = "rcl") const {
    return delegation::make_lock({.kind = kind, .station = station_});
  }

  HangGuard guard_{60};
  std::shared_ptr<delegation::Station> station_ = std::make_shared<delegation::Station>();
};

}  // namespace muster::test
