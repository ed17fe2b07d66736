// SPDX-License-Identifier: BSD-3-Clause
// What the C interface has for MPI's sake: others that want the CPUs, scheduling groups, memory
// that the caller hands out, barriers over messages. And the clock of its report, and what that
// counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <muster/muster.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "mpi/clock.h"
#include "mpi/watch.h"
}

namespace {

using testing::HasSubstr;
using testing::Not;

/// What would be chosen on a machine of four cores: explain's text, or the error's.
std::string choice(const muster_options& wanted) {
  muster_options options = wanted;
  options.flags |= MUSTER_SHARED;
  muster_barrier* barrier = nullptr;
  if (muster_barrier_create(&barrier, &options) != MUSTER_OK) return muster_last_error();
  std::array<char, 4096> text{};
  muster_barrier_explain(barrier, "text", text.data(), text.size(), nullptr);
  muster_barrier_destroy(barrier);
  return text.data();
}

muster_options options_for(unsigned participants) {
  muster_options options;
  muster_options_init(&options);
  options.participants = participants;
  return options;
}

unsigned first_cpu() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  unsigned cpu = 0;
  while (CPU_ISSET(cpu, &set) == 0) ++cpu;
  return cpu;
}

TEST(Claims, AreOfParticipantsAndOthersOnTheCpusTheyMayUse) {
  const std::string one = std::to_string(first_cpu());
  const char* const here[] = {one.c_str(), one.c_str()};
  const char* const here_and_anywhere[] = {one.c_str(), ""};
  const struct {
    unsigned participants;
    const char* const* bindings;
    unsigned others;
    const char* const* other_bindings;
    unsigned flags;
    const char* says;
  } cases[] = {
      {2, here, 0, nullptr, 0, "(2 participants on 1 usable CPU)"},
      {2, here_and_anywhere, 0, nullptr, 0, "spins"},  // on two CPUs
      {1, here, 1, here, 0, "1 participant and 1 other on 1 usable CPU"},
      {1, here, 1, here, 0, "waiting       auto: yields"},
      {2, nullptr, 60000, nullptr, 0, "2 participants and 60000 others on"},
      {2, nullptr, 60000, nullptr, 0, "waiting       auto: yields"},
      {2, nullptr, 65537, nullptr, 0, "0 to 65536 are possible"},
      {2, nullptr, 60000, nullptr, MUSTER_APART, "waiting       sleep"},
  };
  for (const auto& [participants, bindings, others, other_bindings, flags, says] : cases) {
    if (bindings == here_and_anywhere && std::thread::hardware_concurrency() < 2) continue;
    muster_options options = options_for(participants);
    options.bindings = bindings;
    options.others = others;
    options.other_bindings = other_bindings;
    options.flags = flags;
    EXPECT_THAT(choice(options), HasSubstr(says));
    if (others == 0) {
      EXPECT_THAT(choice(options), Not(testing::ContainsRegex("[0-9] others? on")));
    }
  }
}

TEST(Claims, WithProgressToMakeNobodySleepsWhoHasACpu) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one CPU";
  muster_options options = options_for(2);
  EXPECT_THAT(choice(options), HasSubstr("where that pays, then sleeps"));
  options.progress = [](void*) { return 0; };
  EXPECT_THAT(choice(options), HasSubstr("where that pays, then yields where that pays"));
}

TEST(SegmentData, HoldsABarrierThatTheCallerPlaces) {
  muster_segment* segment = nullptr;
  ASSERT_EQ(muster_segment_create(&segment, 1 << 16), MUSTER_OK);
  std::size_t bytes = 0;
  void* const data = muster_segment_data(segment, &bytes);
  ASSERT_NE(data, nullptr);
  EXPECT_GE(bytes, std::size_t{1} << 16);
  EXPECT_EQ(muster_segment_data(nullptr, nullptr), nullptr);
  muster_options options = options_for(2);
  options.flags = MUSTER_SHARED;
  options.memory = data;
  options.memory_bytes = bytes;
  muster_barrier* barrier = nullptr;
  ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK) << muster_last_error();
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) muster_barrier_wait(barrier, 1);
  });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(muster_barrier_wait(barrier, 0), MUSTER_OK);
  other.join();
  muster_barrier_destroy(barrier);
  muster_segment_destroy(segment);
}

/// Messages between threads.
class Post {
 public:
  void send(unsigned from, unsigned to) {
    const std::scoped_lock lock(mutex_);
    ++waiting_[{to, from}];
    changed_.notify_all();
  }
  void send_synchronously(unsigned from, unsigned to) {
    send(from, to);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_[{to, from}] == 0; });
  }
  void receive(unsigned from, unsigned to) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_[{to, from}] > 0; });
    --waiting_[{to, from}];
    changed_.notify_all();
  }
  void receive_any(unsigned to) {
    std::unique_lock lock(mutex_);
    const auto of_somebody = [&] {
      return std::find_if(waiting_.begin(), waiting_.end(),
                          [&](const auto& one) { return one.first.first == to && one.second > 0; });
    };
    changed_.wait(lock, [&] { return of_somebody() != waiting_.end(); });
    --of_somebody()->second;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<unsigned, unsigned>, int> waiting_;  // by receiver and sender
};

struct Rank {
  Post* post;
  unsigned rank;
  int synchronous = 0;             // sends
  std::vector<unsigned> of_any{};  // messages asked for at once

  static Rank& of(void* context) { return *static_cast<Rank*>(context); }
  muster_messages messages() {
    return {.send =
                [](void* context, unsigned to) {
                  of(context).post->send(of(context).rank, to);
                  return 0;
                },
            .send_synchronously =
                [](void* context, unsigned to) {
                  ++of(context).synchronous;
                  of(context).post->send_synchronously(of(context).rank, to);
                  return 0;
                },
            .receive =
                [](void* context, unsigned from) {
                  of(context).post->receive(from, of(context).rank);
                  return 0;
                },
            .receive_any =
                [](void* context, unsigned count) {
                  of(context).of_any.push_back(count);
                  for (; count > 0; --count) of(context).post->receive_any(of(context).rank);
                  return 0;
                },
            .context = this};
  }
};

class OverMessages : public testing::TestWithParam<std::string> {};

TEST_P(OverMessages, NobodyLeavesBeforeTheLastArrives) {
  const muster_message_barrier barrier = muster_message_barrier_named(GetParam().c_str());
  ASSERT_NE(barrier, nullptr);
  for (const unsigned ranks : {1U, 2U, 3U, 5U, 8U}) {
    constexpr int episodes = 50;
    Post post;
    std::vector<int> plain(ranks);  // ordered by the messages alone
    std::vector<std::thread> threads;
    for (unsigned rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        Rank self{.post = &post, .rank = rank};
        const muster_messages messages = self.messages();
        for (int i = 1; i <= episodes; ++i) {
          plain[rank] = i;
          EXPECT_EQ(barrier(&messages, rank, ranks), 0);
          for (const int seen : plain) EXPECT_EQ(seen, i);
          EXPECT_EQ(barrier(&messages, rank, ranks), 0);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_P(OverMessages, GivesUpAtTheFirstError) {
  const muster_message_barrier barrier = muster_message_barrier_named(GetParam().c_str());
  const auto fails = [](void*, unsigned) { return 7; };
  const muster_messages broken{.send = fails,
                               .send_synchronously = fails,
                               .receive = fails,
                               .receive_any = fails,
                               .context = nullptr};
  for (unsigned rank = 0; rank < 5; ++rank) EXPECT_EQ(barrier(&broken, rank, 5), 7);
}

// As in Open MPI's coll/base: rank 0 of the linear one takes whoever comes first; the last round of
// the double ring is synchronous, and so is what the ranks beyond a power of two hear last.
TEST_P(OverMessages, WhatIsSynchronousAndWhatIsFromAnybody) {
  constexpr unsigned ranks = 6;
  const muster_message_barrier barrier = muster_message_barrier_named(GetParam().c_str());
  ASSERT_NE(barrier, nullptr);
  Post post;
  std::vector<Rank> all;
  for (unsigned rank = 0; rank < ranks; ++rank) all.push_back({.post = &post, .rank = rank});
  std::vector<std::thread> threads;
  for (Rank& rank : all) {
    threads.emplace_back([&] {
      const muster_messages messages = rank.messages();
      EXPECT_EQ(barrier(&messages, rank.rank, ranks), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Rank& rank : all) {
    const bool rings = GetParam() == "base-double-ring";
    const bool stands_in = GetParam() == "base-recursive-doubling" && rank.rank < 2;
    EXPECT_EQ(rank.synchronous, rings || stands_in ? 1 : 0) << rank.rank;
    const bool hears_all = GetParam() == "base-linear" && rank.rank == 0;
    EXPECT_EQ(rank.of_any, hears_all ? std::vector{ranks - 1} : std::vector<unsigned>())
        << rank.rank;
  }
}

INSTANTIATE_TEST_SUITE_P(All, OverMessages,
                         testing::Values("base-linear", "base-double-ring",
                                         "base-recursive-doubling", "base-bruck", "base-tree"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& letter : name) letter = letter == '-' ? '_' : letter;
                           return name;
                         });

TEST(OverMessagesByName, UnknownOnesAreNull) {
  EXPECT_EQ(muster_message_barrier_named("mcs"), nullptr);
  EXPECT_EQ(muster_message_barrier_named(nullptr), nullptr);
  int count = 0;
  for (const char* const* name = muster_message_barrier_names(); *name != nullptr; ++name) ++count;
  EXPECT_EQ(count, 5);
}

TEST(CounterClock, KeepsTheKernelsTime) {
  const counter_clock clock = counter_clock_made();
#if defined(__x86_64__)
  std::string source;
  std::ifstream("/sys/devices/system/clocksource/clocksource0/current_clocksource") >> source;
  EXPECT_EQ(clock.ns_per_tick != 0, source == "tsc");
#endif
  const std::int64_t from = now_ns();
  for (const int ms : {0, 10, 200}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    const std::int64_t before = now_ns();
    const std::int64_t counted = counter_ns_after(&clock);
    const std::int64_t after = now_ns();
    const std::int64_t off = 1000 + (after - from) / 1000;
    EXPECT_GE(counted, before - off);
    EXPECT_LE(counted, after + off);
  }
}

// One in 64 barriers that take long by themselves does not stand for 64.
TEST(Watch, CountsABarrierThatIsLongItselfOnce) {
  constexpr unsigned ranks = 2;
  struct alignas(128) Line {
    char bytes[128];
  };
  std::vector<Line> memory(watch_bytes(ranks) / sizeof(Line));
  auto* const of = reinterpret_cast<watch*>(memory.data());
  watch_begin(of, ranks);
  std::uint64_t drawn = 64;
  while (!watch_may_count(drawn)) ++drawn;
  std::uint64_t others = drawn;
  while (watch_may_count(others)) ++others;
  for (const std::uint64_t number : {drawn, others}) {
    const std::int64_t counted = watch_own_ns(of, ranks);
    const std::int64_t before = now_ns();
    const std::int64_t came = watch_come(of, 0, number);
    watch_come(of, 1, number);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    watch_leave(of, ranks, 0, number, came, true);
    const std::int64_t took = now_ns() - before;
    EXPECT_GE(watch_own_ns(of, ranks) - counted, 1000000);
    EXPECT_LE(watch_own_ns(of, ranks) - counted, took + took / 100);
  }
}

}  // namespace
