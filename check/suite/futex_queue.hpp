// SPDX-License-Identifier: BSD-3-Clause
// The kernel's queue of those that sleep on a cell. What it does it does under a lock. A wake-up
// goes to anybody who sleeps; the kernel's own order is one of these.
#pragma once

#include <string>
#include <vector>

#include "check/program.hpp"

namespace muster::check {

class FutexQueue {
 public:
  FutexQueue() = default;
  FutexQueue(Memory& memory, Location cell, unsigned participants) {
    const auto word = [&](const std::string& what) {
      return memory.add(0, what + " of " + memory.name(cell));
    };
    next_ = word("ticket");
    serving_ = word("ticket served");
    for (unsigned p = 0; p < participants; ++p) {
      sleeping_.push_back(word("sleeper " + std::to_string(p)));
      wakeups_.push_back(word("wake-ups " + std::to_string(p)));
    }
  }

  /// Unless `changed()`: the participant is asleep, until its next wake-up.
  template <class Changed>
  bool fall_asleep(Thread& thread, Changed changed, Site site) const {
    const Word ticket = lock(thread, site);
    const bool stays = changed();
    if (!stays) thread.write(sleeping_[thread.id()], 1, site);
    unlock(thread, ticket, site);
    return !stays;
  }
  /// It gets up by itself. False: somebody has just woken it.
  bool get_up(Thread& thread, Site site) const {
    const Word ticket = lock(thread, site);
    const bool still = thread.read(sleeping_[thread.id()], site) != 0;
    if (still) thread.write(sleeping_[thread.id()], 0, site);
    unlock(thread, ticket, site);
    return still;
  }
  /// How often the participant was woken.
  Location wakeups(unsigned participant) const { return wakeups_[participant]; }
  void wake_one(Thread& thread, Site site) const {
    const Word ticket = lock(thread, site);
    std::vector<unsigned> asleep;
    for (unsigned id = 0; id < sleeping_.size(); ++id) {
      if (thread.read(sleeping_[id], site) != 0) asleep.push_back(id);
    }
    if (!asleep.empty()) {
      const auto many = static_cast<Word>(asleep.size());
      const unsigned woken = asleep[many > 1 ? thread.choose(many, site) : 0];
      thread.write(sleeping_[woken], 0, site);
      thread.fetch_add(wakeups_[woken], 1, Ordering::release, site);
    }
    unlock(thread, ticket, site);
  }

 private:
  Word lock(Thread& thread, Site site) const {
    const Word ticket = thread.fetch_add(next_, 1, Ordering::relaxed, site);
    thread.await(serving_, Predicate(equals(ticket)), Ordering::acquire, site);
    return ticket;
  }
  void unlock(Thread& thread, Word ticket, Site site) const {
    thread.store(serving_, ticket + 1, Ordering::release, site);
  }

  Location next_{};
  Location serving_{};
  std::vector<Location> sleeping_;
  std::vector<Location> wakeups_;
};

}  // namespace muster::check
