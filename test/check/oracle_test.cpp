// SPDX-License-Identifier: BSD-3-Clause
// The explorer against the oracle on random programs: the same executions, each visited once, the
// same hangs, the same races; and each execution against the standard's words (axioms.hpp).
// MUSTER_SOAK multiplies the number of programs.
#include "oracle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "axioms.hpp"
#include "check/explore.hpp"

namespace muster::check::test {
namespace {

Ordering ordering_of(MemoryOrder order) {
  constexpr Ordering all[] = {Ordering::relaxed, Ordering::acquire, Ordering::release,
                              Ordering::acq_rel, Ordering::seq_cst};
  return all[static_cast<int>(order)];
}

void interpret(const RandomProgram& program, Thread& self) {
  Word last = 0;
  bool skip = false;
  std::vector<Location> atomics;
  for (unsigned l = 0; l < program.atomics; ++l) atomics.push_back(static_cast<Location>(l));
  for (const Instruction& i : program.threads[self.id()]) {
    if (skip) {
      skip = false;
      continue;
    }
    const auto where = static_cast<Location>(i.location);
    const Ordering order = ordering_of(i.order);
    switch (i.code) {
      case Code::load:
        last = self.load(where, order);
        break;
      case Code::store:
        self.store(where, i.value, order);
        break;
      case Code::store_read:
        self.store(where, last + i.value, order);
        break;
      case Code::add:
        last = self.fetch_add(where, i.value, order);
        break;
      case Code::exchange:
        last = self.exchange(where, i.value, order);
        break;
      case Code::compare_exchange:
        last = self.compare_exchange(where, i.expected, i.value, order);
        break;
      case Code::await_equal:
        last = self.await(where, Predicate(equals(i.value)), order);
        break;
      case Code::await_at_least:
        last = self.await(where, Predicate(at_least(i.value)), order);
        break;
      case Code::await_any: {
        std::vector<Awaitable> any;
        for (const Location atomic : atomics) {
          any.push_back({atomic, Predicate(equals(i.value)), order, Site::here()});
        }
        last = static_cast<Word>(self.await_first(any));
        break;
      }
      case Code::fence:
        self.fence(order);
        break;
      case Code::plain_read:
        last = self.read(where);
        break;
      case Code::plain_write:
        self.write(where, i.value);
        break;
      case Code::choose:
        last = self.choose(2);
        break;
      case Code::skip_if:
        skip = last == i.value;
        break;
    }
  }
}

/// An event's number among those of its thread, an update being one.
int number_of(const Graph& graph, EventId id) {
  if (id.is_initial()) return id.index;
  int number = 0;
  for (int i = 0; i < id.index; ++i) {
    if (graph.at(static_cast<unsigned>(id.thread), i).op.kind != Kind::update_write) ++number;
  }
  return graph.at(id).op.kind == Kind::update_write ? number - 1 : number;
}

std::string text_of(const Graph& graph, unsigned atomics) {
  ExecutionText out;
  const auto thread_of = [](EventId id) { return id.is_initial() ? -1 : id.thread; };
  for (unsigned t = 0; t < graph.threads(); ++t) {
    int size = graph.size(t);
    if (graph.status(t) == Graph::Status::stuck && graph.at(t, size - 1).op.kind == Kind::load) {
      size -= static_cast<int>(atomics);  // a pass that failed
    }
    for (int i = 0; i < size; ++i) {
      const Event& event = graph.at(t, i);
      const auto thread = static_cast<int>(t);
      if (!event.satisfied || event.op.kind == Kind::update_write) continue;
      if (event.is_read() || event.op.kind == Kind::plain_read) {
        out.read(thread, event.op.location, thread_of(event.from), number_of(graph, event.from),
                 event.read);
      } else {
        out.other(thread, event.op.kind == Kind::choice ? event.read : 0);
      }
    }
  }
  for (std::size_t l = 0; l < graph.locations(); ++l) {
    for (const EventId w : graph.co(static_cast<Location>(l))) {
      out.modification(static_cast<int>(l), thread_of(w), number_of(graph, w));
    }
  }
  return out.text();
}

/// What the axioms said of the executions that an explorer visited.
struct Opinions {
  std::uint64_t consistent = 0;
  std::uint64_t broken = 0;
  std::string disagreement;  ///< with the oracle
};

/// What the explorer finds, and how it differs from the truth; empty: not at all.
std::string difference(const RandomProgram& random, const Truth& truth, Flaw flaw,
                       Opinions& opinions) {
  Program program{.name = "random", .threads = static_cast<unsigned>(random.threads.size())};
  for (unsigned l = 0; l < random.atomics + random.plains; ++l) {
    program.memory.add(0, "word " + std::to_string(l));
  }
  program.body = [&](Thread& self) { interpret(random, self); };

  Options options;
  options.flaw = flaw;
  options.stop_at_violation = truth.races;
  std::set<std::string> executions;
  std::set<std::string> hangs;
  std::uint64_t hangs_visited = 0;
  options.on_execution = [&](const Graph& graph) {
    const std::string text = text_of(graph, random.atomics);
    executions.insert(text);
    if (truth.races) return;  // the oracle has stopped there
    const std::string rule = broken_rule(graph);
    ++(rule.empty() ? opinions.consistent : opinions.broken);
    if (rule.empty() != (truth.executions.count(text) != 0)) {
      opinions.disagreement = rule.empty() ? "no rule is broken, says it alone" : rule;
    }
  };
  options.on_hang = [&](const Graph& graph) {
    ++hangs_visited;
    hangs.insert(text_of(graph, random.atomics));
  };
  const Result result = Explorer(program, options).explore();
  if (truth.races) return result.races > 0 || result.hangs > 0 ? "" : "a race was missed";
  if (result.races > 0) return "a race that is none";
  if (executions.size() != result.executions) return "an execution was visited twice";
  if (executions.size() < truth.executions.size()) return "an execution was missed";
  if (executions != truth.executions) return "an execution that is inconsistent";
  if (hangs.size() != hangs_visited) return "a hang was visited twice";
  if (hangs != truth.hangs) return "other hangs";
  return "";
}

const std::vector<Code> accesses = {Code::load,   Code::store,    Code::store_read,
                                    Code::add,    Code::exchange, Code::compare_exchange,
                                    Code::skip_if};
const std::vector<MemoryOrder> all_fences = {MemoryOrder::acquire, MemoryOrder::release,
                                             MemoryOrder::acq_rel, MemoryOrder::seq_cst};

std::vector<Code> with(std::vector<Code> codes, std::initializer_list<Code> more) {
  codes.insert(codes.end(), more);
  return codes;
}

struct Suite {
  const char* name;
  Taste taste;
  int programs = 600;
};

std::vector<Suite> suites() {
  Taste atomics{.codes = accesses, .fence_orders = all_fences};
  Taste four{.codes = {Code::load, Code::store, Code::add},
             .fence_orders = all_fences,
             .threads_min = 4,
             .threads_max = 4,
             .instructions_max = 2,
             .events_max = 7};
  Taste fences = atomics;
  fences.codes = {Code::load, Code::store, Code::add, Code::fence, Code::fence};
  fences.instructions_max = 4;
  fences.events_max = 9;
  Taste sc{.codes = {Code::load, Code::store, Code::fence, Code::fence},
           .fence_orders = {MemoryOrder::seq_cst},
           .instructions_max = 4,
           .events_max = 10};
  Taste plain = atomics;
  plain.codes = {Code::load,        Code::store,   Code::add,  Code::plain_read,
                 Code::plain_write, Code::skip_if, Code::fence};
  Taste waits = atomics;
  waits.codes = {Code::store,          Code::add,       Code::await_equal,
                 Code::await_at_least, Code::await_any, Code::exchange};
  Taste everything = atomics;
  everything.codes =
      with(accesses, {Code::await_equal, Code::await_at_least, Code::await_any, Code::fence,
                      Code::plain_read, Code::plain_write, Code::choose});
  return {{"atomics", atomics},      {"four threads", four, 150}, {"fences", fences},
          {"seq_cst fences", sc},    {"plain data", plain},       {"waits", waits},
          {"everything", everything}};
}

Taste taste_of(const std::string& name) {
  const std::vector<Suite> all = suites();
  return std::find_if(all.begin(), all.end(), [&](const Suite& s) { return s.name == name; })
      ->taste;
}

int soak() {
  const char* factor = std::getenv("MUSTER_SOAK");
  return factor != nullptr ? std::max(1, std::atoi(factor)) : 1;
}

constexpr std::size_t states_max = 20000;

class Oracle : public testing::TestWithParam<Suite> {};

TEST_P(Oracle, SeesTheSameExecutions) {
  const int programs = GetParam().programs * soak();
  int compared = 0;
  int raced = 0;
  int hung = 0;
  for (int seed = 0; seed < programs; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const RandomProgram program = make_random_program(GetParam().taste, random);
    const Truth truth = brute_force(program, true, states_max);
    if (truth.too_large) continue;
    ++compared;
    raced += truth.races ? 1 : 0;
    hung += truth.hangs.empty() ? 0 : 1;
    Opinions opinions;
    ASSERT_EQ(difference(program, truth, Flaw::none, opinions) + opinions.disagreement, "")
        << "seed " << seed << " of \"" << GetParam().name << "\":\n"
        << program.text() << truth.executions.size() << " executions, " << truth.hangs.size()
        << " hangs";
  }
  RecordProperty("compared", compared);
  RecordProperty("raced", raced);
  RecordProperty("hung", hung);
  EXPECT_GT(compared, programs * 9 / 10);
}

INSTANTIATE_TEST_SUITE_P(Programs, Oracle, testing::ValuesIn(suites()),
                         [](const testing::TestParamInfo<Suite>& suite) {
                           std::string name = suite.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(OracleItself, FindsTheSameWithoutPruning) {
  Taste taste = suites().back().taste;
  taste.events_max = 5;
  taste.plains_max = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const RandomProgram program = make_random_program(taste, random);
    const Truth pruned = brute_force(program, true, states_max);
    const Truth whole = brute_force(program, false, states_max);
    if (pruned.too_large || whole.too_large) continue;
    ASSERT_EQ(pruned.executions, whole.executions) << program.text();
    ASSERT_EQ(pruned.hangs, whole.hangs) << program.text();
  }
}

/// Explorers that forget a rule show executions that are none: the axioms tell those from the
/// others just as the oracle does.
TEST(Axioms, AgreeWithTheOracleOnWhatIsNoExecution) {
  struct Case {
    Flaw flaw;
    const char* suite;
    unsigned programs;  ///< so many show it a few times
  };
  for (const Case& c :
       {Case{Flaw::coherence, "atomics", 200}, Case{Flaw::atomicity, "atomics", 200},
        Case{Flaw::release_sequences, "fences", 600}, Case{Flaw::fences, "fences", 1000},
        Case{Flaw::sc_fences, "seq_cst fences", 1200}}) {
    Opinions opinions;
    for (unsigned seed = 0; seed < c.programs; ++seed) {
      std::mt19937 random(seed);
      const RandomProgram program = make_random_program(taste_of(c.suite), random);
      const Truth truth = brute_force(program, true, states_max / 4);
      if (truth.too_large) continue;
      difference(program, truth, c.flaw, opinions);
      ASSERT_EQ(opinions.disagreement, "") << program.text();
    }
    EXPECT_GT(opinions.consistent, 100U) << c.suite;
    EXPECT_GT(opinions.broken, 0U) << c.suite;
    std::printf("%-16s %7llu executions, %7llu that are none\n", c.suite,
                static_cast<unsigned long long>(opinions.consistent),
                static_cast<unsigned long long>(opinions.broken));
  }
}

struct Forgotten {
  Flaw flaw;
  const char* rule;
  const char* suite;  ///< whose programs show it
};

/// Every rule that the explorer forgets is missed on some program.
TEST(OracleItself, CatchesEveryFlawOfTheExplorer) {
  const std::vector<Forgotten> all = {
      {Flaw::coherence, "coherence", "atomics"},
      {Flaw::atomicity, "atomicity", "atomics"},
      {Flaw::release_sequences, "release sequences", "fences"},
      {Flaw::old_release_sequences, "C++20's narrower release sequences", "atomics"},
      {Flaw::sc_fences, "the order of seq_cst fences", "seq_cst fences"},
      {Flaw::fences, "fences", "fences"},
      {Flaw::races, "races", "plain data"},
      {Flaw::maximality, "maximality", "atomics"},
      {Flaw::revisits, "revisits", "atomics"}};
  for (const Forgotten& forgotten : all) {
    const Taste taste = taste_of(forgotten.suite);
    unsigned seed = 0;
    std::string found;
    for (; seed < 20000 && found.empty(); ++seed) {
      std::mt19937 random(seed);
      const RandomProgram program = make_random_program(taste, random);
      const Truth truth = brute_force(program, true, states_max / 20);
      Opinions opinions;
      if (!truth.too_large) found = difference(program, truth, forgotten.flaw, opinions);
    }
    EXPECT_NE(found, "") << "an explorer without " << forgotten.rule << " passed " << seed
                         << " programs";
    std::printf("without %-36s %s, after %u programs\n", forgotten.rule, found.c_str(), seed);
  }
}

}  // namespace
}  // namespace muster::check::test
