// SPDX-License-Identifier: BSD-3-Clause
// Sections that nobody waits for: their order, and what sections post.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "delegation/condition.hpp"
#include "delegation/delegated.hpp"
#include "with_server.hpp"

namespace muster::test {
namespace {

using delegation::make_lock;
using delegation::Station;

class Posts : public WithServer {};

// A thread that goes from lock to lock finds what it has at each, also what is not executed yet.
TEST_F(Posts, KeepTheirOrderFromLockToLock) {
  const std::unique_ptr<delegation::AnyLock> locks[] = {make("auto"), make("rcl"), make("auto")};
  struct Turn {
    std::atomic<unsigned>* last;
    std::atomic<unsigned>* wrong;
    unsigned number;
    void operator()() const {
      if (last->exchange(number) != number - 1) ++*wrong;
    }
  };
  const unsigned turns = rounds(20'000);
  std::atomic<unsigned> wrong{0};
  run_threads(3, [&](unsigned client) {
    std::atomic<unsigned> last{0};
    std::vector<Turn> sections;
    for (unsigned i = 1; i <= turns; ++i) sections.push_back({&last, &wrong, i});
    for (unsigned i = 0; i < turns; ++i) {
      delegation::AnyLock& lock = *locks[(i + client) % std::size(locks)];
      if (i % 4 < 2) {
        lock.post(section_of(sections[i]));
      } else {
        execute(lock, sections[i]);
      }
    }
    for (const auto& lock : locks) execute_section(*lock, nothing);
    EXPECT_EQ(turns, last);
  });
  EXPECT_EQ(0U, wrong);
  for (const auto& lock : locks) {
    const delegation::Counters counters = lock->counters();
    EXPECT_GE(counters.inlined + counters.delegated, turns);
  }
}

// Also where the client executes its sections the short way, which does not look for each of these.
TEST_F(Posts, ComeAfterTheSectionInOrder) {
  const auto lock = make("auto");
  const auto other = make("rcl");
  std::unique_ptr<delegation::AnyLock> inner;
  std::string order;
  auto first = [&] { order += "2"; };
  auto second = [&] { order += "3"; };
  auto third = [&] { order += "4"; };
  auto others = [&] {
    execute(*inner, [&] { other->post(section_of(third)); });
    order += "1";
  };
  for (const char* const kind : {"ticket", "cc-synch", "pthread-mutex", "auto"}) {
    inner = delegation::make_lock({.kind = kind, .station = nullptr});
    for (int turn = 0; turn < 3; ++turn) {
      order.clear();
      execute(*lock, [&] {
        lock->post(section_of(first));
        lock->post(section_of(second));
        order += "1";
      });
      EXPECT_EQ("123", order) << kind << turn;
      order.clear();
      execute(*lock, others);
      execute_section(*other, nothing);
      EXPECT_EQ("14", order) << kind << turn;
    }
  }
}

// Who has the lock meanwhile may look for what the section has left, and finds nothing.
TEST_F(Posts, OfASectionThatWaitsAfterThemAreSent) {
  const auto lock = make("auto");
  const auto other = make("rcl");
  delegation::Condition changed(*lock);
  bool waits = false;
  bool is_posted_executed = false;
  auto posted = [&] { is_posted_executed = true; };
  auto waiting = [&] {
    other->post(section_of(posted));
    waits = true;
    changed.wait();
  };
  auto section = [&] {
    lock->post(section_of(waiting));
    // Executed there and then, as a part of this section.
    EXPECT_THROW(lock->prepare_wait(), Error);
  };
  for (int turn = 0; turn < 3; ++turn) {
    waits = false;
    is_posted_executed = false;
    execute_section(*lock, nothing);
    std::thread visitor([&] {
      bool may_signal = false;
      for (int later = 0; later < 8; later += may_signal ? 1 : 0) {
        execute(*lock, [&] { may_signal = waits; });
        sched_yield();
      }
      changed.signal();
    });
    execute(*lock, section);
    execute_section(*other, nothing);
    EXPECT_TRUE(is_posted_executed) << turn;
    visitor.join();
  }
}

// They return though nothing is executed yet; the next one waits until there is room.
TEST_F(Posts, SixteenAreOutstandingAtMost) {
  constexpr unsigned most = 16;  // as documented
  for (const char* const kind : {"rcl", "auto"}) {
    SCOPED_TRACE(kind);
    const auto lock = make(kind);
    std::atomic<unsigned> count{0};
    std::atomic<unsigned> returned{0};
    unsigned executed_before_the_last = 0;
    auto increment = [&] { ++count; };
    BlockedSection blocked(*lock);
    std::thread client([&] {
      for (unsigned i = 0; i <= most; ++i) {
        lock->post(section_of(increment));
        if (i == most) executed_before_the_last = count;
        ++returned;
      }
      execute_section(*lock, nothing);
    });
    while (returned < most) sched_yield();
    sleep_ms(20);  // in which another one would return
    EXPECT_EQ(most, returned);
    EXPECT_EQ(0U, count);
    blocked.end();
    client.join();
    EXPECT_EQ(most + 1, returned);
    EXPECT_GE(executed_before_the_last, most / 2);
    EXPECT_EQ(most + 1, count);
  }
}

TEST_F(Posts, AStoppedServerHasExecutedWhatWasPosted) {
  constexpr unsigned posts = 16;
  for (const char* const kind : {"rcl", "auto"}) {
    SCOPED_TRACE(kind);
    const auto lock = make(kind);
    std::atomic<unsigned> count{0};
    unsigned count_at_end = 0;
    auto increment = [&] {
      sleep_ms(1);
      ++count;
    };
    BlockedSection blocked(*lock);
    for (unsigned i = 0; i < posts; ++i) lock->post(section_of(increment));
    std::thread stopper([&] {
      station_->stop();
      count_at_end = count;
    });
    while (station_->has_server()) sched_yield();
    EXPECT_EQ(0U, count) << "all are outstanding when it begins to stop";
    blocked.end();
    stopper.join();
    EXPECT_EQ(posts, count_at_end);
    station_->start({});
  }
}

// A post never waits: what a section posts may need what the section has.
TEST_F(Posts, ASectionPostsMoreThanCanBeOutstanding) {
  const auto a = make("auto");
  const auto b = make();
  constexpr unsigned posts = 100;
  Protected data(1);
  std::vector<Numbered> numbered;
  for (unsigned i = 1; i <= posts; ++i) numbered.push_back({&data, 0, i, 0, 0});
  std::atomic<bool> a_taken{false};
  std::atomic<bool> b_taken{false};
  // B's section waits for A, and A's posts to B.
  std::thread other([&] {
    execute(*b, [&] {
      b_taken = true;
      while (!a_taken) sched_yield();
      execute_section(*a, nothing);
    });
  });
  execute(*a, [&] {
    a_taken = true;
    while (!b_taken) sched_yield();
    for (Numbered& section : numbered) b->post({Numbered::execute, &section});
    EXPECT_EQ(0U, data.count);
  });
  execute_section(*b, nothing);
  other.join();
  EXPECT_STREQ("", data.wrong);
  EXPECT_EQ(posts, data.count);
}

TEST_F(Posts, ASectionThatWaitsIsNotExecutedAgain) {
  for (const auto& at : {std::pair{"auto", true}, {"rcl", true}, {"rcl", false}}) {
    const auto kind = at.first;
    const bool posted = at.second;
    const auto lock = make(kind);
    delegation::Condition condition(*lock);
    unsigned executed = 0;
    bool may_go = false;
    auto waits = [&] {
      ++executed;
      while (!may_go) condition.wait();
    };
    std::thread client([&] {
      if (!posted) return execute(*lock, waits);
      execute(*lock, [&] { lock->post(section_of(waits)); });
    });
    for (int i = 0; i < 200; ++i) execute_section(*lock, nothing);
    sleep_ms(20);
    for (int i = 0; i < 200; ++i) execute_section(*lock, nothing);
    execute(*lock, [&] {
      may_go = true;
      condition.signal(true);
    });
    client.join();
    execute_section(*lock, nothing);
    EXPECT_EQ(1U, executed) << kind << posted;
  }
}

TEST_F(Posts, ALockThatEndsHasExecutedWhatASectionPosted) {
  const auto a = make("auto");
  unsigned count = 0;
  auto increment = [&] { ++count; };
  execute(*a, [&] {
    auto b = make();
    for (int i = 0; i < 40; ++i) b->post(section_of(increment));
    b.reset();
    EXPECT_EQ(40U, count);
  });
  EXPECT_EQ(40U, count);
}

TEST_F(Posts, PostsBeforeAWaitForAConditionAreSent) {
  const auto lock = make("auto");
  const auto other = make("auto");
  delegation::Condition condition(*lock);
  bool may_go = false;
  auto around = [&] {
    execute(*lock, [&] {
      may_go = true;
      condition.signal(true);
    });
  };
  execute(*lock, [&] {
    other->post(section_of(around));  // needs the lock
    while (!may_go) condition.wait();
  });
  EXPECT_TRUE(may_go);
}

// Whatever seats they come from: a section that waits for a condition has a deeper one.
TEST_F(Posts, KeepTheirOrderAroundASectionThatWaits) {
  for (const char* const kind : {"rcl", "auto"}) {
    const auto lock = make_lock({.kind = "auto", .station = std::make_shared<Station>()});
    const auto other = make(kind);
    delegation::Condition condition(*lock);
    Protected data(1);
    const unsigned turns = rounds(40);
    std::vector<Numbered> sections;
    for (unsigned i = 1; i <= 3 * turns; ++i) sections.push_back({&data, 0, i, 0, 100'000});
    for (unsigned i = 0; i < turns; ++i) {
      other->post({Numbered::execute, &sections[3 * i]});
      execute(*lock, [&] {
        other->post({Numbered::execute, &sections[3 * i + 1]});
        condition.wait(1000);
      });
      if (i % 2 == 0) {
        other->post({Numbered::execute, &sections[3 * i + 2]});
      } else {
        execute_section(*other, {Numbered::execute, &sections[3 * i + 2]});
      }
    }
    execute_section(*other, nothing);
    EXPECT_STREQ("", data.wrong) << kind;
    EXPECT_EQ(3 * turns, data.count) << kind;
    // What a section sends while it waits is the other lock's.
    EXPECT_EQ(turns, lock->counters().inlined) << kind;
    const delegation::Counters others = other->counters();
    EXPECT_EQ(3 * turns + 1, others.inlined + others.delegated) << kind;
  }
}

// Of locks of one server: the next section at once would be before what its thread has posted. What
// a section posts that the server executes is the server's, and comes in the end.
TEST_F(Posts, AreExecutedBeforeTheNextSectionOfAnotherLock) {
  const auto lock = make("auto");
  const auto other = make();
  delegation::Condition condition(*lock);
  std::atomic<unsigned> executed{0};
  auto slow = [&] {
    const std::int64_t until_ns = now_ns() + 200'000;
    while (now_ns() < until_ns) sched_yield();
    ++executed;
  };
  const auto caller = std::this_thread::get_id();
  bool is_own = false;
  unsigned seen = 0;
  for (unsigned i = 1; i <= rounds(40); ++i) {
    execute(*lock, [&] {
      is_own = std::this_thread::get_id() == caller;
      other->post(section_of(slow));
      condition.wait(1000);
    });
    execute(*lock, [&] { seen = executed; });
    if (is_own) {
      ASSERT_EQ(i, seen);
    }
  }
  while (executed < rounds(40)) sched_yield();
}

// Also where the thread has tried to take that lock itself meanwhile, in vain.
TEST_F(Posts, AreExecutedBeforeTheNextSectionOfALockThatWasTried) {
  for (const char* const kind : {"rcl", "auto"}) {
    const auto lock = make_lock({.kind = "auto", .station = std::make_shared<Station>()});
    const auto other = make();
    const auto tried = make(kind);
    delegation::Condition condition(*lock);
    std::atomic<bool> goes_on{false};
    std::atomic<unsigned> executed{0};
    auto slow = [&] {
      while (!goes_on) sched_yield();
      sleep_ms(30);  // a spare serves meanwhile
      ++executed;
    };
    execute(*lock, [&] {
      other->post(section_of(slow));
      condition.wait(1000);  // which sends it from a deeper seat
    });
    EXPECT_FALSE(tried->acquire(now_ns())) << kind;
    goes_on = true;
    unsigned seen = 0;
    execute(*tried, [&] { seen = executed; });
    EXPECT_EQ(1U, seen) << kind;
    while (executed == 0) sched_yield();
  }
}

// B, then the outer lock, then C: in this order everybody waits. A post waits for nothing, and who
// has posted to B does not wait there before it comes to C.
TEST_F(Posts, ANestedSectionDoesNotQueueBehindWhatItsThreadHasPosted) {
  const auto other = std::make_shared<Station>();
  other->start({});
  const auto without_server = std::make_shared<Station>();
  for (const char* const kind : {"rcl", "auto", "cc-synch"}) {
    SCOPED_TRACE(kind);
    const bool server_posts = kind == std::string("rcl");
    const auto outer =
        make_lock({.kind = kind, .station = server_posts ? station_ : without_server});
    const auto b = make_lock({.kind = "rcl", .station = other});
    const auto c = make_lock({.kind = "rcl", .station = other});
    std::atomic<bool> b_taken{false};
    std::atomic<bool> outer_taken{false};
    std::atomic<unsigned> count{0};
    std::thread holder([&] {
      execute(*b, [&] {
        b_taken = true;
        while (!outer_taken) sched_yield();
        execute_section(*outer, nothing);
      });
    });
    while (!b_taken) sched_yield();
    auto increment = [&] { ++count; };
    auto posts = [&] { b->post(section_of(increment)); };
    unsigned posted = 0;
    // Each of the server's threads, as far as that can be had.
    for (; server_posts && posted < 12; ++posted) execute(*outer, posts);
    for (; !server_posts && posted < 1; ++posted) posts();
    execute_section(*outer, nothing);  // so that it is at once from now on
    execute(*outer, [&] {
      outer_taken = true;
      execute_section(*c, nothing);
    });
    holder.join();
    while (count < posted) sched_yield();
  }
}

TEST_F(Posts, AreExecutedBeforeASectionWaitsForThem) {
  const auto a = make("auto");
  const auto b = make();
  std::vector<int> order;
  auto first = [&] { order.push_back(1); };
  auto second = [&] { order.push_back(2); };
  std::string refused;
  execute(*a, [&] {
    b->post(section_of(first));
    b->post(section_of(second));
    a->post(section_of(second));
    b->prepare_wait();
    EXPECT_EQ((std::vector<int>{1, 2}), order);
    refused = refusal([&] { a->prepare_wait(); });
    EXPECT_EQ((std::vector<int>{1, 2, 2}), order);
  });
  b->prepare_wait();
  EXPECT_EQ(3U, order.size()) << "once each";
  EXPECT_NE(std::string::npos, refused.find("wait outside")) << refused;
}

// Another one gets its seat when it is executed, else both would wait for each other.
TEST_F(Posts, OfAThreadThatHasEndedMayWaitForTheNextThread) {
  const auto lock = make();
  delegation::Condition condition(*lock);
  bool is_there = false;
  auto waits = [&] {
    while (!is_there) condition.wait();
  };
  std::thread([&] {
    lock->post(section_of(waits));
    sleep_ms(20);  // it waits by then, in a seat of its own
  }).join();
  std::thread([&] {
    execute(*lock, [&] {
      is_there = true;
      condition.signal();
    });
  }).join();
  execute_section(*lock, nothing);
}

// Its thread executes it where the server has left meanwhile: no other client does.
TEST_F(Posts, OfTheThreadThatExecutesThemMayGiveTheLockUp) {
  const auto lock = make();
  const auto other = make();
  const delegation::Condition condition(*lock);
  unsigned own = 0;
  for (unsigned round = 0; own < 5 && round < 1000; ++round) {
    ASSERT_TRUE(lock->acquire(WaitPolicy::forever));
    std::string refused;
    std::atomic<bool> posted{false};
    std::thread client([&] {
      const auto self = std::this_thread::get_id();
      auto leaves = [&] {
        own += std::this_thread::get_id() == self ? 1 : 0;
        auto outside = [&] { execute_section(*other, nothing); };
        refused = refusal([&] { lock->unlocked(section_of(outside)); });
      };
      lock->post(section_of(leaves));
      posted = true;
      execute_section(*lock, nothing);
    });
    while (!posted) sched_yield();
    std::thread stopping([&] { station_->stop(); });
    while (station_->has_server()) sched_yield();
    sleep_ms(1);
    lock->release();
    client.join();
    stopping.join();
    EXPECT_EQ("", refused);
    station_->start({});
  }
  EXPECT_EQ(5U, own) << "the server always was first";
}

// What was kept for a lock comes before what its own section leaves.
TEST_F(Posts, AreExecutedBeforeANestedSectionWaitsForThem) {
  const auto a = make("auto");
  const auto b = make("auto");
  std::vector<int> order;
  auto first = [&] { order.push_back(1); };
  auto second = [&] { order.push_back(2); };
  execute(*a, [&] {
    b->post(section_of(first));
    execute(*b, [&] {
      b->post(section_of(second));
      EXPECT_THROW(b->prepare_wait(), Error);
      order.push_back(3);
    });
  });
  EXPECT_EQ((std::vector<int>{1, 2, 3}), order);
}

}  // namespace
}  // namespace muster::test
