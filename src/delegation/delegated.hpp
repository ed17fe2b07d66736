// SPDX-License-Identifier: BSD-3-Clause
// `rcl` and `auto`: locks of a station. Both are the protocol of lock/auto.hpp; with `rcl` a client
// always delegates while there is a server.
#pragma once

#include <string>

#include "delegation/any_lock.hpp"
#include "delegation/station.hpp"
#include "lock/auto.hpp"

namespace muster::delegation {

class Delegated final : public AnyLock {
 public:
  using Auto = locks::Auto<Port>;

  /// `station`: null for the default one. An `rcl` lock starts a server where there is none.
  Delegated(const locks::Traits& traits, std::shared_ptr<Station> station);
  ~Delegated() override;

  void execute(Section section) override;
  void post(Section section) override;
  void give_up() override;
  void take_again() override;
  void allow_conditions() override { combines_.store(false, std::memory_order_relaxed); }
  Counters counters() const override;
  std::string explain() const override;

 private:
  /// What the calling thread has here.
  struct Client {
    Station::Seat& seat;
    Auto::Habit& habit;
  };
  Client client(const Depth& depth) {
    const Thread& t = depth.thread();
    if (t.depth == 1 && t.last_lock == number_ever_) [[likely]] {
      return {*static_cast<Station::Seat*>(t.last_seat), *static_cast<Auto::Habit*>(t.last_habit)};
    }
    return find_client(depth);
  }
  [[gnu::noinline]] Client find_client(const Depth& depth);
  void execute_nested(Section section, Station::Seat& seat, Auto::Habit& habit);
  void take_blocking(Port& port);
  bool combines() const { return combines_.load(std::memory_order_relaxed); }

  std::shared_ptr<Station> station_;
  const bool always_delegates_;
  const std::uint64_t number_ever_;  ///< no other lock of this process has or had it
  std::atomic<bool> combines_{true};
  Word number_;
  locks::Desk<Port> desk_;
  Auto auto_;
  PerSeat<Auto::Habit> habits_;
};

}  // namespace muster::delegation
