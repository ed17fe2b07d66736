// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "delegation/condition.hpp"
#include "delegation/cpus.hpp"
#include "delegation/delegated.hpp"
#include "delegation/station.hpp"
#include "lock/registry.hpp"
#include "trial.hpp"

namespace muster::test {
namespace {

using delegation::AnyLock;
using delegation::make_lock;

class EveryLock : public testing::TestWithParam<std::string_view> {
 protected:
  void TearDown() override {
    for (const auto style : {locks::Style::server, locks::Style::adaptive}) {
      delegation::default_station(style)->stop();
    }
  }
  std::unique_ptr<AnyLock> make() const {
    return make_lock({.kind = std::string(GetParam()), .station = nullptr});
  }
  bool is_fair() const { return locks::traits_of(GetParam()).fair; }
  bool has_server() const { return locks::traits_of(GetParam()).style == locks::Style::server; }
};

TEST_P(EveryLock, ExcludesAndExecutesOnce) {
  for (const unsigned clients : {1U, 2U, 3U, 5U}) {
    const auto lock = make();
    // Hundreds of millions in `make soak`.
    std::uint64_t sections = rounds(100'000) * (soak_factor() > 1 ? 4U : 1U);
    // Fair locks hand over to whoever is next, running or not: a context switch a section, or two.
    const bool switches = is_fair() && clients + (has_server() ? 1 : 0) >= allowed_cpus().size();
    if (switches) sections /= has_server() ? 20 : 10;
    EXPECT_EQ(
        "", run_lock_trial(*lock, {.seed = case_seed(), .clients = clients, .sections = sections}))
        << clients << " clients; " << replay_command();
  }
}

/// While it lives, the calling thread and those that it makes have at most two of its CPUs.
class OnTwoCpus {
 public:
  OnTwoCpus() {
    std::vector<unsigned> cpus = allowed_cpus();
    if (cpus.size() > 2) cpus.resize(2);
    for (const unsigned cpu : cpus) cpus_.add(cpu);
    EXPECT_EQ(0, delegation::bind_thread(pthread_self(), cpus_));
  }
  ~OnTwoCpus() { EXPECT_EQ(0, delegation::bind_thread(pthread_self(), before_)); }
  OnTwoCpus(const OnTwoCpus&) = delete;
  OnTwoCpus& operator=(const OnTwoCpus&) = delete;
  const PuSet& cpus() const { return cpus_; }

 private:
  const PuSet before_ = delegation::binding_of(0);
  PuSet cpus_;
};

TEST_P(EveryLock, ManyThreadsOnFewCpus) {
  const OnTwoCpus few;
  const auto lock = make();
  if (has_server() && lock->station() != nullptr) {
    delegation::default_station(locks::Style::server)->place({.cpus = few.cpus()});
  }
  if (!under_tsan && !emulated) {  // they have threads of their own
    EXPECT_EQ(few.cpus(), delegation::binding_of_process()) << "a server's thread is elsewhere";
  }
  EXPECT_EQ("", run_lock_trial(*lock, {.seed = case_seed(),
                                       .clients = emulated ? 16U : 64U,
                                       .sections = is_fair() ? rounds(40) : rounds(1000),
                                       .yields = true}))
      << replay_command();
}

/// The lowest that no thread has.
unsigned free_seat() {
  unsigned seat = 0;
  run_threads(1, [&](unsigned) { seat = delegation::first_seat(); });
  return seat;
}

TEST_P(EveryLock, ThreadsComeAndGo) {
  const auto lock = make();
  const unsigned seat_before = free_seat();
  std::uint64_t count = 0;
  const unsigned generations = rounds(64);
  for (unsigned generation = 0; generation < generations; ++generation) {
    run_threads(4, [&](unsigned) {
      for (int i = 0; i < 5; ++i) execute(*lock, [&] { ++count; });
    });
  }
  EXPECT_EQ(generations * 20U, count);
  EXPECT_EQ(free_seat(), seat_before) << "seats are not given back";
}

// Each level that doubled what the next one costs would never end here.
TEST_P(EveryLock, NestsDeep) {
  std::unique_ptr<AnyLock> locks[64];
  for (auto& lock : locks) lock = make();
  unsigned count = 0;
  unsigned refusals = 0;
  run_threads(2, [&](unsigned) {
    std::size_t depth = 0;
    std::function<void()> deeper = [&] {
      if (depth != std::size(locks)) return execute(*locks[depth++], deeper);
      ++count;
      for (const auto& lock : locks) {
        const std::string text = refusal([&] { execute(*lock, deeper); });  // of fibres, too
        if (text.find("wait for itself") != text.npos && text.find("fibre") != text.npos) {
          ++refusals;
        }
      }
    };
    deeper();
  });
  EXPECT_EQ(2U, count);
  EXPECT_EQ(2 * std::size(locks), refusals) << "sections do not know what they are in";
}

// What a thread knows of the lock that it used last is not taken for another's.
TEST_P(EveryLock, TakesTurnsWithOthers) {
  const std::unique_ptr<AnyLock> locks[] = {
      make(), make(), make_lock({.kind = "auto", .station = nullptr}),
      make_lock({.kind = "auto", .station = std::make_shared<delegation::Station>()}),
      make_lock({.kind = "cas-spin", .station = nullptr})};
  std::uint64_t counts[std::size(locks)] = {};
  std::atomic<std::uint64_t> executed[std::size(locks)] = {};
  const unsigned sections = is_fair() ? rounds(400) : rounds(4000);
  FirstFailure failure{};
  run_threads(3, [&](unsigned client) {
    Random random(case_seed() + client);
    unsigned at = 0;
    for (unsigned i = 0; i < sections; ++i) {
      if (random.one_in(3)) at = static_cast<unsigned>(random.below(std::size(locks)));
      const unsigned inner = static_cast<unsigned>(random.below(std::size(locks)));
      // In one order only: sections that wait for each other would wait for ever.
      const bool nests = inner > at && i % 2 == 0;
      execute(*locks[at], [&] {
        ++counts[at];
        if (nests) execute(*locks[inner], [&] { ++counts[inner]; });
        if (!delegation::Inside::of(locks[at].get())) failure.report("forgotten after another one");
      });
      if (delegation::Inside::any()) failure.report("not forgotten");
      ++executed[at];
      if (nests) ++executed[inner];
    }
  });
  for (unsigned i = 0; i < std::size(locks); ++i) EXPECT_EQ(executed[i], counts[i]) << i;
  EXPECT_EQ("", failure.text());
}

// A server goes to sleep some time after its last request.
TEST_P(EveryLock, TakesNoTimeWhileNobodyUsesIt) {
  const auto lock = make();
  unsigned count = 0;
  for (unsigned turn = 1; turn <= 3; ++turn) {
    execute(*lock, [&] { ++count; });
    EXPECT_EQ(turn, count);
    const timespec idle{0, 50'000'000};
    std::int64_t spent_ns = 0;
    do {
      const std::int64_t before_ns = process_cpu_ns();
      nanosleep(&idle, nullptr);
      spent_ns = process_cpu_ns() - before_ns;
    } while (spent_ns > idle.tv_nsec / 5);  // for ever, if a thread of the lock goes on polling
  }
}

TEST_P(EveryLock, PostsFromInsideComeAfter) {
  const auto lock = make();
  std::vector<int> order;
  auto later = [&] { order.push_back(2); };
  execute(*lock, [&] {
    lock->post(section_of(later));
    order.push_back(1);
  });
  execute_section(*lock, nothing);
  EXPECT_EQ((std::vector<int>{1, 2}), order);
}

TEST_P(EveryLock, ConditionsOrARefusal) {
  const auto lock = make();
  const locks::Style style = locks::traits_of(GetParam()).style;
  if (style == locks::Style::combining) {
    EXPECT_THROW(delegation::Condition{*lock}, Error);
    return;
  }
  delegation::Condition filled(*lock);
  delegation::Condition emptied(*lock);
  const unsigned items = is_fair() ? rounds(200) : rounds(2000);
  unsigned level = 0;
  std::uint64_t taken = 0;
  run_threads(4, [&](unsigned client) {
    auto consume = [&] {
      while (level == 0) filled.wait();
      --level;
      ++taken;
      emptied.signal(true);
    };
    for (unsigned i = 0; i < items; ++i) {
      if (client % 2 == 0) {
        execute(*lock, [&] {
          while (level == 2) emptied.wait();
          ++level;
          filled.signal();
        });
      } else {
        execute(*lock, consume);
      }
    }
  });
  EXPECT_EQ(2 * items, taken);
  EXPECT_EQ(0U, level);
}

// One thread takes all seats and uses the last one; there is none for another.
TEST_P(EveryLock, HasRoomForAsManyThreadsAsThereCanBe) {
  const auto lock = make_lock(
      {.kind = std::string(GetParam()), .station = std::make_shared<delegation::Station>()});
  unsigned count = 0;
  auto increment = [&] { ++count; };
  std::string refused;
  run_threads(1, [&](unsigned) {
    EXPECT_THROW(delegation::take_seat(delegation::seats_max), Error);
    auto& depth = delegation::this_thread.depth;
    depth = delegation::this_thread.seats - 1;
    execute(*lock, increment);
    depth = 0;
    run_threads(1, [&](unsigned) { refused = refusal([&] { execute(*lock, increment); }); });
  });
  const bool needs_a_seat = GetParam() != "pthread-mutex" && GetParam() != "robust";
  EXPECT_EQ(needs_a_seat ? 1U : 2U, count);
  EXPECT_EQ(needs_a_seat, refused.find("threads use locks at once") != std::string::npos)
      << refused;
}

TEST_P(EveryLock, ForkedChildIsRefusedItsParentsAndHasItsOwn) {
  if (!children_make_threads) GTEST_SKIP() << "no threads' child makes threads here";
  const auto served = make_lock({.kind = "rcl", .station = nullptr});
  const auto parents = make();
  execute_section(*served, nothing);
  execute_section(*parents, nothing);
  ASSERT_TRUE(served->station()->has_server());
  Child child([&] {
    const std::string refused = refusal([&] { execute_section(*parents, nothing); });
    if (refused.find("before fork()") == std::string::npos) _exit(4);
    unsigned count = 0;
    auto increment = [&] { ++count; };
    {
      const auto lock = make();
      run_threads(2, [&](unsigned) {
        for (int i = 0; i < 20; ++i) execute(*lock, increment);
        lock->post(section_of(increment));
      });
    }
    _exit(count == 42 ? 0 : 3);
  });
  EXPECT_EQ("", child.wait());
}

std::string test_name(std::string_view kind) {
  std::string name(kind);
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, EveryLock, testing::ValuesIn(locks::lock_names()),
                         [](const testing::TestParamInfo<std::string_view>& at) {
                           return test_name(at.param);
                         });

struct Million {
  const char* kind;
  bool with_server;
};

class Millions : public testing::TestWithParam<Million> {};

// Of locks that carry sections to whoever executes them. Posted where that is a server: who waits
// for each answer has a context switch for it where there are fewer CPUs than threads.
TEST_P(Millions, EachIsExecutedOnce) {
  const auto [kind, with_server] = GetParam();
  const HangGuard guard(120, kind);
  const auto station = std::make_shared<delegation::Station>();
  if (with_server) station->start({});
  const auto lock = make_lock({.kind = kind, .station = station});
  const std::uint64_t each = rounds(500'000) * (soak_factor() > 1 ? 20U : 1U);
  EXPECT_EQ("", run_lock_trial(*lock, {.seed = case_seed(),
                                       .clients = 2,
                                       .sections = each,
                                       .posts = with_server ? 63U : 0U}))
      << replay_command();
  if (with_server) {
    EXPECT_GE(station->counters().executed, kind == std::string_view("rcl") ? each : 1U)
        << station->describe();
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Millions,
                         testing::Values(Million{"rcl", true}, Million{"auto", false},
                                         Million{"auto", true}, Million{"oyama", false},
                                         Million{"flat-combining", false},
                                         Million{"cc-synch", false}, Million{"dsm-synch", false},
                                         Million{"h-synch", false}),
                         [](const testing::TestParamInfo<Million>& at) {
                           return test_name(at.param.kind) +
                                  (at.param.with_server ? "_and_server" : "");
                         });

// The trial is worth nothing if it does not notice these.
TEST(LockTrial, NoticesNoLock) {
  const auto broken = [](delegation::Section section) { section.function(section.argument); };
  std::string found;
  for (int attempt = 0; attempt < 50 && found.empty() && !under_tsan; ++attempt) {
    found = run_lock_trial(broken, {.seed = case_seed(), .clients = 4, .sections = 50'000});
  }
  if (!under_tsan) {
    EXPECT_NE("", found);
  }
}

TEST(LockTrial, NoticesTwiceNeverAndAnothersResult) {
  const auto lock = make_lock({.kind = "cas-spin", .station = nullptr});
  std::atomic<unsigned> turn{0};
  const LockTrial trial{.seed = case_seed(), .clients = 2, .sections = 2000};
  EXPECT_NE("", run_lock_trial(
                    [&](delegation::Section section) {
                      execute_section(*lock, section);
                      if (++turn % 1000 == 0) execute_section(*lock, section);
                    },
                    trial));
  EXPECT_NE("", run_lock_trial(
                    [&](delegation::Section section) {
                      if (++turn % 1000 != 0) execute_section(*lock, section);
                    },
                    trial));
  EXPECT_NE("", run_lock_trial(
                    [&](delegation::Section section) {
                      execute_section(*lock, section);
                      if (++turn % 1000 == 0) ++static_cast<Numbered*>(section.argument)->result;
                    },
                    trial));
}

}  // namespace
}  // namespace muster::test
