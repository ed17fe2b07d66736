// SPDX-License-Identifier: BSD-3-Clause
// What every function of the C ABI takes and refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "every.hpp"
#include "machine/usable_cpus.hpp"

namespace muster::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// What create says to options that are fine but for one thing.
template <class Spoil>
int create_spoilt(Spoil&& spoil) {
  muster_options options = options_for(2);
  spoil(options);
  muster_barrier* const untouched = reinterpret_cast<muster_barrier*>(&options);
  muster_barrier* barrier = untouched;
  const int status = muster_barrier_create(&barrier, &options);
  if (status == MUSTER_OK) {
    muster_barrier_destroy(barrier);
  } else {
    EXPECT_EQ(barrier, untouched);
    EXPECT_STRNE(muster_last_error(), "");
    std::size_t bytes = 0;  // the same options, the same answer
    EXPECT_EQ(muster_barrier_memory(&options, &bytes, nullptr), status);
  }
  return status;
}

/// As the header of a later version has it.
struct LaterOptions {
  muster_options today;
  std::uint64_t later = 0;
};

TEST(Create, TakesTheOptionsOfALaterHeaderButWhatItLacks) {
  LaterOptions options;
  muster_options_init_sized(&options.today, sizeof options);
  EXPECT_EQ(options.today.size, sizeof options);
  EXPECT_EQ(options.later, 0U);
  muster_barrier* barrier = nullptr;
  ASSERT_EQ(muster_barrier_create(&barrier, &options.today), MUSTER_OK);
  muster_barrier_destroy(barrier);
  barrier = nullptr;
  options.later = 1;
  EXPECT_EQ(muster_barrier_create(&barrier, &options.today), MUSTER_EINVAL);
  EXPECT_THAT(muster_last_error(), HasSubstr("older than the header"));
  EXPECT_EQ(barrier, nullptr);
}

TEST(Create, TellsItsChoiceToHeadersOfAnyAge) {
  muster_options options;
  muster_options_init(&options);
  options.algorithm = "combining-tree:4";
  options.wait = "yield";
  muster_barrier* barrier = nullptr;
  ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK);
  struct {
    muster_barrier_choice today;
    std::uint64_t later;
  } choice{{}, 7};
  ASSERT_EQ(muster_barrier_get_choice(barrier, &choice.today, sizeof choice), MUSTER_OK);
  EXPECT_EQ(choice.today.participants, 1U);
  EXPECT_STREQ(choice.today.algorithm, "combining-tree:4");
  EXPECT_STREQ(choice.today.asked, "combining-tree:4");
  EXPECT_STREQ(choice.today.wait, "yield");
  EXPECT_STRNE(choice.today.why, "");
  EXPECT_STRNE(choice.today.wait_why, "");
  EXPECT_EQ(choice.later, 0U);
  muster_barrier_choice old{};
  old.algorithm = "untouched";
  ASSERT_EQ(muster_barrier_get_choice(barrier, &old, sizeof old.participants), MUSTER_OK);
  EXPECT_EQ(old.participants, 1U);
  EXPECT_STREQ(old.algorithm, "untouched");
  EXPECT_EQ(muster_barrier_get_choice(barrier, nullptr, 0), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_get_choice(nullptr, &old, sizeof old), MUSTER_EINVAL);
  muster_barrier_destroy(barrier);
}

TEST(Create, RefusesWhatMakesNoSense) {
  EXPECT_EQ(create_spoilt([](muster_options&) {}), MUSTER_OK);
  EXPECT_EQ(create_spoilt([](muster_options& o) { o.participants = 0; }), MUSTER_EINVAL);
  EXPECT_THAT(muster_last_error(), HasSubstr("1 to 65536"));
  EXPECT_EQ(create_spoilt([](muster_options& o) { o.participants = 65537; }), MUSTER_EINVAL);
  EXPECT_EQ(create_spoilt([](muster_options& o) { o.size = 0; }), MUSTER_EINVAL);
  EXPECT_THAT(muster_last_error(), HasSubstr("not initialised"));
  EXPECT_EQ(create_spoilt([](muster_options& o) { o.size = ~std::size_t{0}; }), MUSTER_EINVAL);
  EXPECT_EQ(create_spoilt([](muster_options& o) { o.flags = 1U << 20; }), MUSTER_EINVAL);
  EXPECT_EQ(create_spoilt([](muster_options& o) { o.algorithm = "quick"; }), MUSTER_EUNKNOWN);
  EXPECT_THAT(muster_last_error(), HasSubstr("dissemination"));
  EXPECT_EQ(create_spoilt([](muster_options& o) { o.algorithm = ""; }), MUSTER_EUNKNOWN);
  EXPECT_EQ(create_spoilt([](muster_options& o) { o.algorithm = "topo-"; }), MUSTER_EUNKNOWN);
  EXPECT_EQ(create_spoilt([](muster_options& o) { o.algorithm = "topo-SHELF"; }), MUSTER_EUNKNOWN);
  EXPECT_THAT(muster_last_error(), HasSubstr("NUMA"));
  for (const char* radix : {"1", "0", "-2", "x", "", "2x", "99999999999", "2000"}) {
    const std::string name = std::string("combining-tree:") + radix;
    EXPECT_EQ(create_spoilt([&](muster_options& o) { o.algorithm = name.c_str(); }), MUSTER_EINVAL)
        << name;
  }
  EXPECT_EQ(create_spoilt([](muster_options& o) { o.wait = "nap"; }), MUSTER_EUNKNOWN);
  EXPECT_THAT(muster_last_error(), HasSubstr("yield-sleep"));
  EXPECT_EQ(create_spoilt([](muster_options& o) { o.map_by = "shelf"; }), MUSTER_EUNKNOWN);
  EXPECT_THAT(muster_last_error(), HasSubstr("socket"));
}

TEST(Create, RefusesContradictions) {
  const char* bindings[] = {"0", "0"};
  EXPECT_EQ(create_spoilt([&](muster_options& o) {
              o.map_by = "core";
              o.bindings = bindings;
            }),
            MUSTER_EINVAL);
  muster_segment* segment = nullptr;
  ASSERT_EQ(muster_segment_create(&segment, 4096), MUSTER_OK) << muster_last_error();
  alignas(4096) static char memory[65536];
  EXPECT_EQ(create_spoilt([&](muster_options& o) {
              o.segment = segment;
              o.memory = memory;
              o.memory_bytes = sizeof memory;
            }),
            MUSTER_EINVAL);
  muster_segment_destroy(segment);
  EXPECT_EQ(create_spoilt([](muster_options& o) {
              o.algorithm = "mcs";
              o.flags = MUSTER_SPLIT;
            }),
            MUSTER_ENOTSUP);
  EXPECT_EQ(create_spoilt([](muster_options& o) {
              o.algorithm = "dissemination";
              o.completion = [](void*) { return 0; };
            }),
            MUSTER_ENOTSUP);
  const auto scheduled = [](muster_options& o) { o = options_for(4, "scheduled"); };
  EXPECT_EQ(create_spoilt(scheduled), MUSTER_OK);
  EXPECT_EQ(create_spoilt([&](muster_options& o) {
              scheduled(o);
              o.flags = MUSTER_SPLIT;
            }),
            MUSTER_ENOTSUP);
  EXPECT_THAT(muster_last_error(), HasSubstr("scheduled does not split"));
  EXPECT_EQ(create_spoilt([&](muster_options& o) {
              scheduled(o);
              o.completion = [](void*) { return 0; };
            }),
            MUSTER_ENOTSUP);
  EXPECT_THAT(muster_last_error(), HasSubstr("scheduled has no moment for a completion"));
}

// Before it is composed, which would take hours and all memory.
TEST(Create, RefusesSchedulesThatAreTooLarge) {
  const HangGuard guard(300);
  EXPECT_EQ(
      create_spoilt([](muster_options& o) { o = options_for(65536, "scheduled-MACHINE:all"); }),
      MUSTER_EINVAL);
  EXPECT_THAT(muster_last_error(), HasSubstr("\"all\" wants more than 4194304 cells"));
}

TEST(Create, RefusesTopologiesAndBindingsThatAreNone) {
  for (const char* map_by : {static_cast<const char*>(nullptr), "core"}) {
    EXPECT_EQ(create_spoilt([&](muster_options& o) {
                o.topology = "/nowhere/machine.xml";
                o.map_by = map_by;
              }),
              MUSTER_EINVAL);
    EXPECT_THAT(muster_last_error(), HasSubstr("/nowhere/machine.xml"));
    EXPECT_EQ(create_spoilt([&](muster_options& o) {
                o.topology = "package:two";
                o.map_by = map_by;
              }),
              MUSTER_EINVAL);
  }
  for (const char* wrong : {"0-", "9999", "a", "1,,2", "SK0:HT99"}) {
    const char* bindings[] = {"0", wrong};
    for (const char* algorithm : {"topo", "auto"}) {
      EXPECT_EQ(create_spoilt([&](muster_options& o) {
                  o.topology = "core:4 pu:1";
                  o.bindings = bindings;
                  o.algorithm = algorithm;
                }),
                MUSTER_EINVAL)
          << algorithm << " at " << wrong;
    }
  }
}

TEST(Create, ExactTopoDeclinesWithoutPlacements) {
  EXPECT_EQ(create_spoilt([](muster_options& o) {
              o.algorithm = "topo";
              o.flags = MUSTER_EXACT;
            }),
            MUSTER_EDECLINED);
  EXPECT_EQ(create_spoilt([](muster_options& o) { o.algorithm = "topo"; }), MUSTER_OK);
}

TEST(Wait, RefusesNoRank) {
  const CapiSubject barrier(options_for(3));
  for (const unsigned rank : {3U, 4U, ~0U}) {
    EXPECT_EQ(muster_barrier_wait(barrier.handle(), rank), MUSTER_EINVAL);
    EXPECT_THAT(muster_last_error(), HasSubstr("3 participants"));
    EXPECT_EQ(muster_barrier_arrive(barrier.handle(), rank), MUSTER_EINVAL);
  }
  EXPECT_EQ(muster_barrier_blame(barrier.handle(), nullptr), MUSTER_OK);
}

TEST(Wait, OfOneParticipantIsOver) {
  for (const std::string& name : all_names()) {
    const CapiSubject barrier(options_for(1, name.c_str()));
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(muster_barrier_timedwait(barrier.handle(), 0, 0), MUSTER_OK) << name;
    }
  }
}

TEST(Split, ArriveNeverWaitsAndDepartReturnsWhenAllArrived) {
  muster_options options = options_for(3);
  options.flags = MUSTER_SPLIT;
  const CapiSubject barrier(options);
  for (int episode = 0; episode < 5; ++episode) {
    for (const unsigned rank : {2U, 0U, 1U}) {  // all from one thread: none of them may wait
      ASSERT_EQ(muster_barrier_arrive(barrier.handle(), rank), MUSTER_OK);
    }
    for (const unsigned rank : {1U, 2U, 0U}) {
      ASSERT_EQ(muster_barrier_depart(barrier.handle(), rank), MUSTER_OK);
    }
  }
  CapiSubject other(options);
  EXPECT_EQ(run_trial({&other}, {.seed = case_seed(), .episodes = rounds(4000)}), "")
      << replay_command();
}

TEST(Split, NeedsItsHalvesInOrder) {
  muster_options options = options_for(2);
  options.flags = MUSTER_SPLIT;
  const CapiSubject barrier(options);
  EXPECT_EQ(muster_barrier_depart(barrier.handle(), 0), MUSTER_EINVAL);
  EXPECT_THAT(muster_last_error(), HasSubstr("without arrive"));
  ASSERT_EQ(muster_barrier_arrive(barrier.handle(), 0), MUSTER_OK);
  EXPECT_EQ(muster_barrier_arrive(barrier.handle(), 0), MUSTER_EBUSY);
  EXPECT_EQ(muster_barrier_wait(barrier.handle(), 0), MUSTER_EBUSY);
  ASSERT_EQ(muster_barrier_arrive(barrier.handle(), 1), MUSTER_OK);
  EXPECT_EQ(muster_barrier_depart(barrier.handle(), 0), MUSTER_OK);
  EXPECT_EQ(muster_barrier_depart(barrier.handle(), 1), MUSTER_OK);
}

// Also of algorithms that could: another one may be chosen elsewhere.
TEST(Split, IsRefusedWhereNobodyAskedForIt) {
  for (const char* name : {"tournament", "sense-reversing"}) {
    const CapiSubject barrier(options_for(2, name));
    EXPECT_EQ(muster_barrier_arrive(barrier.handle(), 0), MUSTER_ENOTSUP) << name;
    EXPECT_THAT(muster_last_error(), HasSubstr("MUSTER_SPLIT")) << name;
    EXPECT_EQ(muster_barrier_depart(barrier.handle(), 0), MUSTER_ENOTSUP) << name;
  }
}

std::vector<std::string> with_champion() {
  std::vector<std::string> names = all_names();
  for (const char* without : {"dissemination", "scheduled", "following"}) {
    std::erase(names, without);
  }
  names.emplace_back("auto");
  return names;
}

class Completion : public testing::TestWithParam<std::string> {};

// Plain data again: what all wrote before is there in the completion, and what it writes after.
TEST_P(Completion, RunsOnceBetweenTheLastArrivalAndTheFirstDeparture) {
  const HangGuard guard(60);
  struct State {
    unsigned arrived[4];
    unsigned completions;
    bool wrong;
  } state{};
  for (const char* wait : {"yield", "sleep"}) {
    state = {};
    muster_options options = options_for(4, GetParam().c_str());
    options.wait = wait;
    options.context = &state;
    options.completion = [](void* context) {
      State& s = *static_cast<State*>(context);
      for (const unsigned arrived : s.arrived) s.wrong = s.wrong || arrived != s.completions + 1;
      ++s.completions;
      return 0;
    };
    const CapiSubject barrier(options);
    FirstFailure failure{};
    run_threads(4, [&](unsigned rank) {
      Random random(case_seed() + rank);
      for (unsigned episode = 0; episode < rounds(400); ++episode) {
        if (random.one_in(16)) usleep(random.below(100));
        ++state.arrived[rank];
        if (muster_barrier_timedwait(barrier.handle(), rank, patience_ns) != MUSTER_OK) {
          return failure.report(muster_last_error());
        }
        if (state.completions != episode + 1) return failure.report("completion has not run once");
      }
    });
    EXPECT_EQ(failure.text(), "") << replay_command();
    EXPECT_FALSE(state.wrong);
  }
}

TEST_P(Completion, ThatFailsBreaksTheBarrier) {
  const HangGuard guard(60);
  std::atomic<unsigned> calls{0};
  muster_options options = options_for(3, GetParam().c_str());
  options.context = &calls;
  options.completion = [](void* context) {
    return static_cast<std::atomic<unsigned>*>(context)->fetch_add(1) == 2 ? 1 : 0;
  };
  const CapiSubject barrier(options);
  run_threads(3, [&](unsigned rank) {
    EXPECT_EQ(muster_barrier_wait(barrier.handle(), rank), MUSTER_OK);
    EXPECT_EQ(muster_barrier_wait(barrier.handle(), rank), MUSTER_OK);
    EXPECT_EQ(muster_barrier_wait(barrier.handle(), rank), MUSTER_EBROKEN);
    EXPECT_THAT(muster_last_error(), HasSubstr("'s completion failed: the barrier is broken"));
    EXPECT_EQ(muster_barrier_wait(barrier.handle(), rank), MUSTER_EBROKEN);
  });
  EXPECT_EQ(calls.load(), 3U);
  EXPECT_EQ(muster_barrier_blame(barrier.handle(), nullptr), MUSTER_EBROKEN);
}

INSTANTIATE_TEST_SUITE_P(All, Completion, testing::ValuesIn(with_champion()), identifier);

TEST(Progress, IsCalledWhileWaitingAndOnlyThen) {
  const HangGuard guard(60);
  for (const char* wait : {"auto", "spin", "sleep"}) {
    std::atomic<unsigned> calls{0};
    muster_options options = options_for(2);
    options.wait = wait;
    options.context = &calls;
    options.progress = [](void* context) {
      static_cast<std::atomic<unsigned>*>(context)->fetch_add(1);
      return 0;
    };
    const CapiSubject barrier(options);
    std::thread other([&] { EXPECT_EQ(muster_barrier_wait(barrier.handle(), 0), MUSTER_OK); });
    // Without progress in the wait this is a deadlock, as it is with MPI's messages.
    while (calls.load() < 5) std::this_thread::yield();
    EXPECT_EQ(muster_barrier_wait(barrier.handle(), 1), MUSTER_OK);
    other.join();
    const unsigned before = calls.load();
    usleep(3'000);
    EXPECT_EQ(calls.load(), before);
  }
}

TEST(Memory, OfTheCaller) {
  const HangGuard guard(60);
  muster_options options = options_for(3, "mcs");
  std::size_t bytes = 0;
  std::size_t alignment = 0;
  ASSERT_EQ(muster_barrier_memory(&options, &bytes, &alignment), MUSTER_OK);
  EXPECT_EQ(muster_barrier_memory(&options, nullptr, nullptr), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_memory(nullptr, &bytes, nullptr), MUSTER_EINVAL);
  ASSERT_EQ(alignment & (alignment - 1), 0U);
  const SharedMemory memory(bytes + 4096);
  options.flags = MUSTER_SHARED;
  options.memory = memory.data() + 4096;
  options.memory_bytes = bytes - 1;
  muster_barrier* barrier = nullptr;
  EXPECT_EQ(muster_barrier_create(&barrier, &options), MUSTER_EINVAL);
  EXPECT_THAT(muster_last_error(), HasSubstr(std::to_string(bytes)));
  options.memory_bytes = bytes;
  options.memory = memory.data() + 4096 - 8;
  EXPECT_EQ(muster_barrier_create(&barrier, &options), MUSTER_EINVAL);
  options.memory = memory.data() + 4096;
  for (const std::size_t at : {std::size_t{0}, bytes - 1}) {
    memory.data()[4096 + at] = std::byte{1};
    EXPECT_EQ(muster_barrier_create(&barrier, &options), MUSTER_EINVAL) << at;
    EXPECT_THAT(muster_last_error(), HasSubstr("zeroed"));
    memory.data()[4096 + at] = std::byte{0};
  }
  ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK) << muster_last_error();
  EXPECT_EQ(muster_barrier_fd(barrier), -1);

  EXPECT_EQ(
      run_processes(3,
                    [&](unsigned rank) {
                      muster_barrier* mine = nullptr;
                      if (muster_barrier_attach_memory(&mine, options.memory, bytes) != MUSTER_OK) {
                        throw std::runtime_error(muster_last_error());
                      }
                      for (int i = 0; i < 300; ++i) {
                        if (muster_barrier_wait(mine, rank) != MUSTER_OK) _exit(9);
                      }
                      muster_barrier_destroy(mine);
                    }),
      "");
  muster_barrier_destroy(barrier);
  EXPECT_EQ(muster_barrier_attach_memory(&barrier, options.memory, bytes), MUSTER_EFOREIGN)
      << "it is destroyed";
}

// Its waits neither wake another process nor see its death.
TEST(Memory, OfOneProcessIsAttachedToByNone) {
  muster_options options = options_for(2);
  std::size_t bytes = 0;
  ASSERT_EQ(muster_barrier_memory(&options, &bytes, nullptr), MUSTER_OK);
  const SharedMemory memory(bytes);
  options.memory = memory.data();
  options.memory_bytes = bytes;
  const CapiSubject made(options);
  muster_barrier* barrier = nullptr;
  EXPECT_EQ(muster_barrier_attach_memory(&barrier, options.memory, bytes), MUSTER_EINVAL);
  EXPECT_THAT(muster_last_error(), HasSubstr("created without MUSTER_SHARED"));
}

TEST(Explain, TellsWhatItsRanksHaveLearnt) {
  const CapiSubject barrier(options_for(2, "sense-reversing"));
  EXPECT_FALSE(json::parse(explain(barrier.handle(), "json")).contains("learnt"));
  constexpr unsigned late_waits = 20;
  std::thread late([&] {
    for (unsigned n = 0; n < late_waits; ++n) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ASSERT_EQ(muster_barrier_wait(barrier.handle(), 1), MUSTER_OK);
    }
  });
  for (unsigned n = 0; n < late_waits; ++n) {
    ASSERT_EQ(muster_barrier_wait(barrier.handle(), 0), MUSTER_OK);
  }
  const json told = json::parse(explain(barrier.handle(), "json"));
  late.join();
  EXPECT_EQ(told["learnt"]["ranks"], 2);
  EXPECT_GT(told["learnt"]["slept"], late_waits / 2);
  EXPECT_GE(told["learnt"]["shorter"].get<int>() + told["learnt"]["not_awake"].get<int>(), 1);
  EXPECT_THAT(explain(barrier.handle(), "text"), HasSubstr("learnt        2 ranks here: "));
}

TEST(Explain, NamesCoresOnlyWhereRanksShareThem) {
  const unsigned cores = affinity_cpus() + 1;  // more than there are CPUs
  const std::string topology = "package:1 core:" + std::to_string(cores) + " pu:1";
  const auto explained = [&](unsigned participants) {
    muster_options options = options_for(participants, "auto");
    options.topology = topology.c_str();
    options.map_by = "core";
    const CapiSubject barrier(options);
    return explain(barrier.handle(), "text");
  };
  EXPECT_THAT(explained(2 * cores), HasSubstr("topo-counter-CORE"));
  EXPECT_THAT(explained(cores), HasSubstr("none share a core"));
}

TEST(Explain, KeepsToTheBufferItIsGiven) {
  const CapiSubject barrier(options_for(2));
  const std::string whole = explain(barrier.handle());
  EXPECT_EQ(explain(barrier.handle(), nullptr), whole);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{2}, whole.size(), whole.size() + 1}) {
    std::string buffer(whole.size() + 2, '#');
    std::size_t needed = 0;
    ASSERT_EQ(muster_barrier_explain(barrier.handle(), "text", buffer.data(), bytes, &needed),
              MUSTER_OK);
    EXPECT_EQ(needed, whole.size() + 1);
    EXPECT_STREQ(buffer.c_str(), whole.substr(0, bytes - 1).c_str());
    EXPECT_EQ(buffer[bytes], '#');
  }
  EXPECT_EQ(muster_barrier_explain(barrier.handle(), "xml", nullptr, 0, nullptr), MUSTER_EUNKNOWN);
  EXPECT_EQ(muster_barrier_explain(nullptr, "text", nullptr, 0, nullptr), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_explain(barrier.handle(), "text", nullptr, 5, nullptr), MUSTER_EINVAL);
}

TEST(Texts, ExistForEveryStatus) {
  std::vector<std::string> seen;
  for (int status = MUSTER_OK; status <= MUSTER_EBUSY; ++status) {
    seen.emplace_back(muster_strerror(status));
    EXPECT_NE(seen.back(), muster_strerror(-1));
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_STREQ(muster_strerror(99), muster_strerror(-1));
  EXPECT_THAT(muster_version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST(Texts, OfTheLastErrorAreEachThreadsOwn) {
  EXPECT_EQ(muster_barrier_wait(nullptr, 0), MUSTER_EINVAL);
  const std::string mine = muster_last_error();
  std::thread([] {
    EXPECT_STREQ(muster_last_error(), "");
    EXPECT_EQ(muster_segment_create(nullptr, 1), MUSTER_EINVAL);
  }).join();
  EXPECT_EQ(muster_last_error(), mine);
}

TEST(Handles, ThatAreNullAreHarmless) {
  muster_barrier_destroy(nullptr);
  muster_segment_destroy(nullptr);
  muster_options_init(nullptr);
  EXPECT_EQ(muster_barrier_fd(nullptr), -1);
  EXPECT_EQ(muster_segment_fd(nullptr), -1);
  EXPECT_EQ(muster_barrier_handle(nullptr), 0U);
  EXPECT_EQ(muster_barrier_participants(nullptr), 0U);
  EXPECT_EQ(muster_barrier_blame(nullptr, nullptr), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_publish(nullptr, "a"), MUSTER_EINVAL);
  EXPECT_EQ(muster_segment_publish(nullptr, "a"), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_wait(nullptr, 0), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_timedwait(nullptr, 0, 1), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_arrive(nullptr, 0), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_depart(nullptr, 0), MUSTER_EINVAL);
  const muster_options options = options_for(2);
  muster_barrier* barrier = nullptr;
  EXPECT_EQ(muster_barrier_create(nullptr, &options), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_create(&barrier, nullptr), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_attach_at(&barrier, nullptr, 64), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_attach_memory(&barrier, nullptr, 4096), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_attach(nullptr, 0), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_attach_name(&barrier, nullptr, 0), MUSTER_EINVAL);
}

TEST(Segment, IsFullOnceAndFreeAgain) {
  muster_segment* segment = nullptr;
  EXPECT_EQ(muster_segment_create(&segment, 0), MUSTER_EINVAL);
  ASSERT_EQ(muster_segment_create(&segment, 64 << 10), MUSTER_OK);
  muster_options options = options_for(4);
  options.segment = segment;
  for (int filled = 0; filled < 3; ++filled) {
    std::vector<muster_barrier*> barriers;
    int status = MUSTER_OK;
    while (status == MUSTER_OK) {
      muster_barrier* barrier = nullptr;
      status = muster_barrier_create(&barrier, &options);
      if (status == MUSTER_OK) barriers.push_back(barrier);
    }
    EXPECT_EQ(status, MUSTER_ENOMEM) << muster_last_error();
    EXPECT_GT(barriers.size(), 10U);
    for (muster_barrier* barrier : barriers) {
      EXPECT_NE(muster_barrier_handle(barrier), 0U);
      EXPECT_EQ(muster_barrier_fd(barrier), muster_segment_fd(segment));
      muster_barrier_destroy(barrier);
    }
  }
  muster_segment_destroy(segment);
}

TEST(Segment, OnlyItsCreatorMakesBarriersInIt) {
  muster_segment* segment = nullptr;
  ASSERT_EQ(muster_segment_create(&segment, 64 << 10), MUSTER_OK);
  Child child([&] {
    muster_segment* mine = nullptr;
    if (muster_segment_attach(&mine, muster_segment_fd(segment)) != MUSTER_OK) _exit(1);
    muster_options options = options_for(2);
    options.segment = mine;
    muster_barrier* barrier = nullptr;
    if (muster_barrier_create(&barrier, &options) != MUSTER_ENOTSUP) _exit(2);
    muster_segment_destroy(mine);
  });
  EXPECT_EQ(child.wait(), "");
  muster_segment_destroy(segment);
}

}  // namespace
}  // namespace muster::test
