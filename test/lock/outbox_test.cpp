// SPDX-License-Identifier: BSD-3-Clause
// What sections of one server post to the locks of others that are slow.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
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
  /// By so many threads at once, in all.
  static void execute_by_all(AnyLock& lock, unsigned threads, unsigned times,
                             delegation::Section section) {
    run_threads(threads, [&](unsigned) {
      for (unsigned i = 0; i < times; ++i) execute_section(lock, section);
    });
  }

  std::shared_ptr<Station> slow_station_ = std::make_shared<Station>();
};

TEST_F(PostsBetweenServers, KeepOneThreadForEachThatIsSlow) {
  const auto lock = make();
  const auto slow = make_slow();
  const auto third_station = std::make_shared<Station>();  // without a server
  const auto taken = make_lock({.kind = "auto", .station = third_station});
  const auto free = make("auto");
  std::atomic<unsigned> by_slow{0};
  std::atomic<unsigned> by_taken{0};
  std::atomic<unsigned> by_free{0};
  auto count_slow = [&] { ++by_slow; };
  auto count_taken = [&] { ++by_taken; };
  auto count_free = [&] { ++by_free; };
  auto posts = [&] {
    for (int i = 0; i < 3; ++i) slow->post(section_of(count_slow));
    taken->post(section_of(count_taken));
    free->post(section_of(count_free));
  };
  constexpr unsigned clients = 3;
  constexpr unsigned times = 200;  // four posts of each stay: fewer than clients wait for
  constexpr unsigned all = clients * times;
  {
    BlockedSection slows(*slow);
    BlockedSection takes(*taken);
    execute_by_all(*lock, clients, times, section_of(posts));
    while (by_free < all) sched_yield();  // those do not wait for the others
    EXPECT_EQ(0U, by_slow);
    EXPECT_EQ(0U, by_taken);
    // One for each of the two, one that serves, and some that had waited before these did.
    EXPECT_LE(station_->counters().threads, 8U) << station_->describe();
    EXPECT_NE(std::string::npos, station_->describe().find("wait to be sent"));
  }
  while (by_slow < 3 * all || by_taken < all) sched_yield();
  EXPECT_EQ(3 * all, by_slow);
  EXPECT_EQ(all, by_taken);
  EXPECT_EQ(all, by_free);
}

// In the order in which they were made, whichever threads send them.
TEST_F(PostsBetweenServers, OfOneSectionKeepTheirOrder) {
  const auto lock = make();
  const auto slow = make_slow();
  const unsigned times = rounds(200);
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
    auto section = [&] {
      for (unsigned k = 0; k < posts; ++k) slow->post(section_of(posted[i * posts + k]));
    };
    execute_section(*lock, section_of(section));
  }
  std::size_t executed = 0;
  auto count = [&] { executed = order.size(); };
  while (executed < posted.size()) execute_section(*slow, section_of(count));
  std::vector<unsigned> next(times);
  for (const auto& [section, number] : order) ASSERT_EQ(next[section]++, number) << section;
}

// Those that go on posting do, too, and nobody else.
TEST_F(PostsBetweenServers, ClientsWaitWhoseSectionsPostMoreThanCanBeSent) {
  const auto lock = make();
  const auto slow = make_slow();
  std::atomic<unsigned> sent{0};
  auto count = [&] { ++sent; };
  auto nothing = [] {};
  constexpr unsigned posts = 500;
  constexpr unsigned sections = 60;
  // As documented, and what is on its way: sixteen outstanding, sixteen executed in one go.
  constexpr unsigned most = 4096 / posts + 1 + 2 * 16 + 1;
  auto piles_up = [&] {
    for (unsigned i = 0; i < posts; ++i) slow->post(section_of(count));
  };
  for (const bool posted : {false, true}) {
    sent = 0;
    std::atomic<unsigned> done{0};
    BlockedSection blocked(*slow);
    std::thread client([&] {
      for (; done < sections; ++done) {
        if (posted) {
          lock->post(section_of(piles_up));
        } else {
          execute_section(*lock, section_of(piles_up));
        }
      }
    });
    for (unsigned before = 0; done == 0 || done != before; sleep_ms(20)) before = done;
    EXPECT_LE(done, most) << (posted ? "posted" : "executed");
    for (int i = 0; i < 100; ++i) execute_section(*lock, section_of(nothing));
    EXPECT_LE(done, most);
    blocked.end();
    client.join();
    while (sent < sections * posts) sched_yield();
    EXPECT_EQ(sections * posts, sent);
  }
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
  auto posts = [&] { at_once->post(section_of(blocks)); };
  auto nothing = [] {};
  execute_section(*lock, section_of(posts));
  while (!is_inside) sched_yield();
  for (int i = 0; i < 100; ++i) {
    execute_section(*other, section_of(nothing));
    execute_section(*lock, section_of(nothing));
  }
  may_go = true;
}

// The others may be what it waits for; so may those that are sent while the server ends.
TEST_F(PostsBetweenServers, ThatWaitForAConditionDoNotKeepBackOthers) {
  const auto lock = make();
  const auto at_once = make_lock({.kind = "auto", .station = std::make_shared<Station>()});
  delegation::Condition changed(*at_once);
  bool has_changed = false;  // `at_once` protects it
  std::atomic<unsigned> waiting{0};
  std::atomic<unsigned> done{0};
  auto waits = [&] {
    ++waiting;
    while (!has_changed) changed.wait(WaitPolicy::forever);
    ++done;
  };
  auto changes = [&] {
    has_changed = true;
    changed.broadcast();
  };
  auto posts_waits = [&] { at_once->post(section_of(waits)); };
  auto posts_change = [&] { at_once->post(section_of(changes)); };
  auto posts_both = [&] {
    posts_waits();
    posts_waits();
    posts_change();
  };
  auto begins = [&] {
    has_changed = false;
    waiting = 0;
    done = 0;
  };
  for (unsigned turn = 0; turn < rounds(40); ++turn) {
    execute_section(*at_once, section_of(begins));
    if (turn % 2 == 0) {
      for (unsigned i = 0; i < 2; ++i) execute_section(*lock, section_of(posts_waits));
      while (waiting < 2) sched_yield();
      execute_section(*lock, section_of(posts_change));
    } else {
      execute_section(*lock, section_of(posts_both));
      station_->stop();
      EXPECT_EQ(2U, done);
      station_->start({});
    }
    while (done < 2) sched_yield();
  }
}

// A server that sleeps is woken to send, and then its watchdog looks often.
TEST_F(PostsBetweenServers, AreSeenToBlockByAServerThatHasSlept) {
  const auto lock = make();
  const auto other = make();
  const auto slow = make_slow();
  const auto at_once = make_lock({.kind = "auto", .station = std::make_shared<Station>()});
  auto nothing = [] {};
  std::int64_t shortest_ns = std::numeric_limits<std::int64_t>::max();
  for (int turn = 0; turn < 3; ++turn) {
    BlockedSection slows(*slow);
    std::atomic<bool> is_inside{false};
    std::atomic<bool> is_sent{false};
    std::atomic<bool> may_post{false};
    std::atomic<bool> may_go{false};
    auto blocks = [&] {
      is_sent = true;
      while (!may_go) sleep_ms(1);
    };
    auto posts = [&] {
      is_inside = true;
      while (!may_post) sleep_ms(1);
      for (int i = 0; i < 40; ++i) slow->post(section_of(nothing));  // its thread waits there
      at_once->post(section_of(blocks));
    };
    std::thread client([&] { execute_section(*lock, section_of(posts)); });
    while (!is_inside) sched_yield();
    sleep_ms(50);  // a spare has taken over by now, and sleeps
    may_post = true;
    while (!is_sent) sched_yield();
    const std::int64_t before_ns = now_ns();
    execute_section(*other, section_of(nothing));
    shortest_ns = std::min(shortest_ns, now_ns() - before_ns);
    may_go = true;
    client.join();
    slows.end();
    while (station_->describe().find("wait to be sent") != std::string::npos) sched_yield();
  }
  EXPECT_LT(shortest_ns, 400'000'000);  // it looks each 500 ms while it knows of a sleeping server
}

// What such a section posts in turn is sent, too, while those before it are.
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
  const unsigned times = rounds(200);
  execute_by_all(*lock, 3, times, section_of(first));
  while (last < 3 * times * 4) sched_yield();
  EXPECT_EQ(3 * times * 4, last);
}

TEST_F(PostsBetweenServers, AreSentBeforeTheirServerEnds) {
  const auto lock = make();
  const auto slow = make_slow();
  std::atomic<unsigned> executed{0};
  auto count = [&] { ++executed; };
  auto nothing = [] {};
  auto posts = [&] {
    for (int i = 0; i < 100; ++i) slow->post(section_of(count));
  };
  for (unsigned turn = 1; turn <= rounds(20); ++turn) {
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
    execute_section(*slow, section_of(nothing));
    while (executed < 100 * turn) sched_yield();
    ASSERT_EQ(100 * turn, executed);
    station_->start({});
  }
}

}  // namespace
}  // namespace muster::test
