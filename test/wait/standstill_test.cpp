// SPDX-License-Identifier: BSD-3-Clause
// Participants of imagined barriers, interleaved at random, one access at a time: no standstill is
// told that is none, and none that is one goes untold.
#include "wait/standstill.hpp"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace muster::test {
namespace {

/// One participant's step: awaits that all these cells have come to the episode, or stores one.
struct Step {
  std::vector<unsigned> awaits;
  int stores = -1;
};

struct Barrier {
  std::vector<std::vector<Step>> steps;  // by rank
  unsigned cells = 0;
};

Barrier linear(unsigned ranks) {
  Barrier barrier{{{{}, {{}, 0}}}, ranks};
  for (unsigned rank = 1; rank < ranks; ++rank) {
    barrier.steps[0][0].awaits.push_back(rank);
    barrier.steps.push_back({{{}, static_cast<int>(rank)}, {{0}}});
  }
  return barrier;
}

Barrier dissemination(unsigned ranks) {
  Barrier barrier{std::vector<std::vector<Step>>(ranks), 0};
  for (unsigned distance = 1; distance < ranks; distance *= 2, barrier.cells += ranks) {
    for (unsigned rank = 0; rank < ranks; ++rank) {
      const unsigned partner = (rank + distance) % ranks;
      barrier.steps[rank].push_back({{}, static_cast<int>(barrier.cells + partner)});
      barrier.steps[rank].push_back({{barrier.cells + rank}});
    }
  }
  return barrier;
}

/// A chain there, and a chain back, in any order of ranks.
Barrier chain(unsigned ranks, unsigned seed) {
  Barrier barrier{std::vector<std::vector<Step>>(ranks), 2 * ranks};
  std::mt19937 random(seed);
  for (unsigned at = 0; at < ranks; ++at) {
    std::vector<Step> steps;
    if (at > 0) steps.push_back({{at - 1}});
    steps.push_back({{}, static_cast<int>(at)});
    if (at + 1 < ranks) steps.push_back({{ranks + at + 1}});
    steps.push_back({{}, static_cast<int>(ranks + at)});
    barrier.steps[at] = steps;
  }
  for (unsigned at = ranks; at > 1; --at) {
    std::swap(barrier.steps[at - 1], barrier.steps[random() % at]);
  }
  return barrier;
}

class World {
 public:
  World(Barrier barrier, unsigned episodes, unsigned seed)
      : barrier_(std::move(barrier)),
        episodes_(episodes),
        cells_(barrier_.cells),
        ranks_(barrier_.steps.size()),
        random_(seed) {}

  /// A peer writes nonsense, if anything that is waited for.
  void spoil() {
    const unsigned cell = below(barrier_.cells);
    cells_[cell] -= 1 + static_cast<int>(below(3));
  }

  /// Somebody's next access. False if he has found a standstill.
  bool act() {
    if (below(4) == 0) running_ = below(static_cast<unsigned>(ranks_.size()));
    const unsigned rank = running_;
    Rank& own = ranks_[rank];
    if (own.stopped > 0) {
      --own.stopped;
      return true;
    }
    if (below(16) == 0) own.stopped = below(1U << below(10));
    if (own.sweep >= 0) return sweep(rank);
    if (own.failed && below(2) == 0) {
      own.sweep = 0;
      own.standstill.begin(own.wait);
      return true;
    }
    go_on(rank);
    return true;
  }

  bool have_finished() const {
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
      if (!has_finished(rank)) return false;
    }
    return true;
  }

 private:
  struct Rank {
    int phase = 0;
    unsigned at = 0;
    std::int64_t wait = 1;
    bool failed = false;  // its last look
    int sweep = -1;       // twice whom it looks at, and one more once it has seen its phase
    int theirs = 0;
    unsigned stopped = 0;
    Standstill standstill;
    Word published = 0;
  };

  unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }
  bool has_finished(unsigned rank) const {
    return ranks_[rank].phase == 2 * static_cast<int>(episodes_);
  }
  bool is_inside(unsigned rank) const { return ranks_[rank].phase % 2 != 0; }
  bool passes(unsigned rank) const {
    const Rank& own = ranks_[rank];
    if (own.at == barrier_.steps[rank].size()) return true;
    for (const unsigned cell : barrier_.steps[rank][own.at].awaits) {
      if (cells_[cell] < own.phase / 2 + 1) return false;
    }
    return true;
  }

  void go_on(unsigned rank) {
    Rank& own = ranks_[rank];
    if (has_finished(rank)) return;
    if (!is_inside(rank)) {
      ++own.phase;
      own.at = 0;
      return;
    }
    own.failed = !passes(rank);
    if (own.failed) return;
    if (own.at == barrier_.steps[rank].size()) {
      ++own.phase;
      return;
    }
    const Step& step = barrier_.steps[rank][own.at++];
    if (step.stores >= 0) cells_[step.stores] = own.phase / 2 + 1;
    ++own.wait;
  }

  bool sweep(unsigned rank) {
    Rank& own = ranks_[rank];
    const unsigned whom = own.sweep / 2;
    if (whom == ranks_.size()) {
      own.sweep = -1;
      own.failed = false;  // looks again before it sweeps again
      const bool stands = own.standstill.end();
      own.published = own.standstill.word();
      if (stands) own.failed = true;
      return !stands;
    }
    const Rank& other = ranks_[whom];
    if (own.sweep % 2 == 0) {
      own.theirs = other.phase;
    } else if (own.theirs < own.phase) {
      own.standstill.forget();
      own.sweep = -1;
      own.failed = false;
      return true;
    } else if (whom != rank && own.theirs == own.phase) {
      own.standstill.see(other.published);
    }
    ++own.sweep;
    return true;
  }

  Barrier barrier_;
  unsigned episodes_;
  std::vector<int> cells_;
  std::vector<Rank> ranks_;
  std::mt19937 random_;
  unsigned running_ = 0;
};

Barrier any_barrier(unsigned seed) {
  const unsigned ranks = 2 + seed % 4;
  switch (seed / 4 % 3) {
    case 0:
      return linear(ranks);
    case 1:
      return dissemination(ranks);
    default:
      return chain(ranks, seed);
  }
}

void expect_not_told(World world, unsigned seed) {
  for (unsigned i = 0; i < 1'000'000 && !world.have_finished(); ++i) {
    ASSERT_TRUE(world.act()) << seed;
  }
  ASSERT_TRUE(world.have_finished()) << seed;
}

TEST(Standstill, IsNotToldWhileSomebodyCanBeReleased) {
  for (unsigned seed = 1; seed <= 3'000; ++seed) {
    expect_not_told(World(any_barrier(seed), 6, seed), seed);
  }
  // Without forget() these are told.
  for (const unsigned seed : {10'024U, 21'988U, 45'280U, 126'076U}) {
    expect_not_told(World(any_barrier(seed), 6, seed), seed);
  }
}

bool look(Standstill& own, const std::vector<const Standstill*>& others) {
  own.begin(1);
  for (const Standstill* other : others) own.see(other->word());
  return own.end();
}

// `next` awaits `done`, and `last` awaits `next`. `done` stores and goes, while `next` looks at him
// and at the others, and `last` at `next` and at him.
TEST(Standstill, IsNotToldAfterTwoRounds) {
  Standstill next;
  Standstill done;
  Standstill last;
  EXPECT_FALSE(look(last, {&next, &done}));
  EXPECT_FALSE(look(done, {&next, &last}));
  EXPECT_FALSE(look(last, {&next, &done}));  // round 1
  EXPECT_FALSE(look(done, {&next, &last}));
  EXPECT_FALSE(look(next, {&done, &last}));  // what `done` awaits has been stored: from 1
  EXPECT_FALSE(look(done, {&next, &last}));  // after an old look: round 2
  last.begin(1);
  last.see(next.word());
  EXPECT_FALSE(look(next, {&done, &last}));  // round 2
  next.begin(1);
  next.see(done.word());
  // Here `done` has stored, and gone: `last` does not see him any more.
  EXPECT_FALSE(last.end());
  EXPECT_FALSE(look(last, {&next}));
  next.see(last.word());
  EXPECT_FALSE(next.end());  // after an old look: round 3
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(look(last, {&next})) << i;
}

/// All look by turns; after how many turns it is told.
int turns_until_told(std::vector<Standstill>& all) {
  for (int turn = 1; turn <= 100; ++turn) {
    for (Standstill& own : all) {
      std::vector<const Standstill*> others;
      for (const Standstill& other : all) {
        if (&other != &own) others.push_back(&other);
      }
      if (look(own, others)) return turn;
    }
  }
  return 0;
}

TEST(Standstill, IsToldSoon) {
  std::vector<Standstill> all(4);
  EXPECT_EQ(turns_until_told(all), 5);
  all.resize(5);  // one that has waited less often
  const int turns = turns_until_told(all);
  EXPECT_GE(turns, 1);
  EXPECT_LE(turns, 5);
}

// A word that is none is seen once.
TEST(Standstill, IsToldSoonAfterNonsense) {
  for (const Word round : {1'000U, 32'767U, 32'768U, 65'535U}) {
    for (const Word from : {0U, 1'000U, 32'767U, 40'000U}) {
      std::vector<Standstill> all(3);
      look(all[0], {&all[1], &all[2]});
      all[1].begin(1);  // joins, and not where all[0] is
      all[1].see(from << 16 | round);
      all[1].see(all[2].word());
      all[1].end();
      const int turns = turns_until_told(all);
      EXPECT_GE(turns, 1) << round << ' ' << from;
      EXPECT_LE(turns, 8) << round << ' ' << from;
    }
  }
}

TEST(Standstill, IsToldWhenNobodyCan) {
  unsigned told = 0;
  for (unsigned seed = 1; seed <= 3'000; ++seed) {
    World world(any_barrier(seed), 6, seed);
    for (unsigned i = 0; i < 100 + seed % 700; ++i) ASSERT_TRUE(world.act()) << seed;
    world.spoil();
    bool stands = false;
    for (unsigned i = 0; i < 1'000'000 && !stands && !world.have_finished(); ++i) {
      stands = !world.act();
    }
    ASSERT_TRUE(stands || world.have_finished()) << seed;
    told += stands ? 1 : 0;
  }
  EXPECT_GT(told, 300U);
}

}  // namespace
}  // namespace muster::test
