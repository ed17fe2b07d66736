// SPDX-License-Identifier: BSD-3-Clause
// When `auto` gets a server: the rule, with facts that no machine has to have.
#include "lock/steward.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::test {
namespace {

using locks::StandBack;
using locks::Steward;
using testing::HasSubstr;
using Advice = Steward::Advice;

constexpr Advice stay = Advice::stay;
constexpr Advice start = Advice::start;
constexpr Advice leave = Advice::leave;

/// A machine of 8 CPUs and 3 clients that meet; a look each 10 ms.
class StewardTest : public testing::Test {
 protected:
  StewardTest() { look(); }

  Advice look() {
    now_.now_ns += 10'000'000;
    now_.sections += sections_;
    now_.meets += meets_;
    return steward_.look(now_);
  }
  void start_server() {
    ASSERT_EQ(stay, look());
    ASSERT_EQ(stay, look());
    ASSERT_EQ(start, look()) << steward_.why();
  }
  void end_trial() {
    for (unsigned i = 0; i < Steward::Rules{}.trial_looks; ++i) ASSERT_EQ(stay, look());
  }
  /// Looks until the advice is another one; at most 10,000.
  unsigned looks_until(Advice advice) {
    unsigned looks = 1;
    while (looks < 10'000 && look() != advice) ++looks;
    return looks;
  }

  Steward steward_;
  Steward::Look now_{
      .now_ns = 1'000'000'000, .clients = 3, .usable_cpus = 8, .threads_cpus = 3, .server_cpus = 1};
  std::uint64_t sections_ = 10'000;  ///< between two looks
  std::uint64_t meets_ = 1000;
};

TEST_F(StewardTest, StartsWhenClientsMeetForAWhileAndACpuIsFree) {
  start_server();
  EXPECT_THAT(steward_.why(), HasSubstr("clients meet, and a CPU is free"));
  EXPECT_EQ(1U, steward_.starts());
}

TEST_F(StewardTest, OneLookIsNotAWhile) {
  for (int i = 0; i < 20; ++i) {
    meets_ = i % 3 == 2 ? 0 : 1000;
    EXPECT_EQ(stay, look());
  }
}

TEST_F(StewardTest, StartsOnlyForClientsThatMeetWhereACpuIsFree) {
  const struct {
    const char* where;
    unsigned clients;
    unsigned usable_cpus;
    double threads_cpus;
    std::uint64_t meets;
    bool starts;
  } cases[] = {{"no CPU is free", 3, 3, 3, 1000, false},
               {"one is free", 3, 4, 3, 1000, true},
               {"threads that use no lock need it", 3, 8, 7.9, 1000, false},
               {"they leave one", 3, 8, 6.9, 1000, true},
               {"two CPUs, two clients", 2, 2, 2, 1000, false},
               {"two CPUs, many clients", 32, 2, 2, 1000, false},
               {"nobody to meet", 1, 8, 3, 1000, false},
               {"they seldom meet", 3, 8, 3, 10, false}};
  for (const auto& at : cases) {
    steward_ = Steward();
    now_.clients = at.clients;
    now_.usable_cpus = at.usable_cpus;
    now_.threads_cpus = at.threads_cpus;
    meets_ = at.meets;
    look();
    EXPECT_EQ(at.starts ? 3U : 10'000U, looks_until(start)) << at.where << steward_.why();
    if (at.usable_cpus == 3) {
      EXPECT_THAT(steward_.why(), HasSubstr("no CPU is free"));
    }
  }
}

TEST_F(StewardTest, LeavesAtOnceWhenClientsNeedTheCpu) {
  start_server();
  end_trial();
  now_.clients = 8;
  EXPECT_EQ(leave, look());
  EXPECT_THAT(steward_.why(), HasSubstr("the clients need its CPU"));
  EXPECT_EQ(1U, steward_.leaves());
}

TEST_F(StewardTest, LeavesWhenOthersTakeItsCpu) {
  start_server();
  now_.server_cpus = 0.5;
  EXPECT_EQ(stay, look());
  EXPECT_EQ(leave, look());
  EXPECT_THAT(steward_.why(), HasSubstr("others take its CPU"));
}

TEST_F(StewardTest, LeavesWhenItWasNoGain) {
  start_server();
  sections_ = 5000;
  EXPECT_EQ(Steward::Rules{}.trial_looks, looks_until(leave));
  EXPECT_THAT(steward_.why(), HasSubstr("slower with it (a server gave 50 %"));
}

/// With two clients that combine, of which the faster one is not where the server is.
class StewardFarFromTheData : public StewardTest {
 protected:
  StewardFarFromTheData() {
    add(seen_[0], slow_, 1, 1000);
    add(seen_[1], fast_, 7, 3000);
    now_.server_is_near = false;
  }
  void add(Steward::Seen& seen, locks::Pace& pace, unsigned place, std::uint64_t sections) {
    pace.sections += sections;
    pace.ns += 1'000'000;
    now_.add(pace, seen, place);
  }
  /// Until a server that gives so many sections a look has left.
  void try_server(std::uint64_t sections) {
    sections_ = 10'000;
    start_server();
    sections_ = sections;
    ASSERT_EQ(Steward::Rules{}.trial_looks, looks_until(leave));
    sections_ = 10'000;
  }

  Steward::Seen seen_[2];
  locks::Pace slow_;
  locks::Pace fast_;
};

TEST_F(StewardFarFromTheData, ComesBackAtOnceNearTheFastestClient) {
  EXPECT_EQ(std::nullopt, steward_.near());
  try_server(5000);
  EXPECT_EQ(7U, steward_.near());
  start_server();
  sections_ = 20'000;
  EXPECT_EQ(10'000U, looks_until(leave));
  EXPECT_EQ(7U, steward_.near()) << "for the next time";
}

TEST_F(StewardFarFromTheData, ComesBackOnceOnly) {
  try_server(5000);
  now_.server_is_near = true;
  try_server(5000);
  EXPECT_EQ(std::nullopt, steward_.near());
  EXPECT_GE(looks_until(start), 10U);
}

TEST_F(StewardFarFromTheData, ClientsElsewhereStandBackIfNoCoreIsFreeThere) {
  try_server(5000);
  start_server();
  steward_.no_server(now_.now_ns, "no core");
  EXPECT_EQ(std::nullopt, steward_.near());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(7U, steward_.stand_back().place);
    EXPECT_EQ(StandBack::who_is_elsewhere, steward_.stand_back().who);
    EXPECT_EQ(stay, look());
  }
  EXPECT_GE(looks_until(start), 5U);
  EXPECT_EQ(std::nullopt, steward_.near()) << "the data may have moved";
  EXPECT_EQ(StandBack::nobody, steward_.stand_back().who);
}

TEST_F(StewardFarFromTheData, WhoIsNearTheCombinerStandsBackBeforeAServerStarts) {
  EXPECT_EQ(StandBack::nobody, steward_.stand_back().who);
  EXPECT_EQ(stay, look());
  EXPECT_EQ(StandBack::who_is_near, steward_.stand_back().who);
  EXPECT_EQ(7U, steward_.stand_back().place);
  now_.combiner = {.place = 2, .sections_per_s = 9e6};
  EXPECT_EQ(stay, look());
  EXPECT_EQ(7U, steward_.stand_back().place) << "while it is tried";
  EXPECT_EQ(start, look());
  EXPECT_EQ(StandBack::nobody, steward_.stand_back().who);
  EXPECT_EQ(2U, steward_.fastest()->place);
}

/// On a machine of three NUMA nodes, each with a free CPU: 0, 8 and 16.
class StewardOfNumaNodes : public StewardTest {
 protected:
  /// Starts a server, which has to be there, and looks until its trial is over.
  void try_server(unsigned cpu, std::uint64_t sections, std::optional<unsigned> untried = {}) {
    sections_ = 10'000;
    start_server();
    if (steward_.near()) {
      EXPECT_EQ(cpu, steward_.near());
    }
    now_.server = cpu;
    now_.untried = untried;
    sections_ = sections;
    const unsigned trial = Steward::Rules{}.trial_looks;
    for (unsigned n = 1; n < trial; ++n) ASSERT_EQ(stay, look());
    last_ = look();
  }
  Advice last_ = stay;
};

TEST_F(StewardOfNumaNodes, AServerThatIsAGainIsTriedOnEachAndGoesWhereItWasFastest) {
  try_server(0, 10'000, 8);
  ASSERT_EQ(leave, last_);
  EXPECT_THAT(steward_.why(), HasSubstr("one on another NUMA node is tried"));
  try_server(8, 30'000, 16);
  ASSERT_EQ(leave, last_);
  EXPECT_EQ(2U, steward_.tried().size());
  try_server(16, 5000);
  ASSERT_EQ(leave, last_);
  EXPECT_THAT(steward_.why(), HasSubstr("one on another NUMA node was faster"));
  try_server(8, 30'000, 16);
  ASSERT_EQ(stay, last_);
  EXPECT_EQ(10'000U, looks_until(leave));
}

TEST_F(StewardOfNumaNodes, ItStaysWhereItIsUnlessAnotherOneWasMuchFaster) {
  try_server(0, 10'500, 8);
  ASSERT_EQ(leave, last_);
  try_server(8, 10'000);
  EXPECT_EQ(stay, last_);
}

TEST_F(StewardOfNumaNodes, OneThatIsNoGainIsNotTriedElsewhere) {
  try_server(0, 5000, 8);
  EXPECT_EQ(leave, last_);
  EXPECT_THAT(steward_.why(), HasSubstr("slower with it"));
  EXPECT_EQ(std::nullopt, steward_.near());
}

TEST_F(StewardOfNumaNodes, SectionsThatAreFastNeedNoOtherPlace) {
  try_server(0, 150'000, 8);  // in 10 ms
  EXPECT_EQ(stay, last_);
}

TEST_F(StewardOfNumaNodes, TheyAreComparedAgainForClientsThatMeetMuchLater) {
  try_server(0, 20'000, 8);
  try_server(8, 10'000);
  ASSERT_EQ(leave, last_);
  try_server(0, 20'000, 8);
  ASSERT_EQ(stay, last_);
  meets_ = 0;
  looks_until(leave);
  meets_ = 1000;
  now_.now_ns += Steward::Rules{}.away_max_ns;
  look();
  try_server(0, 20'000, 8);
  EXPECT_EQ(leave, last_);
}

TEST_F(StewardOfNumaNodes, OneWithoutAFreeCpuByThenIsPassedOver) {
  try_server(0, 20'000, 8);
  start_server();
  steward_.no_server(now_.now_ns, "no core");
  EXPECT_EQ(std::nullopt, steward_.near());
  EXPECT_EQ(StandBack::nobody, steward_.stand_back().who);
  looks_until(start);
  now_.untried.reset();  // of none of tried()
  now_.server = 0;
  sections_ = 20'000;
  EXPECT_EQ(10'000U, looks_until(leave));
}

TEST_F(StewardOfNumaNodes, OneWhoseCpuOthersTakeIsPassedOver) {
  try_server(0, 20'000, 8);
  start_server();
  now_.server_cpus = 0.1;
  look();
  ASSERT_EQ(leave, look());
  EXPECT_EQ(std::nullopt, steward_.near());
  EXPECT_EQ(8U, steward_.tried().back().place);
}

TEST_F(StewardOfNumaNodes, TheyAreComparedThoughClientsSeldomMeet) {
  const auto rest = [&] {
    meets_ = 0;
    looks_until(leave);
    now_.now_ns += Steward::Rules{}.away_max_ns;
    look();
    meets_ = 1000;
  };
  try_server(0, 10'000, 8);
  start_server();
  rest();
  try_server(8, 30'000, 16);
  start_server();
  rest();
  try_server(16, 10'000);
  EXPECT_EQ(leave, last_);
  EXPECT_EQ(8U, steward_.near());
}

TEST_F(StewardOfNumaNodes, ItDoesNotMoveToWhereItIs) {
  try_server(0, 9'500, 8);
  now_.sections += 5000;  // in the first look before the trial: too much to be beaten
  start_server();
  now_.server = 8;
  now_.untried.reset();
  sections_ = 9'600;
  EXPECT_EQ(Steward::Rules{}.trial_looks, looks_until(leave));
  EXPECT_THAT(steward_.why(), HasSubstr("slower with it"));
}

TEST_F(StewardTest, StaysWhenItWasAGain) {
  start_server();
  sections_ = 20'000;
  EXPECT_EQ(10'000U, looks_until(leave));
  EXPECT_THAT(steward_.why(), HasSubstr("a server gave 200 %"));
}

TEST_F(StewardTest, LeavesWhenClientsNoLongerMeetForLong) {
  start_server();
  end_trial();
  meets_ = 0;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(stay, look());
  meets_ = 1000;
  EXPECT_EQ(stay, look());
  meets_ = 0;
  EXPECT_EQ(Steward::Rules{}.looks_to_leave, looks_until(leave));
  EXPECT_THAT(steward_.why(), HasSubstr("no longer meet"));
  meets_ = 1000;
  start_server();  // at once: it did no harm
}

TEST_F(StewardTest, StaysAwayLongerEachTime) {
  unsigned last = 0;
  for (int turn = 0; turn < 5; ++turn) {
    const unsigned looks = looks_until(start);
    EXPECT_GE(looks, turn == 0 ? 3 : last * 3 / 2) << turn;
    last = looks;
    sections_ = 5000;
    looks_until(leave);
    sections_ = 10'000;
  }
  EXPECT_GE(last, 80U) << "100 ms, 200, 400, 800";
}

TEST_F(StewardTest, AStartThatFailsIsNotRepeatedAtOnce) {
  start_server();
  steward_.no_server(now_.now_ns, "no core", "all are taken");
  EXPECT_EQ("no core: all are taken", steward_.why());
  EXPECT_GE(looks_until(start), 10U);
  EXPECT_EQ("clients meet, and a CPU is free", steward_.why()) << "what failed is no longer so";
}

}  // namespace
}  // namespace muster::test
