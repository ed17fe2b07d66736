// SPDX-License-Identifier: BSD-3-Clause
// `rcl` and `auto`: locks of a station. Both are the protocol of lock/auto.hpp; with `rcl` a client
// always delegates while there is a server.
#pragma once

#include <string>

#include "delegation/any_lock.hpp"
#include "delegation/station.hpp"
#include "delegation/work.hpp"
#include "lock/auto.hpp"

namespace muster::delegation {

class Delegated final : public AnyLock {
  /// What a client knows of the lock, and how much of that its station has been told. Of its pace
  /// it knows what has not been told.
  struct Known : locks::Habit {
    std::uint64_t sections_told = 0;
    std::uint64_t meets_told = 0;
  };

 public:
  using Auto = locks::Auto<RingPort>;

  /// `station`: null for the default one. An `rcl` lock starts a server where there is none.
  Delegated(const locks::Traits& traits, std::shared_ptr<Station> station,
            std::int64_t visit_ns = locks::Visit::usual_ns);
  ~Delegated() override;

  void execute(Section section, unsigned copied = 0) override;
  void post(Section section) override;
  void give_up() override;
  bool take_again() override;
  void look_after_section() noexcept override;
  bool await_callers(std::int64_t end_ns) override;
  void allow_conditions() override { combines_.store(false, std::memory_order_relaxed); }
  const Station* station() const override { return station_.get(); }
  Counters counters() const override;
  AtOnce at_once() override;
  Choice choice() const override;
  std::string explain() const override;

  /// What is not of every section that a client has executed at once: it gives the lock.
  [[gnu::noinline]] static void give_back_anyway();
  /// AnyLock::short_way() of `auto`, to which no indirect jump leads: most sections' way.
  static int go_short_way(AnyLock& lock, Section section, Execute otherwise);
  static bool acquire_at_once(AnyLock& lock) {
    return lock.short_way() == go_short_way &&
           static_cast<Delegated&>(lock).acquire_at_once(this_thread);
  }
  static bool release_at_once(AnyLock& lock) {
    return lock.short_way() == go_short_way &&
           static_cast<Delegated&>(lock).release_at_once(this_thread);
  }

 private:
  class PostedWork;
  /// What the calling thread has here.
  struct Client {
    Station::Seat& seat;
    Known& habit;
  };
  /// Whether clients execute each other's sections: not where these may wait for conditions, nor in
  /// a fork's child, whose parent's clients they are.
  auto combining() const {
    return [this] { return combines_.load(std::memory_order_relaxed) && in_own_process(); };
  }

  bool has_client(unsigned seat) const noexcept override { return habits_.find(seat) != nullptr; }
  void visit(Station::Seat& seat, Known& habit);
  bool try_take(bool again) override;
  bool wait_to_take(std::int64_t end_ns) override;
  void give_acquired() override;
  /// Of the thread itself, in whatever sections it is.
  Client own_client();
  bool comes_back(Thread& thread);
  /// Whether a thread that is outside of all sections may take the short way into its next one.
  bool may_be_quick(const Station::Seat& seat, const Known& habit) const {
    return !always_delegates_ && !habit.delegates && !seat.is_pending();
  }
  /// Whether the thread is outside of all sections, used this lock last, and a server runs: it is
  /// in the process that has made the lock.
  bool knows(const Thread& t) const {
    return t.last_lock == number_ever() && t.is_outside() && station_->has_server();
  }
  /// Of a thread whose `quick` is this lock: its client executes the section. False if the lock is
  /// taken. Where sections wait for memory, the next one's access begins as soon as the processor
  /// has room for it beside this one: so the fewer instructions, the better.
  [[gnu::always_inline]] bool execute_at_once(Thread& thread, Section section) {
    if (!auto_.take(static_cast<Station::Seat*>(thread.last_seat)->port)) [[unlikely]]
      return false;
    run_at_once(
        thread, section, [&thread]() __attribute__((always_inline)) {
          // All is read again, the lock too: what lives across the section has to be saved before
          // it. Likewise give_back_anyway() sees to all that is not of every section.
          auto& lock = *static_cast<Delegated*>(thread.inside);
          auto& seat = *static_cast<Station::Seat*>(thread.last_seat);
          auto& habit = *static_cast<Known*>(thread.last_habit);
          lock.auto_.give(seat.port, habit, give_back_anyway);
          thread.leave();
        });
    return true;
  }
  // acquire() and release() of such a thread. False, with nothing done: there is more to do.
  [[gnu::always_inline]] bool acquire_at_once(Thread& thread) {
    if (thread.quick != number_ever() || thread.inside != nullptr) return false;
    if (!auto_.take(last_client(thread).seat.port)) return false;
    enter_first(thread);
    return true;
  }
  [[gnu::always_inline]] bool release_at_once(Thread& thread) {
    if (thread.last_lock != number_ever() || !has_only_this(thread)) return false;
    const Client own = last_client(thread);
    if (auto_.is_wanted(own.seat.port)) return false;  // it is, too, where posts to it are left
    thread.outer = nullptr;
    give_outside(thread, own, true);
    send_kept_posts();
    return true;
  }
  /// `is_back`: the thread used this lock last.
  [[gnu::always_inline]] void give_outside(Thread& thread, const Client& own, bool is_back) {
    if (is_back && may_be_quick(own.seat, own.habit)) thread.quick = number_ever();
    thread.enter(this);
    auto_.give(own.seat.port, own.habit, [&] { visit(own.seat, own.habit); });
    thread.leave();
  }
  void delegate_at_once(Thread& thread, Section section, unsigned copied);
  [[gnu::noinline]] void execute_anywhere(Section section, unsigned copied);
  [[gnu::noinline]] void post_anywhere(Section section);
  /// Outside of all sections.
  void await_senders(Station::Seat& seat) noexcept {
    if (seat.is_to_wait.load(std::memory_order_relaxed)) [[unlikely]]
      station_->await_senders(seat);
  }
  void send(Thread& thread, const Client& own, Section section);
  [[gnu::noinline]] void finish_deeper(Station::Seat& seat, Known& habit, Hardware::Cell& entry,
                                       PostedWork work);
  Client client(const Depth& depth) {
    const Thread& t = depth.thread();
    if (t.depth == 1 && t.last_lock == number_ever()) [[likely]]
      return last_client(t);
    return find_client(depth);
  }
  /// Of a thread that used this lock last.
  static Client last_client(const Thread& t) {
    return {*static_cast<Station::Seat*>(t.last_seat), *static_cast<Known*>(t.last_habit)};
  }
  [[gnu::noinline]] Client find_client(const Depth& depth);
  Station::Seat* pending_seat(unsigned depth) const;
  void await_seats(unsigned depth);
  void execute_nested(Section section, Station::Seat& seat, Known& habit);
  void prepare_to_send();
  Station* learn(Thread& thread, Station::Seat& seat, Known& habit);
  static bool tell(Station::Seat& seat, Known& habit);
  [[gnu::noinline]] static void tell_pace(Station::Seat& seat, Known& habit);
  static void tell_at_times(Station::Seat& seat, Known& habit) {
    if (habit.delegated.value() % Station::depth == 0) tell(seat, habit);
  }
  const char* way(const Counters& c, bool has_server) const;

  std::shared_ptr<Station> station_;
  const bool always_delegates_;
  std::atomic<bool> combines_{true};
  Auto auto_;
  PerSeat<Known> habits_;
};

/// Executes a section of any lock: by the short way where the calling thread is quick, else as
/// `otherwise` does.
inline int execute_section(AnyLock& lock, Section section, AnyLock::Execute otherwise) {
  if (this_thread.quick != lock.number_ever()) [[unlikely]]
    return otherwise(lock, section);
  const AnyLock::ShortWay way = lock.short_way();
  return way == Delegated::go_short_way ? Delegated::go_short_way(lock, section, otherwise)
                                        : way(lock, section, otherwise);
}

}  // namespace muster::delegation
