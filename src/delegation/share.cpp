// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/share.hpp"

#include <algorithm>
#include <memory>

#include "wait/linger.hpp"

namespace muster::delegation {

void Share::Counted::run(void* counted) {
  struct End {  // also where its thread is cancelled, or in another one
    Share& share;
    Turn around;
    ~End() {
      end(share.turn_);
      share.turn_ = around;
    }
  };
  const auto& self = *static_cast<Counted*>(counted);
  const End at_end{self.share, self.share.turn_};
  self.share.begin(self.whose);
  self.section.function(self.section.argument);
}

void Share::Counted::tell_posted() {
  if (__tsan_release != nullptr) __tsan_release(this);
}

void Share::Counted::run_once(void* counted) {
  if (__tsan_acquire != nullptr) __tsan_acquire(counted);
  const std::unique_ptr<Counted> self(static_cast<Counted*>(counted));
  run(counted);
}

bool Share::await_turn(std::int64_t end_ns) {
  Account& mine = this->mine();
  std::int64_t now = now_ns();
  if (now - mine.seen_ns.exchange(now, std::memory_order_relaxed) > lately_ns) {
    const Others all = others(mine, now);
    const std::int64_t had = mine.used_ns;  // an executor may add to it meanwhile
    if (all.count != 0 && had < all.least_ns) mine.used_ns += all.least_ns - had;
  }
  const std::int64_t used = mine.used_ns;
  // All accounts are looked at some times a slice, not at each section.
  if (used - mine.compared_ns < slice_ns_ / 8 || Inside::any()) return true;
  const auto ahead_ns = [&](const Others& all) {
    return all.count == 0 ? 0 : std::max<std::int64_t>(0, used - slice_ns_ - all.least_ns);
  };
  Others all = others(mine, now);
  const std::int64_t until = now + ahead_ns(all) * all.count;
  for (unsigned naps = 0; now < std::min(until, end_ns) && ahead_ns(all) != 0; ++naps) {
    nap(naps, std::min(until - now, end_ns - now));
    now = now_ns();
    mine.seen_ns = now;
    all = others(mine, now);
  }
  if (ahead_ns(all) != 0) {
    if (now < until) return false;
    mine.used_ns += all.least_ns + slice_ns_ - used;  // they could have had as much
  }
  mine.compared_ns = mine.used_ns;
  return true;
}

void Share::end(const Turn& turn) noexcept {
  const std::int64_t now = now_ns();
  const std::int64_t took_ns = now - turn.since_ns;
  turn.whose->used_ns.fetch_add(took_ns, std::memory_order_relaxed);
  turn.whose->took_ns.fetch_add(took_ns, std::memory_order_relaxed);
  turn.whose->seen_ns.store(now, std::memory_order_relaxed);
}

Share::Occupancy Share::occupancy() const {
  Occupancy sum;
  sum.of_ns = now_ns() - since_ns_;
  accounts_.for_each([&](const Account& account) {
    const std::int64_t took_ns = account.took_ns.load(std::memory_order_relaxed);
    if (took_ns == 0) return;
    ++sum.clients;
    sum.all_ns += took_ns;
    sum.most_ns = std::max(sum.most_ns, took_ns);
    sum.least_ns = std::min(sum.least_ns, took_ns);
  });
  return sum;
}

Share::Others Share::others(const Account& mine, std::int64_t now_ns) const {
  Others all;
  accounts_.for_each([&](const Account& account) {
    if (&account == &mine || now_ns - account.seen_ns > lately_ns) return;
    ++all.count;
    all.least_ns = std::min<std::int64_t>(all.least_ns, account.used_ns);
  });
  return all;
}

}  // namespace muster::delegation
