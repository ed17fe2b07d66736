// SPDX-License-Identifier: BSD-3-Clause
// `rcl` and `auto`: locks of a station. Both are the protocol of lock/auto.hpp; with `rcl` a client
// always delegates while there is a server.
#pragma once

#include <string>

#include "delegation/any_lock.hpp"
#include "delegation/kept.hpp"
#include "delegation/station.hpp"
#include "delegation/work.hpp"
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
  std::optional<unsigned> server_core() const override { return station_->core(); }
  Counters counters() const override;
  std::string explain() const override;

  /// The way of most sections, of a thread whose `quick` is this lock: its client executes it. False
  /// if the lock is taken.
  bool execute_at_once(Thread& thread, Section section) {
    auto& seat = *static_cast<Station::Seat*>(thread.last_seat);
    auto& habit = *static_cast<Auto::Habit*>(thread.last_habit);
    OwnWork work(thread, *this, section, station_->board());
    if (!auto_.execute_alone(seat.port, habit, work, Combines{*this})) [[unlikely]]
      return false;
    ++seat.sections;
    if (habit.delegates) [[unlikely]]
      thread.quick = 0;
    send_kept_posts();
    return true;
  }

 private:
  /// What the calling thread has here.
  struct Client {
    Station::Seat& seat;
    Auto::Habit& habit;
  };
  /// Whether clients execute each other's sections: not where these may wait for conditions.
  struct Combines {
    const Delegated& lock;
    bool operator()() const { return lock.combines_.load(std::memory_order_relaxed); }
  };

  Client client(const Depth& depth) {
    const Thread& t = depth.thread();
    if (t.depth == 1 && t.last_lock == number_ever()) [[likely]] {
      return {*static_cast<Station::Seat*>(t.last_seat), *static_cast<Auto::Habit*>(t.last_habit)};
    }
    return find_client(depth);
  }
  [[gnu::noinline]] Client find_client(const Depth& depth);
  void execute_nested(Section section, Station::Seat& seat, Auto::Habit& habit);
  void take_blocking(Port& port);
  bool combines() const { return Combines{*this}(); }
  void learn(Thread& thread, Station::Seat& seat, const Auto::Habit& habit);

  std::shared_ptr<Station> station_;
  const bool always_delegates_;
  std::atomic<bool> combines_{true};
  Word number_;
  locks::Desk<Port> desk_;
  Auto auto_;
  PerSeat<Auto::Habit> habits_;
};

/// AnyLock::execute(), the short way where there is one.
inline void execute_section(AnyLock& lock, Section section) {
  Thread& t = this_thread;
  if (t.quick == lock.number_ever() && static_cast<Delegated&>(lock).execute_at_once(t, section))
      [[likely]] {
    return;
  }
  lock.execute(section);
}

}  // namespace muster::delegation
