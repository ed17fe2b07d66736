// SPDX-License-Identifier: BSD-3-Clause
// What a lock's client does while it waits, without threads or clocks.
#include "wait/asking.hpp"

#include <gtest/gtest.h>

#include <string>

namespace muster::test {
namespace {

using Next = Asking::Next;

/// The next steps, a letter each. `said`: somebody else says that it waits.
std::string steps(Asking& asking, std::size_t count, bool said = false) {
  std::string all;
  for (; count > 0; --count) all += "pyas"[static_cast<int>(asking.next(said))];
  return all;
}
std::string yields(unsigned more = 0) { return std::string(Asking::yields + more, 'y'); }
const std::string polls(Asking::polls_before_sleep, 'p');

TEST(Asking, IsPatientThenAsksThenSleepsAndAsksAgain) {
  Asking asking(false, false, 0);
  EXPECT_EQ("ppppa" + polls + "spa" + polls + "spa" + polls + "s",
            steps(asking, 12 + 3 * Asking::polls_before_sleep));
}

TEST(Asking, SleepsSoonWhereOthersNeedThisPu) {
  Asking asking(false, false, 0, true);
  EXPECT_EQ("ppppaspas", steps(asking, 9));
}

TEST(Asking, DoesNotAskWhereAnotherOneHas) {
  Asking asking(false, false, 0);
  EXPECT_EQ("pppp" + polls + "sp" + polls + "s",
            steps(asking, 7 + 2 * Asking::polls_before_sleep, true));
  EXPECT_FALSE(asking.asked());
  EXPECT_EQ("pa", steps(asking, 2)) << "the other one is answered";
  EXPECT_TRUE(asking.asked());
}

TEST(Asking, OneWhoIsToldAnewIsAskedOnceASleep) {
  Asking asking(false, false, 0);
  EXPECT_EQ("ppppa", steps(asking, 5));
  EXPECT_EQ(polls + "s", steps(asking, Asking::polls_before_sleep + 1))
      << "though the holder has taken it back";
}

TEST(Asking, InACrowdYieldsBeforeItAsksAndBeforeItSleeps) {
  Asking asking(true, false, 0);
  EXPECT_EQ("pya" + yields() + "s", steps(asking, 3 + Asking::yields + 1));
  EXPECT_EQ("pa" + yields() + "s", steps(asking, 2 + Asking::yields + 1));
}

TEST(Asking, SleepsAtOnceWhereTimeIsLimitedAndItHasAsked) {
  Asking asking(true, true, 0, true);
  EXPECT_EQ("pyyaspas", steps(asking, 8)) << "with naps for the yields";
}

TEST(Asking, InACrowdYieldsWhereAnotherOneHasAsked) {
  Asking asking(true, false, 0);
  EXPECT_EQ("py" + yields() + "s", steps(asking, 2 + Asking::yields + 1, true));
}

TEST(Asking, AsksAtOnceWhenItHasLostTooManyRaces) {
  Asking patient(false, false, Asking::races - 1);
  EXPECT_EQ("ppppa", steps(patient, 5));
  Asking asking(false, false, Asking::races);
  EXPECT_EQ("a" + polls + "spa", steps(asking, 4 + Asking::polls_before_sleep));
}

TEST(Asking, WhoAskedTheLastTimeLetsAnotherOneAskFirst) {
  Asking asking(true, true, 0);
  EXPECT_EQ("pyya", steps(asking, 4));
  Asking alone(false, true, 0);
  EXPECT_EQ("ppppa", steps(alone, 5)) << "not where threads have CPUs of their own";
}

}  // namespace
}  // namespace muster::test
