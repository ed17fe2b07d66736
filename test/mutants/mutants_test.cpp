// SPDX-License-Identifier: BSD-3-Clause
// Every access of every barrier is made to go wrong, one at a time, and so is what a rank remembers
// between episodes: the trial that passes every barrier has to catch each of these. Where only
// ThreadSanitizer can (a weakened order, on a processor that keeps it anyway), it has to report a
// race; those run in its build alone, the others in all the rest.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "mutated.hpp"
#include "template_subject.hpp"

// Under ThreadSanitizer a process ends with its first race.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "halt_on_error=1:exitcode=66"; }

namespace muster::test {
namespace {

constexpr unsigned participants = Mutation::participants;
constexpr int status_of_a_race = 66;
// Counted, not timed: a busy machine needs more time for as many.
constexpr unsigned episodes = 100;
constexpr unsigned attempts_max = 400;  // some need the delays to fall right

/// What a rank remembers goes wrong; named as in `memory_slips`.
enum class Slip : std::uint8_t { none, sense_kept, parity_lost, child_forgotten, episode_kept };

struct Mutant {
  Change change = Change::none;
  int line = 0;
  Slip slip = Slip::none;
};

const char* name_of(Change change) {
  constexpr const char* names[] = {"none", "drop",   "flip",   "postpone",     "miscount",
                                   "skip", "forget", "weaken", "acquire_only", "release_only"};
  return names[static_cast<int>(change)];
}

const char* name_of(Slip slip) {
  constexpr const char* names[] = {"none", "sense kept", "parity lost", "child forgotten",
                                   "episode kept"};
  return names[static_cast<int>(slip)];
}

std::string describe(const Mutant& mutant) {
  if (mutant.slip != Slip::none) return name_of(mutant.slip);
  return "line " + std::to_string(mutant.line) + " " + name_of(mutant.change);
}

/// Two groups of two, their leaders' group, and a rank lifted over both.
GroupTree tree_of_five() {
  return {participants,
          {{"L3", {{{0, 1}}, {{2, 3}}}}, {"NUMA", {{{0, 2}}}}, {"MACHINE", {{{0, 4}}}}}};
}

/// False if tickets like this have nothing of the kind.
template <class Ticket>
bool forget_child(Ticket& ticket) {
  if constexpr (requires { ticket.children.pop_back(); }) {
    if (!ticket.children.empty()) ticket.children.pop_back();
  } else if constexpr (requires { ticket.counters.pop_back(); }) {
    if (!ticket.counters.empty()) ticket.counters.pop_back();
  } else if constexpr (requires { ticket.led.back().pop_back(); }) {
    if (!ticket.led.empty()) ticket.led.back().pop_back();
  } else if constexpr (requires { ticket.path.back().children; }) {
    ticket.path.back().children -= 1;
  } else if constexpr (requires { ticket.path.back().members; }) {
    ticket.path.back().members -= 1;
  } else if constexpr (requires { ticket.steps.front().awaits; }) {
    for (Step& step : ticket.steps) {
      if (step.awaits == 0) continue;
      ++step.first_cell;
      --step.awaits;
      break;
    }
  } else {
    return false;
  }
  return true;
}

template <class B>
class SlippingSubject : public TemplateSubject<B, Mutated> {
 public:
  SlippingSubject(const Shape& shape, Slip slip)
      : TemplateSubject<B, Mutated>(shape, WaitPolicy::oversubscribed(), patience_ns), slip_(slip) {
    for (unsigned rank = 0; slip == Slip::child_forgotten && rank < participants; ++rank) {
      EXPECT_TRUE(forget_child(this->ticket(rank)));
    }
  }

  std::string wait(unsigned rank, Random& random) override {
    std::string why = TemplateSubject<B, Mutated>::wait(rank, random);
    if (!why.empty() || ++episodes_of_[rank] == episodes)
      Mutated::mutation->waits[rank] = Mutation::ended;
    return why;
  }

 protected:
  void after_wait(typename B::Ticket& ticket) override {
    if (slip_ == Slip::sense_kept) {
      if constexpr (requires { ticket.parity; }) {
        ticket.sense = 1;
      } else if constexpr (requires { ticket.sense; }) {
        ticket.sense ^= 1;
      }
    }
    if constexpr (requires { ticket.parity; }) {
      if (slip_ == Slip::parity_lost) {  // one set of flags, its sense reversed each time
        ticket.sense ^= ticket.parity;
        ticket.parity = 0;
      }
    }
    if constexpr (requires { ticket.episode; }) {
      if (slip_ == Slip::episode_kept) ticket.episode -= 1;
    }
  }

 private:
  Slip slip_;
  unsigned episodes_of_[participants] = {};
};

/// Runs a mutant in a process of its own: it may crash. Empty if it passed.
std::string run_mutant(const std::string& algorithm, const Mutant& mutant, Mutation& plan,
                       std::uint64_t seed) {
  plan.change = mutant.change;
  plan.line = mutant.line;
  for (std::atomic<unsigned>& each : plan.waits) each = 0;
  Mutated::mutation = &plan;
  Shared<FirstFailure> failure;
  const int output = memfd_create("output", 0);
  Child child([&] {
    dup2(output, STDERR_FILENO);
    const GroupTree tree = tree_of_five();
    const Shape shape{participants, 2, 0xfffffff0, &tree};
    const std::string what = with_barrier<Mutated>(algorithm, [&]<class B>() {
      SlippingSubject<B> subject(shape, mutant.slip);
      return run_trial({&subject}, {.seed = seed, .episodes = episodes, .budget_ms = patience_ms});
    });
    if (!what.empty()) failure->report(what);
  });
  const std::string end = child.wait();
  std::string text(4000, '\0');
  const ssize_t length = pread(output, text.data(), text.size(), 0);
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  close(output);
  if (end == "ended with status " + std::to_string(status_of_a_race) &&
      text.find("data race") != std::string::npos) {
    return "data race";
  }
  if (failure->happened()) return failure->text();
  return end.empty() ? "" : end + "\n" + text;
}

std::vector<Change> changes_of(const Access& access) {
  const bool ordered = access.order != Order::relaxed;
  if (under_tsan) {
    if (!ordered) return {};
    if (access.order != Order::acq_rel) return {Change::weaken};
    return {Change::weaken, Change::acquire_only, Change::release_only};
  }
  switch (access.operation) {
    case Operation::store:
      if (ordered || access.preparing) return {Change::drop, Change::flip};
      return {Change::drop, Change::flip, Change::postpone};
    case Operation::add:
      return {Change::drop, Change::miscount};
    case Operation::await:
      return {Change::skip};
    case Operation::await_all:
      return {Change::skip, Change::forget};
  }
  return {};
}

std::vector<Slip> slips_of(const std::string& algorithm) {
  if (under_tsan) return {};
  if (algorithm == "following") return {Slip::episode_kept};
  if (algorithm == "scheduled") return {Slip::child_forgotten, Slip::episode_kept};
  std::vector<Slip> slips = {Slip::sense_kept};
  if (algorithm == "dissemination") slips.push_back(Slip::parity_lost);
  const bool is_flat_tree =
      algorithm == "sense-reversing-counter" || algorithm == "sense-reversing-gr";
  if (algorithm == "mcs" || algorithm == "combining-tree" || algorithm.starts_with("topo") ||
      is_flat_tree) {
    slips.push_back(Slip::child_forgotten);
  }
  if (algorithm == "topo" || is_flat_tree) {
    slips.push_back(Slip::episode_kept);
  }
  return slips;
}

std::string kind_of(const std::string& verdict) {
  for (const char* kind : {"data race", "had not arrived", "patience"}) {
    if (verdict.find(kind) != std::string::npos) return kind;
  }
  return verdict;
}

class Mutants : public testing::TestWithParam<std::string> {};

TEST_P(Mutants, AreAllCaughtAndTheOriginalPasses) {
  const std::string& algorithm = GetParam();
  Random random(case_seed());
  const HangGuard guard(150, algorithm);
  Shared<Mutation> plan;

  plan->recording.store(true);
  for (int repeat = 0; repeat < 3; ++repeat) {
    ASSERT_EQ(run_mutant(algorithm, {}, *plan, random.next()), "")
        << "the original\nreplay: " << replay_command();
  }
  plan->recording.store(false);
  ASSERT_GE(plan->recorded, 2U) << "a barrier of fewer than two accesses?";

  std::vector<Mutant> mutants;
  for (unsigned i = 0; i < plan->recorded; ++i) {
    for (const Change change : changes_of(plan->accesses[i])) {
      mutants.push_back({.change = change, .line = plan->accesses[i].line});
    }
  }
  for (const Slip slip : slips_of(algorithm)) mutants.push_back({.slip = slip});

  std::map<std::string, unsigned> caught;
  for (const Mutant& mutant : mutants) {
    std::string verdict;
    for (unsigned attempt = 0; attempt < attempts_max && verdict.empty(); ++attempt) {
      verdict = run_mutant(algorithm, mutant, *plan, random.next());
      if (under_tsan && verdict != "data race") verdict.clear();  // only that proves it sees orders
    }
    EXPECT_NE(verdict, "") << algorithm << ", " << describe(mutant)
                           << ": nothing noticed it\nreplay: " << replay_command();
    caught[kind_of(verdict)] += 1;
  }
  std::printf("%zu mutants of %s:", mutants.size(), algorithm.c_str());
  for (const auto& [kind, count] : caught) std::printf(" %u %s;", count, kind.c_str());
  std::printf("\n");
}

std::vector<std::string> names() { return {barrier_names().begin(), barrier_names().end()}; }

INSTANTIATE_TEST_SUITE_P(All, Mutants, testing::ValuesIn(names()), [](const auto& instance) {
  std::string name = instance.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace muster::test
