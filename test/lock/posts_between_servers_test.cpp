// SPDX-License-Identifier: BSD-3-Clause
// What sections of one server post to the locks of others that are slow.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "delegation/condition.hpp"
#include "delegation/delegated.hpp"
#include "with_server.hpp"

namespace muster::test {
namespace {

using delegation::AnyLock;
using delegation::make_lock;
using delegation::Station;

class PostsBetweenServers : public WithServer {
 protected:
  void SetUp() override {
    WithServer::SetUp();
    slow_station_->start({});
  }
  std::unique_ptr<AnyLock> make_slow() const {
    return make_lock({.kind = "rcl", .station = slow_station_});
  }

  std::shared_ptr<Station> slow_station_ = std::make_shared<Station>();
};

// Each thread that waits to send them keeps what it has executed; clients wait then, and nobody
// else does.
TEST_F(PostsBetweenServers, KeepSoManyThreadsAtMost) {
  const auto lock = make();
  const auto slow = make_slow();
  std::atomic<unsigned> sent{0};
  auto count = [&] { ++sent; };
  constexpr unsigned posts = 20;
  auto piles_up = [&] {
    for (unsigned i = 0; i < posts; ++i) slow->post(section_of(count));
  };
  constexpr unsigned clients = 3;
  constexpr unsigned senders = 64;             // as documented
  constexpr unsigned sections = 16 * senders;  // so many in one go, if they are posted
  for (const bool posted : {false, true}) {
    sent = 0;
    std::atomic<unsigned> done{0};
    BlockedSection blocked(*slow);
    std::thread all([&] {
      run_threads(clients, [&](unsigned) {
        for (unsigned i = 0; i < sections; ++i, ++done) {
          if (posted) {
            lock->post(section_of(piles_up));
          } else {
            execute(*lock, piles_up);
          }
        }
      });
    });
    for (unsigned before = 0; done == 0 || done != before; sleep_ms(50)) before = done;
    EXPECT_LT(done, clients * sections) << posted;
    for (int i = 0; i < 100; ++i) execute_section(*lock, nothing);
    // Who has waited for a second goes on: some more, where all is slow.
    EXPECT_LE(station_->counters().threads, 2 * senders) << station_->describe();
    EXPECT_NE(std::string::npos, station_->describe().find("threads that send")) << posted;
    blocked.end();
    all.join();
    while (sent < clients * sections * posts) sched_yield();
    EXPECT_EQ(clients * sections * posts, sent);
  }
}

// Whichever threads send them.
TEST_F(PostsBetweenServers, OfOneSectionKeepTheirOrder) {
  const auto lock = make();
  const auto slow = make_slow();
  const unsigned times = rounds(50);
  std::vector<std::pair<unsigned, unsigned>> order;  // `slow` protects it
  struct Posted {
    std::vector<std::pair<unsigned, unsigned>>* order;
    unsigned section;
    unsigned number;
    void operator()() const { order->emplace_back(section, number); }
  };
  constexpr unsigned posts = 40;
  std::vector<Posted> posted;
  for (unsigned i = 0; i < times; ++i) {
    for (unsigned k = 0; k < posts; ++k) posted.push_back({&order, i, k});
  }
  for (unsigned i = 0; i < times; ++i) {
    execute(*lock, [&] {
      for (unsigned k = 0; k < posts; ++k) slow->post(section_of(posted[i * posts + k]));
    });
  }
  std::size_t executed = 0;
  while (executed < posted.size()) execute(*slow, [&] { executed = order.size(); });
  std::vector<unsigned> next(times);
  for (const auto& [section, number] : order) ASSERT_EQ(next[section]++, number) << section;
}

// Where no server runs a post is executed by who sends it.
TEST_F(PostsBetweenServers, AreExecutedWithoutAServerWhileOtherLocksAreServed) {
  const auto lock = make();
  const auto other = make();
  const auto at_once = make_lock({.kind = "auto", .station = std::make_shared<Station>()});
  std::atomic<bool> is_inside{false};
  std::atomic<bool> may_go{false};
  auto blocks = [&] {
    is_inside = true;
    while (!may_go) sleep_ms(1);
  };
  execute(*lock, [&] { at_once->post(section_of(blocks)); });
  while (!is_inside) sched_yield();
  for (int i = 0; i < 100; ++i) {
    execute_section(*other, nothing);
    execute_section(*lock, nothing);
  }
  may_go = true;
  execute_section(*at_once, nothing);  // after the one that blocks, which uses these
}

// Those of other sections, which may be what they wait for.
TEST_F(PostsBetweenServers, ThatWaitForAConditionDoNotKeepBackOthers) {
  const auto lock = make();
  const auto at_once = make_lock({.kind = "auto", .station = std::make_shared<Station>()});
  delegation::Condition changed(*at_once);
  bool has_changed = false;  // `at_once` protects it
  std::atomic<unsigned> done{0};
  auto waits = [&] {
    while (!has_changed) changed.wait(WaitPolicy::forever);
    ++done;
  };
  auto changes = [&] {
    has_changed = true;
    changed.signal(true);
  };
  for (unsigned turn = 0; turn < rounds(10); ++turn) {
    done = 0;
    execute(*at_once, [&] { has_changed = false; });
    for (int i = 0; i < 2; ++i) execute(*lock, [&] { at_once->post(section_of(waits)); });
    execute(*lock, [&] { at_once->post(section_of(changes)); });
    while (done < 2) sched_yield();
  }
}

// Nor those of a section that the server finds next to it.
TEST_F(PostsBetweenServers, OfTwoSectionsFoundTogetherMayWaitForEachOther) {
  const auto lock = make();
  const auto at_once = make_lock({.kind = "auto", .station = std::make_shared<Station>()});
  delegation::Condition changed(*at_once);
  bool has_changed = false;
  std::atomic<bool> done{false};
  auto waits = [&] {
    while (!has_changed) changed.wait(WaitPolicy::forever);
    done = true;
  };
  auto changes = [&] {
    has_changed = true;
    changed.signal(true);
  };
  auto takes_long = [] { sleep_ms(2); };
  auto posts_waits = [&] { at_once->post(section_of(waits)); };
  auto posts_change = [&] { at_once->post(section_of(changes)); };
  lock->post(section_of(takes_long));
  lock->post(section_of(posts_waits));
  lock->post(section_of(posts_change));
  while (!done) sched_yield();
}

// What such a section posts in turn is sent, too.
TEST_F(PostsBetweenServers, MakeOthers) {
  const auto lock = make();
  const auto slow = make_slow();
  const auto at_once = make_lock({.kind = "auto", .station = std::make_shared<Station>()});
  std::atomic<unsigned> last{0};
  auto third = [&] { ++last; };
  auto second = [&] {
    for (int i = 0; i < 2; ++i) slow->post(section_of(third));
  };
  auto first = [&] {
    for (int i = 0; i < 2; ++i) at_once->post(section_of(second));
  };
  const unsigned times = rounds(50);
  run_threads(3, [&](unsigned) {
    for (unsigned i = 0; i < times; ++i) execute(*lock, first);
  });
  while (last < 3 * times * 4) sched_yield();
  EXPECT_EQ(3 * times * 4, last);
}

TEST_F(PostsBetweenServers, AreSentBeforeTheirServerEnds) {
  const auto lock = make();
  const auto slow = make_slow();
  std::atomic<unsigned> executed{0};
  auto count = [&] { ++executed; };
  auto posts = [&] {
    for (int i = 0; i < 100; ++i) slow->post(section_of(count));
  };
  for (unsigned turn = 1; turn <= rounds(10); ++turn) {
    {
      BlockedSection blocked(*slow);
      lock->post(section_of(posts));
      std::thread lets_go([&] {
        while (station_->has_server()) sched_yield();
        sleep_ms(1);
        blocked.let_go();
      });
      station_->stop();
      lets_go.join();
    }
    execute_section(*slow, nothing);
    while (executed < 100 * turn) sched_yield();
    ASSERT_EQ(100 * turn, executed);
    station_->start({});
  }
}

}  // namespace
}  // namespace muster::test
