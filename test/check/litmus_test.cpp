// SPDX-License-Identifier: BSD-3-Clause
// Litmus tests: tiny programs whose verdicts are known from the literature. Their names are those
// of Alglave, Maranget and Tautschnig, "Herding cats" (TOPLAS 2014), and of Lahav et al. (PLDI
// 2017).
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

#include "check/begin.hpp"
#include "check/explore.hpp"

namespace muster::check {
namespace {

constexpr Location x = 0;
constexpr Location y = 1;
constexpr Location z = 2;
constexpr Ordering rlx = Ordering::relaxed;
constexpr Ordering acq = Ordering::acquire;
constexpr Ordering rel = Ordering::release;
constexpr Ordering acq_rel_ = Ordering::acq_rel;
constexpr Ordering sc = Ordering::seq_cst;

using Body = std::function<void(Thread&)>;

Program make(const std::vector<Body>& bodies) {
  Program program{.name = "litmus", .threads = static_cast<unsigned>(bodies.size())};
  for (const char* name : {"x", "y", "z"}) program.memory.add(0, name);
  program.body = [bodies](Thread& self) { bodies[self.id()](self); };
  return program;
}

/// What all loads and updates read, thread by thread, then the last values of x, y and z.
using Outcome = std::vector<Word>;

struct Outcomes {
  std::set<Outcome> all;
  std::uint64_t executions = 0;

  /// Whether some execution's reads begin like this.
  bool reads(const Outcome& wanted) const {
    for (const Outcome& outcome : all) {
      if (std::equal(wanted.begin(), wanted.end(), outcome.begin())) return true;
    }
    return false;
  }
};

Outcomes explore(const std::vector<Body>& bodies) {
  Outcomes outcomes;
  Options options;
  options.on_execution = [&](const Graph& graph) {
    Outcome outcome;
    for (unsigned t = 0; t < graph.threads(); ++t) {
      for (int i = 0; i < graph.size(t); ++i) {
        if (graph.at(t, i).is_read()) outcome.push_back(graph.at(t, i).read);
      }
    }
    for (const Location l : {x, y, z}) outcome.push_back(graph.newest_value(l));
    outcomes.all.insert(outcome);
  };
  const Program program = make(bodies);
  const Result result = Explorer(program, options).explore();
  EXPECT_EQ(result.verdict, Verdict::holds);
  outcomes.executions = result.executions;
  return outcomes;
}

Verdict verdict(const std::vector<Body>& bodies) {
  const Program program = make(bodies);
  return Explorer(program, {}).explore().verdict;
}

Body store(Location where, Word value, Ordering order = rlx) {
  return [=](Thread& t) { t.store(where, value, order); };
}
Body load(Location where, Ordering order = rlx) {
  return [=](Thread& t) { t.load(where, order); };
}
Body add(Location where, Word value, Ordering order = rlx) {
  return [=](Thread& t) { t.fetch_add(where, value, order); };
}
Body fence(Ordering order) {
  return [=](Thread& t) { t.fence(order); };
}
Body write(Location where, Word value) {
  return [=](Thread& t) { t.write(where, value); };
}
Body read(Location where) {
  return [=](Thread& t) { t.read(where); };
}
Body await(Location where, Word value, Ordering order = rlx) {
  return [=](Thread& t) { t.await(where, Predicate(equals(value)), order); };
}
Body seq(std::vector<Body> steps) {
  return [steps = std::move(steps)](Thread& t) {
    for (const Body& step : steps) step(t);
  };
}

// As membarrier(2) makes a compiler's barrier of others a fence.
TEST(Litmus, LightFencesAreOrderedWithHeavyOnesAlone) {
  constexpr Ordering light = Ordering::light;
  constexpr Ordering heavy = Ordering::heavy;
  const auto both_miss = [](Ordering a, Ordering b) {
    return explore({seq({store(x, 1), fence(a), load(y)}), seq({store(y, 1), fence(b), load(x)})})
        .reads({0, 0});
  };
  EXPECT_FALSE(both_miss(light, heavy));
  EXPECT_FALSE(both_miss(heavy, heavy));
  EXPECT_FALSE(both_miss(heavy, sc));
  EXPECT_FALSE(both_miss(sc, sc));
  EXPECT_TRUE(both_miss(light, light));
  EXPECT_TRUE(both_miss(light, sc));
  // Nor does a light one release or acquire anything.
  const auto mp = [](Ordering s, Ordering l) {
    return explore({seq({store(x, 1), fence(s), store(y, 1)}), seq({load(y), fence(l), load(x)})})
        .reads({1, 0});
  };
  EXPECT_TRUE(mp(light, acq));
  EXPECT_TRUE(mp(rel, light));
  EXPECT_FALSE(mp(heavy, heavy));
}

TEST(Litmus, MessagePassing) {
  const auto mp = [](Ordering s, Ordering l) {
    return explore({seq({store(x, 1), store(y, 1, s)}), seq({load(y, l), load(x)})});
  };
  EXPECT_EQ(mp(rel, acq).executions, 3U);
  EXPECT_FALSE(mp(rel, acq).reads({1, 0}));
  EXPECT_TRUE(mp(rlx, acq).reads({1, 0}));
  EXPECT_TRUE(mp(rel, rlx).reads({1, 0}));
  EXPECT_EQ(mp(rlx, rlx).executions, 4U);
}

TEST(Litmus, MessagePassingByFences) {
  const auto mp = [](Ordering writer, Ordering reader) {
    return explore(
        {seq({store(x, 1), fence(writer), store(y, 1)}), seq({load(y), fence(reader), load(x)})});
  };
  EXPECT_FALSE(mp(rel, acq).reads({1, 0}));
  EXPECT_FALSE(mp(acq_rel_, acq_rel_).reads({1, 0}));
  EXPECT_FALSE(mp(sc, sc).reads({1, 0}));
  EXPECT_TRUE(mp(acq, acq).reads({1, 0}));
  EXPECT_TRUE(mp(rel, rel).reads({1, 0}));
  // A fence and an order of the other kind meet, too.
  EXPECT_FALSE(explore({seq({store(x, 1), fence(rel), store(y, 1)}), seq({load(y, acq), load(x)})})
                   .reads({1, 0}));
  EXPECT_FALSE(explore({seq({store(x, 1), store(y, 1, rel)}), seq({load(y), fence(acq), load(x)})})
                   .reads({1, 0}));
  // The fence has to stand between.
  EXPECT_TRUE(explore({seq({fence(rel), store(x, 1), store(y, 1)}), seq({load(y, acq), load(x)})})
                  .reads({1, 0}));
}

TEST(Litmus, StoreBuffering) {
  const auto sb = [](const std::vector<Body>& between0, const std::vector<Body>& between1) {
    return explore({seq({store(x, 1, rel), seq(between0), load(y, acq)}),
                    seq({store(y, 1, rel), seq(between1), load(x, acq)})});
  };
  EXPECT_TRUE(sb({}, {}).reads({0, 0}));
  EXPECT_EQ(sb({}, {}).executions, 4U);
  EXPECT_FALSE(sb({fence(sc)}, {fence(sc)}).reads({0, 0}));
  EXPECT_EQ(sb({fence(sc)}, {fence(sc)}).executions, 3U);
  EXPECT_TRUE(sb({fence(sc)}, {}).reads({0, 0}));
  EXPECT_TRUE(sb({fence(acq_rel_)}, {fence(sc)}).reads({0, 0}));
  EXPECT_TRUE(sb({fence(acq_rel_)}, {fence(acq_rel_)}).reads({0, 0}));
}

TEST(Litmus, LoadBufferingIsNotExplored) {  // C++ allows 1, 1: a limit of the explorer
  const auto lb = explore({seq({load(x), store(y, 1)}), seq({load(y), store(x, 1)})});
  EXPECT_FALSE(lb.reads({1, 1}));
  EXPECT_EQ(lb.executions, 3U);
}

TEST(Litmus, Coherence) {
  const auto corr = explore({store(x, 1), seq({load(x), load(x)})});
  EXPECT_FALSE(corr.reads({1, 0}));
  EXPECT_EQ(corr.executions, 3U);
  const auto corr2 =
      explore({store(x, 1), store(x, 2), seq({load(x), load(x)}), seq({load(x), load(x)})});
  EXPECT_FALSE(corr2.reads({1, 2, 2, 1}));
  EXPECT_TRUE(corr2.reads({1, 2, 1, 2}));
  const auto coww = explore({seq({store(x, 1), store(x, 2)})});
  EXPECT_TRUE(coww.reads({2, 0, 0}));  // the last value
  EXPECT_EQ(coww.executions, 1U);
  const auto cowr = explore({seq({store(x, 1), load(x)}), store(x, 2)});
  EXPECT_FALSE(cowr.reads({0}));
  EXPECT_FALSE(cowr.reads({2, 1}));  // what it read is the newer one
  const auto corw = explore({seq({load(x), store(x, 1)}), store(x, 2)});
  EXPECT_FALSE(corw.reads({2, 2}));
}

TEST(Litmus, IndependentReads) {
  const auto iriw = [](const std::vector<Body>& first, const std::vector<Body>& second) {
    return explore({store(x, 1, rel), store(y, 1, rel),
                    seq({load(x, acq), seq(first), load(y, acq)}),
                    seq({load(y, acq), seq(second), load(x, acq)})});
  };
  EXPECT_TRUE(iriw({}, {}).reads({1, 0, 1, 0}));
  EXPECT_EQ(iriw({}, {}).executions, 16U);
  EXPECT_FALSE(iriw({fence(sc)}, {fence(sc)}).reads({1, 0, 1, 0}));
  EXPECT_EQ(iriw({fence(sc)}, {fence(sc)}).executions, 15U);
  EXPECT_TRUE(iriw({fence(sc)}, {}).reads({1, 0, 1, 0}));
  EXPECT_TRUE(iriw({fence(acq_rel_)}, {fence(acq_rel_)}).reads({1, 0, 1, 0}));
}

TEST(Litmus, ReadToWriteCausality) {
  // RWC: forbidden by RC11 and C++20, allowed by C++11's fences.
  const auto rwc = explore(
      {store(x, 1), seq({load(x), fence(sc), load(y)}), seq({store(y, 1), fence(sc), load(x)})});
  EXPECT_FALSE(rwc.reads({1, 0, 0}));
  EXPECT_TRUE(rwc.reads({0, 0, 0}));
  const auto w_rwc = [](Ordering s, Ordering l) {
    return explore({seq({store(x, 1), store(y, 1, s)}), seq({load(y, l), fence(sc), load(z)}),
                    seq({store(z, 1), fence(sc), load(x)})});
  };
  EXPECT_FALSE(w_rwc(rel, acq).reads({1, 0, 0}));
  EXPECT_TRUE(w_rwc(rlx, acq).reads({1, 0, 0}));
}

TEST(Litmus, WriteToReadCausality) {
  const auto wrc = [](Ordering s, Ordering l) {
    return explore({store(x, 1, s), seq({load(x, l), store(y, 1, s)}), seq({load(y, l), load(x)})});
  };
  EXPECT_FALSE(wrc(rel, acq).reads({1, 1, 0}));
  EXPECT_TRUE(wrc(rlx, rlx).reads({1, 1, 0}));
  const auto isa2 = explore({seq({store(x, 1), store(y, 1, rel)}),
                             seq({load(y, acq), store(z, 1, rel)}), seq({load(z, acq), load(x)})});
  EXPECT_FALSE(isa2.reads({1, 1, 0}));
}

TEST(Litmus, TwoPlusTwoWrites) {
  const auto last = [](const std::vector<Body>& between, Ordering order) {
    return explore({seq({store(x, 1, order), seq(between), store(y, 2, order)}),
                    seq({store(y, 1, order), seq(between), store(x, 2, order)})});
  };
  EXPECT_TRUE(last({}, rlx).reads({1, 1, 0}));
  EXPECT_EQ(last({}, rlx).executions, 4U);
  EXPECT_TRUE(last({}, rel).reads({1, 1, 0}));
  EXPECT_FALSE(last({fence(sc)}, rlx).reads({1, 1, 0}));
  EXPECT_EQ(last({fence(sc)}, rlx).executions, 3U);
}

TEST(Litmus, R) {
  const auto r = [](const std::vector<Body>& between) {
    return explore(
        {seq({store(x, 1), seq(between), store(y, 1)}), seq({store(y, 2), seq(between), load(x)})});
  };
  EXPECT_TRUE(r({}).reads({0, 1, 2}));
  EXPECT_TRUE(r({fence(acq_rel_)}).reads({0, 1, 2}));
  EXPECT_FALSE(r({fence(sc)}).reads({0, 1, 2}));
}

TEST(Litmus, S) {
  const auto s = [](Ordering st, Ordering ld) {
    return explore({seq({store(x, 2), store(y, 1, st)}), seq({load(y, ld), store(x, 1)})});
  };
  EXPECT_FALSE(s(rel, acq).reads({1, 2}));
  EXPECT_TRUE(s(rlx, acq).reads({1, 2}));
  EXPECT_TRUE(s(rel, rlx).reads({1, 2}));
}

TEST(Litmus, ReleaseSequences) {
  // An update passes on what the write it replaces released, whoever does it.
  const auto by_update = [](const Body& update) {
    return explore({seq({store(x, 1), store(y, 1, rel)}), update, seq({load(y, acq), load(x)})});
  };
  EXPECT_FALSE(by_update(add(y, 1)).reads({1, 2, 0}));
  const Body exchange = [](Thread& t) { t.exchange(y, 2, rlx); };
  EXPECT_FALSE(by_update(exchange).reads({1, 2, 0}));
  // A store breaks the sequence ...
  EXPECT_TRUE(by_update(store(y, 2)).reads({2, 0}));
  // ... since C++20 also one of the same thread.
  EXPECT_TRUE(
      explore({seq({store(x, 1), store(y, 1, rel), store(y, 2)}), seq({load(y, acq), load(x)})})
          .reads({2, 0}));
  // After a release fence each store heads one.
  EXPECT_FALSE(explore({seq({store(x, 1), fence(rel), store(y, 1), store(y, 2)}),
                        seq({load(y, acq), load(x)})})
                   .reads({2, 0}));
}

TEST(Litmus, Updates) {
  EXPECT_EQ(explore({add(x, 1), add(x, 1), add(x, 1)}).executions, 6U);
  EXPECT_EQ(explore({add(x, 1), add(x, 1), add(x, 1), add(x, 1)}).executions, 24U);
  const Body claim = [](Thread& t) { t.compare_exchange(x, 0, t.id() + 1, acq_rel_); };
  const auto claims = explore({claim, claim});
  EXPECT_EQ(claims.executions, 2U);
  EXPECT_FALSE(claims.reads({0, 0}));
  EXPECT_TRUE(claims.reads({0, 1}));
  const auto set = [](Word bits, Ordering order) {
    return Body([=](Thread& t) { t.fetch_or(x, bits, order); });
  };
  EXPECT_FALSE(explore({set(1, rlx), set(1, rlx)}).reads({0, 0}));
  EXPECT_TRUE(explore({set(1, rlx), set(6, rlx), set(2, rlx)}).reads({0, 1, 7}));
  // It goes on with what others have released.
  const auto gone_on =
      explore({seq({store(y, 1), store(x, 1, rel)}), set(2, rlx), seq({load(x, acq), load(y)})});
  EXPECT_TRUE(gone_on.reads({1, 3, 1}));
  EXPECT_FALSE(gone_on.reads({1, 3, 0}));
  // Updates are no fences: store buffering around them is allowed.
  EXPECT_TRUE(
      explore({seq({add(x, 1, acq_rel_), load(y, acq)}), seq({add(y, 1, acq_rel_), load(x, acq)})})
          .reads({0, 0, 0, 0}));
}

TEST(Litmus, FailedCompareExchangeOnlyReads) {
  const auto cas = [](Ordering order) {
    return explore({seq({store(x, 1), store(y, 1, rel)}),
                    seq({[order](Thread& t) { t.compare_exchange(y, 7, 8, order); }, load(x)})});
  };
  EXPECT_FALSE(cas(acq_rel_).reads({1, 0}));
  EXPECT_FALSE(cas(acq).reads({1, 0}));
  EXPECT_TRUE(cas(rel).reads({1, 0}));
}

TEST(Litmus, PlainData) {
  const auto handed_over = [](Ordering s, Ordering l) {
    return verdict({seq({write(x, 1), store(y, 1, s)}), seq({await(y, 1, l), read(x)})});
  };
  EXPECT_EQ(handed_over(rel, acq), Verdict::holds);
  EXPECT_EQ(handed_over(rlx, acq), Verdict::race);
  EXPECT_EQ(handed_over(rel, rlx), Verdict::race);
  EXPECT_EQ(verdict({seq({write(x, 1), fence(rel), store(y, 1)}),
                     seq({await(y, 1), fence(acq), read(x)})}),
            Verdict::holds);
  EXPECT_EQ(verdict({read(x), read(x)}), Verdict::holds);
  EXPECT_EQ(verdict({write(x, 1), read(x)}), Verdict::race);
  EXPECT_EQ(verdict({read(x), write(x, 1)}), Verdict::race);
  EXPECT_EQ(verdict({write(x, 1), write(x, 1)}), Verdict::race);
}

TEST(Litmus, Waits) {
  EXPECT_EQ(verdict({await(x, 1), store(x, 1)}), Verdict::holds);
  EXPECT_EQ(verdict({await(x, 1), store(x, 2)}), Verdict::hang);
  EXPECT_EQ(verdict({seq({await(x, 1), store(y, 1)}), seq({await(y, 1), store(x, 1)})}),
            Verdict::hang);
  // A signal that is taken back can be missed.
  EXPECT_EQ(verdict({await(x, 1), seq({store(x, 1), store(x, 0)})}), Verdict::hang);
  EXPECT_EQ(verdict({seq({store(x, 1), store(x, 0)}), await(x, 1)}), Verdict::hang);
  EXPECT_EQ(verdict({await(x, 1), seq({store(x, 1), store(x, 0), store(x, 1)})}), Verdict::holds);
  const Body any = [](Thread& t) {
    const Predicate set(equals(1));
    const std::size_t which =
        t.await_first({{x, set, acq, Site::here()}, {y, set, acq, Site::here()}});
    t.check(t.read(z) == 1, "the data of whichever came");
    t.check(which < 2, "an index");
  };
  EXPECT_EQ(verdict({any, seq({write(z, 1), store(y, 1, rel)})}), Verdict::holds);
  EXPECT_EQ(verdict({any, seq({write(z, 1), store(y, 1)})}), Verdict::race);
  EXPECT_EQ(verdict({any, store(z, 1)}), Verdict::hang);
}

TEST(Explorer, EndsEndlessPrograms) {
  const Body looks = [](Thread& t) {
    while (t.load(x, acq) == 0) {
    }
  };
  const Body takes = [](Thread& t) {
    while (t.exchange(x, 1, acq) != 0) {
    }
    t.store(x, 0, rel);
  };
  EXPECT_EQ(verdict({looks, store(x, 1)}), Verdict::endless);
  EXPECT_EQ(verdict({store(x, 1), looks}), Verdict::endless);
  EXPECT_EQ(verdict({takes, takes, takes}), Verdict::endless);
  EXPECT_EQ(verdict({[](Thread& t) {
              for (Word i = 0; i < 100; ++i) t.store(x, i, rlx);
            }}),
            Verdict::holds);
}

TEST(Explorer, DemandsThatSomethingCompletes) {
  Program program{.name = "never done", .threads = 2};
  const Location where = program.memory.add(0, "x");
  program.body = [where](Thread& self) {
    if (self.id() == 0) self.store(where, 1, rlx);
    if (self.id() == 1 && self.choose(1) == 0) self.await(where, Predicate(equals(2)), rlx);
  };
  Options options;
  options.hangs_allowed_after_choice = false;
  EXPECT_EQ(Explorer(program, options).explore().verdict, Verdict::hang);
  program.body = [where](Thread& self) {
    if (self.choose(2) == 0) self.check(false, "never");
    self.await(where, Predicate(equals(2)), rlx);
  };
  options.hangs_allowed_after_choice = true;
  options.stop_at_violation = false;
  const Result result = Explorer(program, options).explore();
  EXPECT_EQ(result.executions, 0U);
  EXPECT_NE(result.verdict, Verdict::holds);
}

TEST(Explorer, RefusesWhatItCannotDo) {
  Program program{.name = "fickle", .threads = 1};
  const Location where = program.memory.add(0, "x");
  int runs = 0;
  program.threads = 2;
  program.body = [&](Thread& self) {
    self.store(where, static_cast<Word>(++runs), rlx);  // not a function of what it reads
    self.load(where, rlx);
  };
  EXPECT_THROW(Explorer(program, {}).explore(), Error);
  program.threads = max_threads + 1;
  EXPECT_THROW(Explorer(program, {}), Error);
}

TEST(Explorer, ChecksCompleteExecutions) {
  Program program = make({store(x, 1), store(x, 2)});
  program.at_end = [](const Graph& graph) -> const char* {
    return graph.newest_value(x) == 2 ? nullptr : "the last store is not the second's";
  };
  const Result result = Explorer(program, {}).explore();
  EXPECT_EQ(result.verdict, Verdict::violated);
}

// A plain write comes after what was written there before, as any other.
TEST(Fences, GoWithPlainWritesBetween) {
  EXPECT_EQ(Verdict::holds, verdict({[](Thread& t) {
                                       t.write(x, 1);
                                       t.store(y, 1, rel);
                                       t.await(y, Predicate(equals(2)), acq);
                                       t.fence(sc);
                                       t.write(x, 2);
                                       t.await(z, Predicate(equals(1)), rlx);
                                     },
                                     [](Thread& t) {
                                       t.await(y, Predicate(equals(1)), acq);
                                       t.read(x);
                                       t.fence(sc);
                                       t.store(y, 2, rel);
                                       t.store(z, 1, rlx);
                                     }}));
}

// Begun, a participant has done what comes first, once, and does the rest in each execution.
TEST(Begun, ProgramsGoOnFromTheMiddle) {
  Program program = make({[](Thread& self) {
                            self.fetch_add(x, 2, rlx);
                            self.store(y, self.await(x, Predicate(Equals{3}), acq), rlx);
                          },
                          [](Thread& self) {
                            self.write(z, self.fetch_add(x, 1, rlx));
                            self.load(y, rlx);
                            self.load(y, rlx);
                          }});
  begin(program, {{0}, {1, y, 1}, {0}});
  EXPECT_EQ(3U, program.memory.initial(x));
  EXPECT_EQ(3U, program.memory.initial(y));
  EXPECT_EQ(2U, program.memory.initial(z));
  Options options;
  int events = 0;
  options.on_execution = [&](const Graph& graph) { events += graph.size(0) + graph.size(1); };
  EXPECT_EQ(1U, Explorer(program, options).explore().executions);
  EXPECT_EQ(1, events);
}

TEST(Begun, AWaitThatIsNotOverIsExplored) {
  Program program =
      make({[](Thread& self) { self.store(y, self.await(x, Predicate(Equals{1}), acq), rlx); },
            [](Thread& self) { self.store(x, 1, rel); }});
  begin(program, {{0}});
  EXPECT_EQ(1U, Explorer(program, {}).explore().executions);
  EXPECT_EQ(0U, program.memory.initial(y));
}

TEST(Litmus, WhatIsNotModelledIsRefused) {
  const Body plain = [](Thread& t) { t.write(x, 1); };
  const Body atomic = [](Thread& t) { t.load(x, rlx); };
  for (const auto& bodies : {std::vector{plain, atomic}, std::vector{atomic, plain}}) {
    EXPECT_THROW(explore(bodies), Error) << "a word that is plain data and an atomic";
  }
  EXPECT_THROW(explore({[](Thread& t) { t.load(x, sc); }}), Error) << "an SC access";
}

}  // namespace
}  // namespace muster::check
