// SPDX-License-Identifier: BSD-3-Clause
// What single operations cost, calculated by hand.
#include <gtest/gtest.h>

#include <stdexcept>

#include "machine/error.hpp"
#include "small_machine.hpp"

namespace muster::sim {
namespace {

using EngineTest = SmallMachine;

TEST_F(EngineTest, AMissGoesToMemoryAHitDoesNot) {
  play({{0, [&](Modelled& m) {
           m.load(cell(0), acquire);
           EXPECT_EQ(clock(m), within + from_ns(50));
           m.load(cell(0), acquire);
           EXPECT_EQ(clock(m), within + from_ns(51));
           m.engine().set_home(1, 2);  // in the other die's memory
           m.load(cell(1), acquire);
           EXPECT_EQ(clock(m), within + across + from_ns(51 + 50));
         }}});
}

TEST_F(EngineTest, LinesThatAreExpectedComeMeanwhileAsManyAsStoresMayAwait) {
  parameters_.store_overlap = 2;
  play({{0, [&](Modelled& m) {
           const Time miss = across + from_ns(50);
           for (unsigned n = 0; n < 3; ++n) {
             m.engine().set_home(n, 2);
             m.expect_load(cell(n));
           }
           m.engine().delay(0, across);
           m.load(cell(0), acquire);
           EXPECT_EQ(clock(m), miss) << "the rest of the way";
           m.load(cell(1), acquire);
           EXPECT_EQ(clock(m), miss + from_ns(1)) << "it is here";
           m.load(cell(2), acquire);
           EXPECT_EQ(clock(m), miss + from_ns(1) + miss) << "one too many";
         }}});
}

TEST_F(EngineTest, AnOwnerAddsUntilTheOthersRequestHasCome) {
  // Within 10 ns: the request is there after 5, when the owner's second addition has begun.
  mechanisms_ = mechanisms_.without(Mechanism::ll_sc);
  parameters_.owner_hold = 1;
  for (const bool holds : {false, true}) {
    if (!holds) mechanisms_ = mechanisms_.without(Mechanism::owner_hold);
    Time first_is_done = 0;
    std::vector<Time> others;
    const Time begin = from_ns(100);
    play({{0,
           [&](Modelled& m) {
             m.fetch_add(cell(0), 1, acq_rel);  // has the line
             m.engine().delay(0, begin - clock(m));
             for (int n = 0; n < 3; ++n) m.fetch_add(cell(0), 1, acq_rel);
             first_is_done = clock(m);
           }},
          {1,
           [&](Modelled& m) {
             for (int n = 0; n < 2; ++n) {
               m.fetch_add(cell(0), 1, acq_rel);
               others.push_back(clock(m));
             }
           },
           begin + 1}});
    EXPECT_EQ(cell(0).value, 6U);
    ASSERT_EQ(others.size(), 2U);
    if (holds) {
      // 5 ns after the second addition of the first. Its own second one hits: the request that the
      // first makes for its third is served 5 ns after the line has come, during this one or after.
      EXPECT_EQ(others[0], begin + from_ns(6 + 5));
      EXPECT_EQ(others[1], others[0] + from_ns(3));
      EXPECT_EQ(first_is_done, others[0] + from_ns(5 + 5));
    } else {
      // 10 ns after the first addition. Then the line goes back and forth.
      EXPECT_EQ(others[0], begin + from_ns(3 + 10));
      EXPECT_EQ(first_is_done, others[0] + from_ns(10 + 10 + 10));
    }
    mechanisms_ = Mechanisms::all().without(Mechanism::ll_sc);
  }
}

TEST_F(EngineTest, WaitsForOneCellAfterAnotherRunAhead) {
  // The second time the order is known, and the misses overlap.
  parameters_.run_ahead = 8;
  for (const bool ahead : {false, true}) {
    mechanisms_ = ahead ? Mechanisms::all() : Mechanisms::all().without(Mechanism::run_ahead);
    Time took = 0;
    const auto at = [](int round) { return from_ns(2000 * (round + 1)); };
    play({{0,
           [&](Modelled& m) {
             for (int round = 0; round < 2; ++round) {
               m.engine().delay(0, at(round) - clock(m));
               for (unsigned n = 0; n < 4; ++n) m.store(cell(n), Word(round + 1), release);
             }
           }},
          {2, [&](Modelled& m) {
             for (int round = 0; round < 2; ++round) {
               m.engine().delay(2, at(round) + from_ns(1000) - clock(m));
               const Time begin = clock(m);
               for (unsigned n = 0; n < 4; ++n) {
                 m.await(cell(n), equals(Word(round + 1)), acquire);
               }
               took = clock(m) - begin;
             }
           }}});
    if (ahead) {
      EXPECT_LE(took, across + from_ns(20));
    } else {
      EXPECT_GE(took, 4 * across);
    }
  }
}

TEST_F(EngineTest, WhoRunsAheadOfAStoreLooksAgain) {
  // What it waits for second changes while the first is being read: it is read at the next look,
  // not when the first has come.
  parameters_.run_ahead = 8;
  parameters_.poll_turn_ns = 6;
  Time took = 0;
  const auto at = [](int round) { return from_ns(2000 * (round + 1)); };
  play({{0,
         [&](Modelled& m) {
           for (int round = 0; round < 2; ++round) {
             m.engine().delay(0, at(round) - clock(m));
             m.store(cell(0), Word(round + 1), release);
           }
         }},
        {1,
         [&](Modelled& m) {
           for (int round = 0; round < 2; ++round) {
             m.engine().delay(1, at(round) + from_ns(1000) - from_ns(50) - clock(m));
             m.store(cell(1), Word(round + 1), release);
           }
         }},
        {2, [&](Modelled& m) {
           for (int round = 0; round < 2; ++round) {
             m.engine().delay(2, at(round) + from_ns(1000) - clock(m));
             const Time begin = clock(m);
             for (unsigned n = 0; n < 2; ++n) m.await(cell(n), equals(Word(round + 1)), acquire);
             took = clock(m) - begin;
           }
         }}});
  EXPECT_GT(took, from_ns(150));
  EXPECT_LT(took, from_ns(150 + 20));
}

TEST_F(EngineTest, ALineComesLaterThanThePermissionToChangeIt) {
  parameters_.line_data_ns = 30;
  mechanisms_ = mechanisms_.without(Mechanism::ll_sc);
  for (const bool later : {true, false}) {
    if (!later) mechanisms_ = mechanisms_.without(Mechanism::line_data);
    const Time data = later ? from_ns(30) : 0;
    Time took_line = 0;
    Time took_permission = 0;
    play({{0,
           [&](Modelled& m) {
             m.load(cell(1), acquire);  // from memory: that is a matter of `memory`
             EXPECT_EQ(clock(m), within + from_ns(50));
             m.store(cell(0), 1, release);
             m.engine().delay(0, from_ns(2000) - clock(m));
             m.fetch_add(cell(1), 1, acq_rel);  // has a copy, and nobody changes the line
             took_permission = clock(m);
           }},
          {1,
           [&](Modelled& m) {
             m.fetch_add(cell(0), 1, acq_rel);  // the other core's line
             took_line = clock(m);
           },
           from_ns(1000)}});
    EXPECT_EQ(took_line, from_ns(1000) + within + data);
    EXPECT_EQ(took_permission, from_ns(2000) + within);
  }
}

TEST_F(EngineTest, StoresOverlapAndCommitInOrder) {
  Time last = 0;
  Time reader = 0;
  const auto stores = [&](Modelled& m) {
    for (unsigned n = 0; n < 8; ++n) m.store(cell(n), 1, release);
    m.fetch_add(cell(8), 1, acq_rel);  // after all of them
    last = clock(m);
  };
  const auto sees_order = [&](Modelled& m) {
    m.await(cell(7), equals(1), acquire);
    for (unsigned n = 0; n < 7; ++n) EXPECT_EQ(m.load(cell(n), relaxed), 1U);
    reader = clock(m);
  };
  play({{0, stores}, {2, sees_order}});
  const Time overlapped = last;
  EXPECT_GT(reader, 0);
  mechanisms_ = mechanisms_.without(Mechanism::store_overlap);
  play({{0, stores}, {2, sees_order}});
  EXPECT_GT(last, overlapped + 6 * from_ns(50));
}

TEST_F(EngineTest, ACoreSeesItsOwnPendingStore) {
  play({{0, [&](Modelled& m) {
           m.store(cell(0), 7, release);
           const Time before = clock(m);
           EXPECT_EQ(cell(0).value, 0U);  // what everybody else would see
           EXPECT_EQ(m.load(cell(0), acquire), 7U);
           EXPECT_EQ(clock(m), before + from_ns(1));
         }}});
  EXPECT_EQ(cell(0).value, 7U);
}

TEST_F(EngineTest, AtomicsNeverLoseAnUpdate) {
  for (const bool ll_sc : {true, false}) {
    mechanisms_ = ll_sc ? Mechanisms::all() : Mechanisms::all().without(Mechanism::ll_sc);
    std::vector<Part> parts;
    for (unsigned p = 0; p < 4; ++p) {
      parts.push_back({p, [&](Modelled& m) {
                         for (int n = 0; n < 50; ++n) {
                           m.fetch_add(cell(0), 1, acq_rel);
                           Word seen = m.load(cell(1), relaxed);
                           while (!m.compare_exchange(cell(1), seen, seen + 1, acq_rel)) {
                           }
                         }
                       }});
    }
    play(parts);
    EXPECT_EQ(cell(0).value, 200U);
    EXPECT_EQ(cell(1).value, 200U);
  }
}

TEST_F(EngineTest, PollingASetOverlapsItsMisses) {
  Time overlapped = 0;
  Time one_by_one = 0;
  const auto poll = [&](Time& took) {
    play({{2,
           [&](Modelled& m) {
             for (unsigned n = 0; n < 8; ++n) m.store(cell(n), 1, release);
           }},
          {0,
           [&](Modelled& m) {
             std::vector<Line*> set;
             for (unsigned n = 0; n < 8; ++n) set.push_back(&cell(n));
             EXPECT_TRUE(m.await_all(set, equals(1), acquire));
             took = clock(m) - from_ns(5000);
           },
           from_ns(5000)}});
  };
  poll(overlapped);
  mechanisms_ = mechanisms_.without(Mechanism::poll_overlap);
  poll(one_by_one);
  EXPECT_LT(overlapped, 2 * across);
  EXPECT_GT(one_by_one, 8 * across);
}

TEST_F(EngineTest, AwaitAnyReturnsAReadyCell) {
  play({{0,
         [&](Modelled& m) {
           std::vector<Line*> set{&cell(0), &cell(1), &cell(2)};
           EXPECT_EQ(m.await_any(set, equals(1), acquire), 1U);
           EXPECT_EQ(m.await_any(set, equals(1), acquire, 2), 1U);
           EXPECT_EQ(m.await_any(set, equals(2), acquire, 2), 2U);
         }},
        {2,
         [&](Modelled& m) {
           m.store(cell(1), 1, release);
           m.engine().delay(2, from_ns(5000));
           m.store(cell(2), 2, release);
         },
         from_ns(500)}});
}

TEST_F(EngineTest, AWaitThatEndsAtOnceEndsOnce) {
  // The first wait leaves a far read on its way, which comes when the second one is over already:
  // hits have let the participant's clock run ahead of it.
  play({{2, [&](Modelled& m) {
           m.engine().set_home(1, 2);
           std::vector<Line*> set{&cell(0), &cell(1)};
           EXPECT_EQ(m.await_any(set, equals(0), acquire, 1), 1U);
           for (int n = 0; n < 200; ++n) m.load(cell(1), acquire);
           EXPECT_EQ(m.await_any(set, equals(0), acquire, 1), 1U);
           const Time begin = clock(m);
           m.engine().delay(2, from_ns(1000));
           EXPECT_EQ(clock(m), begin + from_ns(1000));
         }}});
}

TEST_F(EngineTest, AReadAheadThatComesLateEndsNoOtherWait) {
  // Another reader delays the read ahead of cell 1, and the participant stores to that cell and
  // waits for it before what it has read comes.
  parameters_.run_ahead = 8;
  parameters_.read_occupancy_ns = 300;
  const auto at = [](Modelled& m, double ns) {
    m.engine().delay(m.participant(), from_ns(ns) - m.engine().clock(m.participant()));
  };
  play({{0,
         [&](Modelled& m) {
           m.store(cell(0), 1, release);
           m.store(cell(1), 1, release);
           at(m, 3500);
           m.store(cell(1), 2, release);
           at(m, 4000);
           m.store(cell(0), 2, release);
           at(m, 9000);
           m.store(cell(1), 9, release);
         }},
        {1,
         [&](Modelled& m) {
           at(m, 4100);
           m.load(cell(1), acquire);
         }},
        {2, [&](Modelled& m) {
           m.await(cell(0), equals(1), acquire);
           m.await(cell(1), equals(1), acquire);  // it knows what comes after cell 0 from now on
           m.await(cell(0), equals(2), acquire);
           EXPECT_LT(clock(m), from_ns(4300));
           m.store(cell(1), 3, release);
           m.await(cell(1), equals(9), acquire);
           EXPECT_GT(clock(m), from_ns(9000));
         }}});
}

TEST_F(EngineTest, AStoreBufferChecksItsBounds) {
  StoreBuffer buffer(1);
  EXPECT_THROW(buffer.front(), Error);
  EXPECT_THROW(buffer.pop(), Error);
  Line line;
  buffer.push(line, 1);
  EXPECT_THROW(buffer.push(line, 2), Error);
  EXPECT_THROW(buffer.at(1), Error);
  EXPECT_EQ(buffer.front().value, 1U);
}

TEST_F(EngineTest, TwoMessagesShareALine) {
  for (const bool slots : {true, false}) {
    if (!slots) mechanisms_ = mechanisms_.without(Mechanism::message_slots);
    const auto mailboxes = [&](Modelled& m) {
      return Mailboxes<Modelled>(2, 0, Modelled::Cells(m.engine(), 0, 4));
    };
    play({{0,
           [&](Modelled& m) {
             auto traffic = mailboxes(m).traffic(0);
             for (int n = 0; n < 3; ++n) mailboxes(m).send(m, traffic, 1);
           }},
          {1,
           [&](Modelled& m) {
             auto traffic = mailboxes(m).traffic(1);
             for (int n = 0; n < 3; ++n) EXPECT_TRUE(mailboxes(m).receive(m, traffic, 0));
           },
           from_ns(500)}});
    // The third message fills the second line, and so the first one's slot is cleared: for the
    // fourth, which would be there if it said 4.
    EXPECT_EQ(cell(4).value, slots ? 2U : 3U);
    EXPECT_EQ(cell(5).value, slots ? 3U : 0U);
  }
}

TEST_F(EngineTest, OneOfEachIsTakenInTheOrderInWhichTheyCome) {
  parameters_.message_ns = 1000;
  const auto mailboxes = [](Modelled& m) {
    return Mailboxes<Modelled>(3, 0, Modelled::Cells(m.engine(), 0, 6));
  };
  const auto sends = [&](Modelled& m) {
    auto traffic = mailboxes(m).traffic(m.participant());
    mailboxes(m).send(m, traffic, 0);
  };
  play({{0,
         [&](Modelled& m) {
           auto traffic = mailboxes(m).traffic(0);
           EXPECT_TRUE(mailboxes(m).receive_from_others(m, traffic));
           EXPECT_GT(clock(m), from_ns(10000 + 2 * 1000));
           EXPECT_LT(clock(m), from_ns(10000 + 3 * 1000));  // the first one's is over long ago
         }},
        {1, sends, from_ns(10000)},
        {2, sends}});
}

TEST_F(EngineTest, WhoSendsSynchronouslyWaitsForTheReceiver) {
  parameters_.message_ns = 1000;
  const auto mailboxes = [](Modelled& m) {
    return Mailboxes<Modelled>(2, 0, Modelled::Cells(m.engine(), 0, 4));
  };
  play({{0,
         [&](Modelled& m) {
           auto traffic = mailboxes(m).traffic(0);
           EXPECT_TRUE(mailboxes(m).send_synchronously(m, traffic, 1));
           EXPECT_GT(clock(m), from_ns(10000 + 1000));
           EXPECT_LT(clock(m), from_ns(10000 + 2 * 1000));  // a receipt is no call
         }},
        {1,
         [&](Modelled& m) {
           auto traffic = mailboxes(m).traffic(1);
           EXPECT_TRUE(mailboxes(m).receive_and_confirm(m, traffic, 0));
         },
         from_ns(10000)}});
}

TEST_F(EngineTest, WhatAParticipantThrowsComesOut) {
  EXPECT_THROW(play({{0, [&](Modelled& m) { m.await(cell(0), equals(1), acquire); }},
                     {1, [](Modelled&) { throw std::out_of_range("mine"); }, from_ns(10)}}),
               std::out_of_range);
}

}  // namespace
}  // namespace muster::sim
