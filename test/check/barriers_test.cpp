// SPDX-License-Identifier: BSD-3-Clause
// Every registered barrier and the sleep protocol on the checked machine: what holds, how many
// executions there are, what the mutation gate says, and that faulty barriers are caught.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "axioms.hpp"
#include "barrier_mutants.hpp"
#include "check/report.hpp"
#include "check/suite/mutation.hpp"
#include "check/suite/rehearsal.hpp"
#include "check/suite/sleeping.hpp"

namespace muster::check {
namespace {

Result explore(const Program& program, bool may_give_up = false) {
  Options options;
  options.hangs_allowed_after_choice = may_give_up;
  Result result = Explorer(program, options).explore();
  EXPECT_TRUE(result.executions > 0 || result.verdict != Verdict::holds);
  return result;
}

std::string trace(const Program& program, const Result& result) {
  return result.violation ? format_violation(program, *result.violation) : "";
}

Result check(const Scenario& scenario) {
  Tuning tuning;
  const Program program = make_barrier_program(scenario, tuning);
  Result result = explore(program, tuning.may_give_up);
  EXPECT_EQ(result.verdict, Verdict::holds)
      << scenario.name() << " P=" << scenario.participants << " E=" << scenario.episodes << " "
      << variant_name(scenario.variant) << "\n"
      << trace(program, result);
  EXPECT_GT(result.executions, 0U);
  return result;
}

std::uint64_t executions(const char* name, unsigned participants, unsigned episodes) {
  return check({parse_checked_algorithm(name), participants, episodes}).executions;
}

// That they hold for more is what command_test.cpp says.
TEST(CheckedBarriers, HoldForOneParticipant) {
  for (const Algorithm& algorithm : checked_algorithms()) {
    for (const Scenario& scenario : scenarios_of(algorithm, {1}, {2, 3})) check(scenario);
  }
}

TEST(CheckedBarriers, HoldForMoreParticipantsWhereFlagsLeaveNoChoice) {
  for (const Algorithm& algorithm : checked_algorithms()) {
    if (checked_traits(algorithm.name).champion == Champion::last_to_arrive) continue;
    if (algorithm.name.starts_with("base-")) continue;  // counters may be seen late
    if (algorithm.name == "scheduled") continue;        // so may flags, and some count
    for (const Scenario& scenario : scenarios_of(algorithm, {5, 6, 7, 8}, {3, 5})) {
      EXPECT_EQ(check(scenario).executions, 1U) << scenario.name();
    }
  }
}

TEST(CheckedBarriers, HoldWithoutRanks) {
  const Algorithm anyone = parse_checked_algorithm("anyone");
  for (const Scenario& scenario : scenarios_of(anyone, {2, 3}, {2})) check(scenario);
}

TEST(CheckedBarriers, OpenmpRuntimesHoldToo) {
  for (const char* name : {"libgomp", "libomp-hyper"}) {
    const Algorithm peer = parse_checked_algorithm(name);
    for (const Scenario& scenario : scenarios_of(peer, {2, 3, 4}, {2})) check(scenario);
  }
}

// Random programs are small; these are what is shipped. The standard's words, on each execution.
TEST(CheckedBarriers, AreConsistentBySomeoneElsesJudgement) {
  std::size_t judged = 0;
  const auto judge = [&](const Program& program, std::size_t most) {
    Options options;
    std::size_t here = 0;
    options.on_execution = [&](const Graph& graph) {
      if (++here > most) return;
      ++judged;
      EXPECT_EQ(test::broken_rule(graph), "") << program.name;
    };
    Explorer(program, options).explore();
  };
  for (const Algorithm& algorithm : checked_algorithms()) {
    for (const Variant variant : {Variant::plain, Variant::timed, Variant::destroy}) {
      Tuning tuning;
      judge(make_barrier_program({algorithm, 3, 2, variant}, tuning), 100);
    }
  }
  for (const SleepProgram& sleep : sleep_programs()) {
    Tuning tuning;
    judge(make_sleep_program(sleep.name, tuning), 300);
  }
  EXPECT_GT(judged, 3000U);
}

// The counts equal GenMC's for the same programs.
TEST(CheckedBarriers, HaveTheKnownNumbersOfExecutions) {
  EXPECT_EQ(executions("sense-reversing", 2, 2), 4U);
  EXPECT_EQ(executions("sense-reversing", 3, 2), 36U);
  EXPECT_EQ(executions("sense-reversing", 3, 3), 216U);
  EXPECT_EQ(executions("sense-reversing", 4, 2), 576U);
  EXPECT_EQ(executions("sense-reversing", 4, 3), 13824U);
  EXPECT_EQ(executions("dissemination", 4, 3), 1U);
  EXPECT_EQ(executions("mcs", 4, 3), 1U);
  EXPECT_EQ(executions("base-bruck", 4, 3), 1125U);  // a dissemination that counts epochs
  const auto epoch = [](unsigned participants, unsigned episodes) {
    using Barrier = episodes_counted::Dissemination<Checked>;
    Tuning tuning;
    return explore(rehearse<Barrier>({{}, participants, episodes}, tuning)).executions;
  };
  EXPECT_EQ(epoch(4, 2), 39U);
  EXPECT_EQ(epoch(4, 3), 1125U);
}

// In processor time, so that other programs do not matter; other builds are slower by design.
TEST(CheckedBarriers, AreExploredFast) {
  const auto seconds = [](const char* name, unsigned participants, unsigned episodes) {
    const std::clock_t start = std::clock();
    executions(name, participants, episodes);
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  const double p4e3 = seconds("sense-reversing", 4, 3);
  const double p5e2 = seconds("sense-reversing", 5, 2);
  const double p8e2 = seconds("dissemination", 8, 2);
  std::printf("sense-reversing P4 E3 %.3f s, P5 E2 %.3f s; dissemination P8 E2 %.1f ms\n", p4e3,
              p5e2, 1e3 * p8e2);
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(p4e3, 1.0);
  EXPECT_LT(p5e2, 2.0);
  EXPECT_LT(p8e2, 0.010);
#endif
}

TEST(MutationGate, NoticesEveryWeakerOrderAsTheDocumentationSays) {
  std::size_t mutants = 0;
  std::ifstream file(MUSTER_SOURCE_DIR "/doc/memory-model.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const auto judge = [&](const std::string& name, const std::vector<Rehearsed>& programs,
                         const std::string& only = "") {
    const auto mutations = mutate(name, programs, only);
    EXPECT_FALSE(mutations.empty()) << name;
    mutants += mutations.size();
    const auto with = [&](Fate fate) {
      return std::to_string(
          std::count_if(mutations.begin(), mutations.end(),
                        [fate](const Mutation& mutation) { return mutation.fate == fate; }));
    };
    const std::string row = "| `" + name + "` | " + std::to_string(mutations.size()) + " | " +
                            with(Fate::caught) + " | " + with(Fate::stronger) + " |";
    EXPECT_NE(page.find(row), std::string::npos) << "doc/memory-model.md should say: " << row;
    for (const Mutation& mutation : mutations) {
      EXPECT_TRUE(mutation.fate == Fate::caught || mutation.fate == Fate::stronger)
          << name << ", " << format_site(mutation.access.site) << ", "
          << ordering_name(mutation.access.order) << " -> " << ordering_name(mutation.weaker)
          << ": " << fate_name(mutation.fate)
          << " (weaken it, or mark the line with // stronger: <reason>)";
    }
  };
  for (const std::string& name : checked_names()) {
    std::vector<Algorithm> variants;
    for (const Algorithm& algorithm : checked_algorithms()) {
      if (algorithm.name == name) variants.push_back(algorithm);
    }
    judge(name, mutation_programs(variants, {2, 3, 4}, {2, 3}));
  }
  judge("anyone", mutation_programs({parse_checked_algorithm("anyone")}, {2}, {2}));
  judge("sleep", mutation_programs_of_sleep(), sleep_source);
  judge("lifetime", mutation_programs_of_lifetime(), lifetime_source);
  EXPECT_GE(mutants, 30U);
}

/// An update at each of these places, in an order that nothing needs.
std::vector<Rehearsed> updates_at(const std::vector<Site>& sites,
                                  Ordering order = Ordering::acq_rel) {
  return {{"updates", [sites, order](Tuning& tuning) {
             Program program{.name = "updates", .threads = 2};
             const Location where = program.memory.add(0, "x");
             program.body = [where, sites, order, &tuning](Thread& self) {
               for (const Site& site : sites) {
                 self.fetch_add(where, 1, tuning.order_at(site, "fetch_add", order), site);
               }
             };
             return program;
           }}};
}

TEST(MutationGate, KnowsWhatIsStronger) {
  // One access more than needed: its sites are not marked here, so the gate has to complain.
  const auto mutations = mutate("stronger", updates_at({Site::here()}));
  ASSERT_EQ(mutations.size(), 2U);
  EXPECT_EQ(mutations[0].fate, Fate::not_caught);
  EXPECT_EQ(mutations[1].fate, Fate::not_caught);
}

TEST(MutationGate, FindsPlacesHoweverTheCompilerWasGivenThem) {
  const std::vector<const char*> names = {"src/lock/x.hpp", "./src/lock/x.hpp",
                                          "../../src/lock/x.hpp", "/usr/src/test/src/lock/x.hpp"};
  std::vector<Site> sites;
  for (const char* name : names) {
    EXPECT_EQ(format_site({name, 7}), "src/lock/x.hpp:7");
    EXPECT_EQ(mutate(name, updates_at({{name, 7}}), "src/").size(), 2U) << name;
    sites.push_back({name, 7});
  }
  EXPECT_EQ(mutate("one place", updates_at(sites), "src/").size(), 2U);
  EXPECT_EQ(mutate("two places", updates_at({sites[0], {names[1], 8}}), "src/").size(), 4U);
  EXPECT_EQ(format_site({"/usr/src/muster/check/suite/x.hpp", 7}), "check/suite/x.hpp:7");
  EXPECT_EQ(format_site({"../src/muster/test/check/x.hpp", 7}), "test/check/x.hpp:7");
  EXPECT_EQ(format_site(Site::here()).find("test/check/barriers_test.cpp:"), 0U);
  for (const Marker& marker : markers()) {
    EXPECT_EQ(marker_of({("../../" + std::string(marker.file)).c_str(), marker.line}), &marker);
  }
}

TEST(MutationGate, ThatWeakensNothingFails) {
  const auto failure = [](const std::vector<Rehearsed>& programs) {
    try {
      mutate("nothing", programs, "src/");
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("nothing: nothing is weakened"), 0U) << error.what();
      return error.code();
    }
    return Status::ok;
  };
  EXPECT_EQ(failure(updates_at({{"elsewhere/lock/x.hpp", 7}})), Status::unsupported);
  EXPECT_EQ(failure(updates_at({{"src/lock/x.hpp", 7}}, Ordering::relaxed)), Status::invalid);
}

/// The first verdict that is not "holds" over P = 2, 3, 4, or the one asked for.
template <class B>
Verdict verdict_of(const std::vector<unsigned>& participants, Variant variant = Variant::plain,
                   unsigned episodes = 3) {
  for (const unsigned n : participants) {
    Tuning tuning;
    const Result result = explore(rehearse<B>({{}, n, episodes, variant}, tuning));
    if (result.verdict != Verdict::holds) return result.verdict;
  }
  return Verdict::holds;
}

TEST(Mutants, WrittenByHandAreInTheGate) {
  for (const HandWritten& mutant : hand_written_mutants()) {
    EXPECT_EQ(run_mutation(hand_written_mutation(mutant.name), mutant.programs).fate, Fate::caught)
        << mutant.name;
  }
}

TEST(Mutants, WithoutParityHangExceptAtThree) {
  using Barrier = dissemination_parity_lost::Dissemination<Checked>;
  EXPECT_EQ(verdict_of<Barrier>({2}), Verdict::hang);
  EXPECT_EQ(verdict_of<Barrier>({3}), Verdict::holds);
  EXPECT_EQ(verdict_of<Barrier>({4}), Verdict::hang);
  EXPECT_EQ(verdict_of<Barrier>({5}), Verdict::hang);
}

TEST(Mutants, ThatDoNotWrapAreCaughtWhereCountersDo) {
  using Barrier = counters_that_do_not_wrap::SenseReversingCounter<Checked>;
  EXPECT_EQ(verdict_of<Barrier>({2, 3}), Verdict::holds);
  EXPECT_NE(verdict_of<Barrier>({2}, Variant::wraps), Verdict::holds);
}

TEST(Report, NamesWhoReadWhatFromWhom) {
  using Barrier = dissemination_parity_lost::Dissemination<Checked>;
  Tuning tuning;
  const Program program = rehearse<Barrier>({{}, 2, 3}, tuning);
  const Result result = Explorer(program, {}).explore();
  ASSERT_TRUE(result.violation);
  const std::string text = trace(program, result);
  EXPECT_NE(text.find("#1  rank 0"), std::string::npos) << text;
  EXPECT_NE(text.find("from rank 1, #"), std::string::npos) << text;
  EXPECT_NE(text.find("src/barrier/dissemination.hpp:"), std::string::npos) << text;
  EXPECT_NE(text.find("waits for cell 0 of rank 0 (now 1)"), std::string::npos) << text;
}

// What a path needs to be taken at all: an inner vertex of a tree of four, a third round or level.
TEST(Defaults, HaveAsManyParticipantsAsSomePathTakes) {
  const std::map<std::string, unsigned> most = {
      {"sense-reversing", 4}, {"combining-tree", 5}, {"scheduled", 5}, {"base-tree", 6}, {"mcs", 8},
      {"tournament", 8},      {"dissemination", 8},  {"topo", 8}};
  for (const auto& [name, participants] : most) {
    const std::vector<unsigned> usual = usual_participants(name);
    ASSERT_FALSE(usual.empty()) << name;
    EXPECT_EQ(usual.front(), 2U) << name;
    EXPECT_GE(usual.back(), participants) << name;
    EXPECT_EQ(usual.size(), usual.back() - 1U) << name << ": some are left out";
  }
}

TEST(Defaults, HaveEveryVariantOfAlgorithmsThatHaveIt) {
  for (const Algorithm& algorithm : checked_algorithms()) {
    std::map<unsigned, std::set<Variant>> variants;
    for (const Scenario& scenario : scenarios_of(algorithm, {}, {2, 3}, nullptr)) {
      variants[scenario.participants].insert(scenario.variant);
    }
    for (const unsigned few : {2U, 3U}) {
      for (const Variant variant : {Variant::plain, Variant::wraps, Variant::gives_up,
                                    Variant::timed, Variant::destroy, Variant::reuse}) {
        EXPECT_EQ(variants[few].count(variant), 1U)
            << algorithm.text() << " P=" << few << " " << variant_name(variant);
      }
      EXPECT_EQ(variants[few].count(Variant::split) == 1, checked_traits(algorithm.name).splits);
    }
    EXPECT_EQ(variants.size(), usual_participants(algorithm.name).size()) << algorithm.text();
  }
}

TEST(Groups, AreReadAndWritten) {
  for (const unsigned n : {2U, 3U, 4U, 5U, 6U, 8U}) {
    for (const GroupTree& tree : group_trees(n)) {
      EXPECT_EQ(tree.participants, n);
      EXPECT_EQ(format_groups(parse_groups(format_groups(tree))), format_groups(tree));
    }
  }
  EXPECT_THROW(parse_groups("0,x"), Error);
  EXPECT_THROW(parse_groups("0,9"), Error);
}

}  // namespace
}  // namespace muster::check
