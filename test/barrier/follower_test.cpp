// SPDX-License-Identifier: BSD-3-Clause
// Barriers that follow participants whom nobody has bound: what is composed and when, what is
// handed over, and that a change loses nobody.
#include "fitting/follower.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "barrier/following.hpp"
#include "template_subject.hpp"

namespace muster::test {
namespace {

constexpr std::int64_t patience_ns = 30'000'000'000;
const char* const recipes[] = {"flat+line", "count2+line1x1", "rounds", "tree2+line2"};

Schedule made_of(const char* recipe, unsigned participants) {
  return compose_proved(nullptr, participants, parse_recipe(recipe), Room::cells);
}

/// Rank 0 is given another schedule whenever it looks.
class Restless : public TemplateSubject<Following<Hardware>, Hardware> {
 public:
  explicit Restless(const Shape& shape)
      : TemplateSubject(shape, WaitPolicy::oversubscribed(), patience_ns) {
    for (const char* recipe : recipes) packed_.push_back(pack(made_of(recipe, shape.participants)));
    port(0).set_hooks(
        {.compose = [](void* self,
                       std::span<const Word>) { return static_cast<Restless*>(self)->next(); },
         .context = this});
  }

  unsigned changes() const { return changes_; }

 private:
  std::span<const Word> next() { return packed_[changes_++ % packed_.size()]; }

  std::vector<std::vector<Word>> packed_;
  unsigned changes_ = 0;
};

TEST(Changes, LoseNobody) {
  const HangGuard guard(120);
  Random random(case_seed());
  for (const unsigned participants : {2U, 3U, 5U}) {
    for (const Word first : {Word{0}, ~Word{20}}) {
      Restless barrier(Shape{.participants = participants, .first_episode = first});
      EXPECT_EQ(run_trial({&barrier}, {.seed = random.next(), .episodes = rounds(4000)}), "")
          << participants << "\nreplay: " << replay_command();
      EXPECT_GE(barrier.changes(), 2U);  // by time: 4 and more but on a busy machine
    }
  }
}

TEST(Changes, LoseNoProcess) {
  const HangGuard guard(120);
  Restless barrier(Shape{.participants = 4});
  EXPECT_EQ(
      run_trial({&barrier}, {.seed = case_seed(), .episodes = rounds(4000), .processes = true}), "")
      << "replay: " << replay_command();
}

constexpr unsigned five = 5;

/// A rank's program out of words as some process may have left them.
bool take(const std::vector<Word>& words, unsigned rank, Program& program) {
  const auto read = [&](Word at) {
    EXPECT_LT(at, words.size());
    return words[at];
  };
  return take_packed(read, five, rank, program);
}

std::vector<Word> words_of(const char* recipe) {
  std::vector<Word> words = pack(made_of(recipe, five));
  words.resize(five * Room::words);
  return words;
}

TEST(Packed, IsWhatItWas) {
  for (const char* recipe : recipes) {
    const Schedule schedule = made_of(recipe, five);
    for (unsigned rank = 0; rank < five; ++rank) {
      Program program;
      ASSERT_TRUE(take(words_of(recipe), rank, program)) << recipe;
      std::size_t at = 2;
      for (unsigned s = schedule.programs[rank].arrivals; s < schedule.programs[rank].end; ++s) {
        if (s == schedule.programs[rank].departures) {
          EXPECT_EQ(program[1], at);
        }
        const Step& step = schedule.steps[s];
        EXPECT_EQ(program[at++], step.awaits);
        EXPECT_EQ(program[at++], step.stores);
        EXPECT_EQ(program[at++], step.adders);
        const unsigned cells = step.awaits + step.stores + (step.adders > 0 ? 1 : 0);
        for (unsigned n = 0; n < cells; ++n, ++at) {
          const CellAt& cell = schedule.cells[step.first_cell + n];
          EXPECT_EQ(program[at], cell.rank * Room::cells + cell.index);
        }
      }
      EXPECT_EQ(at, program[0]);
    }
  }
}

TEST(Packed, LeadsNowhereElse) {
  Random random(case_seed());
  unsigned taken = 0;
  unsigned refused = 0;
  Program program;
  for (unsigned round = 0; round < 20'000; ++round) {
    std::vector<Word> words = words_of(recipes[round % std::size(recipes)]);
    for (unsigned n = 1 + random.below(4); n > 0; --n) {
      const bool wild = random.below(4) == 0;
      words[random.below(static_cast<unsigned>(words.size()))] =
          wild ? static_cast<Word>(random.next()) : random.below(80);
    }
    const bool good = take(words, random.below(five), program);
    ++(good ? taken : refused);
    if (!good) continue;
    // As run_packed() goes through it.
    ASSERT_LE(program[0], program.size());
    bool departs = program[1] == program[0];
    std::size_t at = 2;
    while (at < program[0]) {
      departs = departs || at == program[1];
      ASSERT_LE(at + 3, program[0]);
      const Word adders = program[at + 2];
      const std::size_t end = at + 3 + program[at] + program[at + 1] + (adders > 0 ? 1 : 0);
      ASSERT_LE(end, program[0]);
      for (at += 3; at < end; ++at) ASSERT_LT(program[at], five * Room::cells);
      if (adders > 0) {
        ASSERT_LE(at, program[1]);
      }
    }
    ASSERT_TRUE(departs);
  }
  EXPECT_GT(taken, 0U);
  EXPECT_GT(refused, 0U);
}

TEST(Packed, DeclinesWhatHasNoRoom) {
  EXPECT_THROW(made_of("all", 64), Error);  // 63 flags each
  EXPECT_TRUE(pack(compose_proved(nullptr, 64, parse_recipe("flat+line"))).empty());
  EXPECT_TRUE(pack(made_of("flat+line", 64)).empty());  // the program of rank 0
  EXPECT_FALSE(pack(made_of("tree8+line8", 64)).empty());
}

struct Server {
  explicit Server(std::vector<Profile::Team> of_profile = {}) : teams(std::move(of_profile)) {}

  const Topology topology = Topology::from_synthetic("package:2 numa:2 core:8 pu:1");
  const std::vector<Profile::Team> teams;
  std::int64_t now = 0;
  std::int64_t call_takes = 0;
  unsigned calls = 0;
  Follower follower{topology, 16, costs_for(topology, false),
                    [this] {
                      ++calls;
                      return now += call_takes;
                    },
                    teams};

  /// Until it has tried everything.
  std::vector<Word> settle(const std::vector<Word>& pus) {
    std::vector<Word> last;
    for (unsigned look = 0; look < 100; ++look) {
      const std::span<const Word> next = follower.look(pus);
      if (!next.empty()) last.assign(next.begin(), next.end());
    }
    return last;
  }
};

/// By rank: four ranks in each NUMA node.
std::vector<Word> by_numa_node() {
  std::vector<Word> pus;
  for (unsigned rank = 0; rank < 16; ++rank) pus.push_back(1 + rank / 4 * 8 + rank % 4);
  return pus;
}

TEST(Follower, PaysWhereThereAreSeveralPlaces) {
  for (const char* one : {"package:1 core:2 pu:1", "package:1 [numa] l3:1 core:64 pu:1"}) {
    EXPECT_FALSE(Follower::pays_on(Topology::from_synthetic(one))) << one;
  }
  for (const char* several : {"package:1 [numa] l3:2 core:2 pu:1", "package:2 core:4 pu:2"}) {
    EXPECT_TRUE(Follower::pays_on(Topology::from_synthetic(several))) << several;
  }
}

TEST(Follower, FindsAsGoodAsAuto) {
  Server server;
  std::vector<PuSet> bindings;
  for (const Word said : by_numa_node()) bindings.push_back({said - 1});
  EXPECT_FALSE(server.settle(by_numa_node()).empty());
  const Follower::State state = server.follower.state();
  EXPECT_GE(state.changes, 1U);
  const MachineCosts machine = costs_for(server.topology, false);
  const Seats seats = seats_of(server.topology, bindings, machine);
  const Costs& costs = machine.costs;
  const Algorithm found = parse_algorithm(state.algorithm);
  const Grouping grouping = group_ranks(server.topology.place(
      bindings, server.topology.active_levels(parse_level_mask(found.levels))));
  const double found_ns = estimate_ns(compose(grouping.tree, found.recipe), seats, costs);
  EXPECT_LT(found_ns, 1.1 * fit_barrier(all_groups(server.topology, bindings), seats, costs).ns);
}

TEST(Follower, ComposesAnewWhenSomebodyHasMoved) {
  Server server;
  std::vector<Word> pus = by_numa_node();
  server.settle(pus);
  const unsigned before = server.follower.state().changes;
  pus[1] += 1;  // to another core of its NUMA node: nothing is gained
  std::swap(pus[5], pus[6]);
  EXPECT_TRUE(server.settle(pus).empty());
  EXPECT_EQ(server.follower.state().changes, before);
  for (unsigned rank = 0; rank < 4; ++rank) std::swap(pus[rank], pus[rank + 12]);
  for (unsigned rank = 0; rank < 2; ++rank) std::swap(pus[rank], pus[rank + 6]);
  EXPECT_FALSE(server.follower.look(pus).empty());  // at once
  EXPECT_EQ(server.follower.state().changes, before + 1);
}

/// No estimate would choose these.
constexpr const char* slow_by_node = "scheduled-NUMA:tree2+line2x2/rounds";
constexpr const char* slow_apart = "scheduled-MACHINE:tree2+line2";

Profile::Team team_of(unsigned apart, const char* algorithm) {
  return {.participants = 16,
          .spread = {{"NUMA", 4}, {"PACKAGE", 2}, {"apart", apart}},
          .algorithm = algorithm};
}

TEST(Follower, TakesWhatAProfileHasForWhereTheySit) {
  Server server({team_of(4, slow_by_node), team_of(16, slow_apart)});
  EXPECT_FALSE(server.settle(by_numa_node()).empty());
  EXPECT_EQ(server.follower.state().algorithm, slow_by_node);
  EXPECT_EQ(server.follower.state().changes, 1U);
  std::vector<Word> apart;
  for (unsigned rank = 0; rank < 16; ++rank) apart.push_back(1 + rank % 4 * 8 + rank / 4);
  EXPECT_FALSE(server.follower.look(apart).empty());  // at once
  EXPECT_EQ(server.follower.state().algorithm, slow_apart);
  EXPECT_TRUE(server.settle(apart).empty());
  std::swap(apart[0], apart[1]);  // as good as before by one line for all
  EXPECT_TRUE(server.settle(apart).empty());
  EXPECT_EQ(server.follower.state().changes, 2U);
}

TEST(Follower, GroupsThoseWhoHaveMovedAnewByTheSameRecipe) {
  Server server({team_of(4, slow_by_node)});
  std::vector<Word> pus = by_numa_node();
  server.settle(pus);
  for (unsigned rank = 0; rank < 4; ++rank) std::swap(pus[2 * rank], pus[15 - 2 * rank]);
  EXPECT_FALSE(server.follower.look(pus).empty());
  EXPECT_EQ(server.follower.state().algorithm, slow_by_node);
  EXPECT_TRUE(server.settle(pus).empty());
}

TEST(Follower, DoesAsWithoutAProfileWhereItsBarrierCannotBeHandedOver) {
  Server plain;
  plain.settle(by_numa_node());
  for (const char* other : {"mcs", "scheduled-MACHINE:all"}) {  // no schedule; no room
    Server server({team_of(4, other)});
    EXPECT_FALSE(server.settle(by_numa_node()).empty());
    EXPECT_EQ(server.follower.state().algorithm, plain.follower.state().algorithm) << other;
  }
}

TEST(Follower, WaitsUntilEverybodyHasSaidWhereItIs) {
  Server server;
  for (const Word unheard_of : {0U, 33U, std::numeric_limits<Word>::max()}) {
    std::vector<Word> pus = by_numa_node();
    pus[7] = unheard_of;
    EXPECT_TRUE(server.settle(pus).empty());
    EXPECT_EQ(server.follower.state().algorithm, "");
  }
}

TEST(Follower, TakesOneHundredthOfTheTime) {
  Server server;
  server.call_takes = 100;
  std::int64_t works_ns = 0;
  std::vector<Word> pus = by_numa_node();
  for (unsigned look = 0; look < 20'000; ++look) {
    if (look % 100 == 0) std::swap(pus[look / 100 % 16], pus[look / 100 * 7 % 16]);
    const unsigned before = server.calls;
    server.follower.look(pus);
    if (server.calls == before + 2) works_ns += server.call_takes;
  }
  EXPECT_GT(works_ns, 0);
  EXPECT_LE(works_ns, server.now / 100 + server.call_takes);
}

}  // namespace
}  // namespace muster::test
