// SPDX-License-Identifier: BSD-3-Clause
// Locks of a station whose server runs.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <memory>
#include <thread>

#include "delegation/any_lock.hpp"
#include "delegation/station.hpp"
#include "trial.hpp"

namespace muster::test {

inline std::int64_t now_ms() { return now_ns() / 1'000'000; }

inline void sleep_ms(long ms) {
  const timespec time{ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&time, nullptr);
}

/// A section that blocks, on a thread of its own, until it is let go. Made once it has begun.
class BlockedSection {
 public:
  explicit BlockedSection(delegation::AnyLock& lock)
      : thread_([this, &lock] {
          auto section = [this] {
            inside_ = true;
            while (!go_on_) sleep_ms(1);
          };
          lock.execute(section_of(section));
        }) {
    while (!inside_) sched_yield();
  }
  ~BlockedSection() {
    let_go();
    if (thread_.joinable()) thread_.join();
  }
  BlockedSection(const BlockedSection&) = delete;
  BlockedSection& operator=(const BlockedSection&) = delete;

  void let_go() { go_on_ = true; }
  void end() {
    let_go();
    thread_.join();
  }

 private:
  std::atomic<bool> inside_{false};
  std::atomic<bool> go_on_{false};
  std::thread thread_;
};

class WithServer : public testing::Test {
 protected:
  void SetUp() override { station_->start({}); }
  std::unique_ptr<delegation::AnyLock> make(const char* kind = "rcl") const {
    return delegation::make_lock({.kind = kind, .station = station_});
  }

  std::shared_ptr<delegation::Station> station_ = std::make_shared<delegation::Station>();
};

/// A station whose `auto` locks get a server as if the machine had CPUs to spare.
class ByItself : public testing::Test {
 protected:
  void SetUp() override {
    locks::Steward::Rules rules;
    rules.meets_per_s = 100;
    rules.trial_ratio = 0;  // these CPUs are the clients' in truth: it is slower
    station_->employ(locks::Steward(rules), [this](locks::Steward::Look& look) {
      // With a CPU each they would all wait awake, and meet all the time.
      if (!counts_meets_) look.meets = look.sections;
      look.clients = 3;
      look.usable_cpus = usable_cpus_;
      look.threads_cpus = 3;
      look.server_cpus = 1;
    });
  }
  std::unique_ptr<delegation::AnyLock> make() const {
    return delegation::make_lock({.kind = "auto", .station = station_});
  }

  std::atomic<unsigned> usable_cpus_{8};
  std::atomic<bool> counts_meets_{false};
  std::shared_ptr<delegation::Station> station_ = std::make_shared<delegation::Station>();
};

}  // namespace muster::test
