// SPDX-License-Identifier: BSD-3-Clause
// Generated mutants of locks and mutexes: each store, update and wait of the source goes wrong, one
// at a time, and the gate's programs have to notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include "check/report.hpp"
#include "check/suite/locks.hpp"
#include "check/suite/mutexes.hpp"

namespace muster::check {
namespace {

/// "FILE: the access's line, FAULT": as it stands in the source, since line numbers move.
std::string name_of(const Mutation& mutation) {
  const std::string file(path_in_tree(mutation.access.site.file));
  std::ifstream source(MUSTER_SOURCE_DIR "/" + file);
  std::string line;
  for (int n = 0; n < static_cast<int>(mutation.access.site.line); ++n) std::getline(source, line);
  line = line.substr(line.find_first_not_of(' '));
  return file + ": " + line.substr(0, line.find("  //")) + ", " + fault_name(mutation.fault);
}

void expect_noticed(const std::string& algorithm, const std::vector<Rehearsed>& programs,
                    std::set<std::string> unnoticed = {}) {
  std::size_t all = 0;
  std::size_t noticed = 0;
  for (const Mutation& mutation : spoil(algorithm, programs)) {
    ++all;
    noticed += mutation.fate == Fate::caught ? 1 : 0;
    const std::string name = name_of(mutation);
    const bool exempt = unnoticed.erase(name) != 0;
    EXPECT_EQ(mutation.fate == Fate::caught, !exempt)
        << algorithm << ", " << name << " (line " << mutation.access.site.line << ")";
  }
  for (const std::string& name : unnoticed) ADD_FAILURE() << "there is no " << name;
  EXPECT_GT(all, 0U);
  std::printf("%zu of %zu mutants of %s are noticed\n", noticed, all, algorithm.c_str());
}

TEST(SpoiledLocks, AreNoticed) {
  for (const char* const lock : {"ticket", "clh", "phase-fair"}) {
    expect_noticed(lock, mutation_programs_of_lock(lock));
  }
  // Given back a little later, in a wait for a condition, which nobody misses.
  expect_noticed("cas-spin", mutation_programs_of_lock("cas-spin"),
                 {"src/lock/cas_spin.hpp: m.store(word(), 0, muster::release);, late"});
  // Two take it over from the dead at once: both are refused, and of three nobody sets it right.
  expect_noticed("robust", mutation_programs_of_lock("robust"),
                 {"src/lock/robust.hpp: if (!m.compare_exchange(word(), seen, mine, "
                  "muster::acquire)) return false;, tear"});
  // Still before the link, which its predecessor follows to clear it.
  expect_noticed("mcs", mutation_programs_of_lock("mcs"),
                 {"src/lock/mcs.hpp: m.store(waiting(t.client), 1, relaxed);, late"});
  // Its client hears later, and nobody else reads it until then; so with the next three.
  expect_noticed("oyama", mutation_programs_of_lock("oyama"),
                 {"src/lock/oyama.hpp: m.store(pending(slot), 0, release);, late"});
  expect_noticed("dsm-synch", mutation_programs_of_lock("dsm-synch"),
                 {"src/lock/dsm_synch.hpp: m.store(state(slot), done, release);, late"});
  const std::string done = "src/lock/cc_synch.hpp: m.store(state(slot), done, release);, late";
  // Whom the combiner overlooks is the next to have the lock, and executes its request itself.
  expect_noticed("flat-combining", mutation_programs_of_lock("flat-combining"),
                 {"src/lock/hints.hpp: if (m.compare_exchange(clients, seen, client + 1, relaxed)) "
                  "return;, drop",
                  "src/lock/hints.hpp: if (m.compare_exchange(clients, seen, client + 1, relaxed)) "
                  "return;, tear"});
  const std::string not_linked =
      "src/lock/cc_synch.hpp: m.store(link(t.spare), t.next + 1, release);, drop";
  expect_noticed("cc-synch", mutation_programs_of_lock("cc-synch"), {not_linked, done});
  // A slot of one cluster is not used again here: the second one is cc-synch's to notice.
  expect_noticed(
      "h-synch", mutation_programs_of_lock("h-synch"),
      {not_linked, done, "src/lock/cc_synch.hpp: m.store_unawaited(link(t.spare), 0);, drop"});
}

std::set<std::string> with(std::set<std::string> some, const std::set<std::string>& more) {
  some.insert(more.begin(), more.end());
  return some;
}

/// Those of the gate's programs, in this order.
std::vector<Rehearsed> chosen(const std::string& lock, const std::vector<std::string>& names) {
  std::vector<Rehearsed> result;
  const std::vector<Rehearsed> all = mutation_programs_of_lock(lock);
  for (const std::string& name : names) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Rehearsed& program) { return program.name == name; });
    if (found == all.end())
      ADD_FAILURE() << "there is no " << name;
    else
      result.push_back(*found);
  }
  return result;
}

// The gate's other programs for these have a hundred thousand executions, and notice no more.
TEST(SpoiledLocks, ThatHaveRingsAreNoticed) {
  const std::set<std::string> late = {
      // The request's number tells that it was executed; until the second store the client's next
      // one waits.
      "src/lock/rings.hpp: m.store(cells_.of(client, next.place), 0, release);, late",
      "src/lock/rings.hpp: m.store(served(client), Served{next.executed + 1, next.place, "
      "false}.word(), release);, late"};
  // Who gave the lock looks again, or a server asks for it; in these programs nobody does.
  const std::string given =
      "src/lock/desk.hpp: void give(M& m) const { m.give_held(*held); }, late";
  expect_noticed(
      "rings",
      chosen("rcl", {"rings, 1 clients, 2 sections, rings", "rings, 1 clients, 3 sections, rings",
                     "rings, 1 clients, 2 sections, yields", "rings, 2 clients, 2 sections, rings",
                     "rings, 1 clients, 4 sections, rings"}),
      with(late, {given}));
  const std::set<std::string> of_both = with(
      late,
      {// Of rings of one entry: who posts knows that it is 0.
       "src/lock/rings.hpp: if (!m.await(*last, equals(0), acquire)) return nullptr;, skip",
       // Hints: without them whoever has the lock executes its own sections only.
       "src/machine/lock_machine.hpp: port().store(wanted, 1, relaxed);, drop",
       "src/lock/habit.hpp: void ask(M& m) const { m.store_unawaited(wanted_.wanted, by_another); "
       "}, drop",
       "src/lock/habit.hpp: m.clear_wanted(wanted_.wanted, wanted_.dozing);, drop",
       "src/lock/auto.hpp: m.clear_wanted(wanted_.wanted, wanted_.dozing);, drop"});
  expect_noticed(
      "rcl",
      chosen("rcl", {"rings, 1 clients, 2 sections, yields", "rcl, 2 clients, 1 section",
                     "rcl, 2 clients, 2 sections", "rcl, 1 clients, 2 sections, server",
                     "rcl, 1 clients, 2 sections, shutdown", "rcl, 2 clients, 1 section, closing",
                     "rcl, 2 clients, 1 section, server"}),
      of_both);
  std::set<std::string> of_auto = of_both;
  of_auto.erase("src/lock/rings.hpp: m.store(cells_.of(client, next.place), 0, release);, late");
  expect_noticed(
      "auto",
      chosen("auto", {"rings, 1 clients, 2 sections, yields",
                      "rings, 1 clients, 1 section, leaving", "auto, 2 clients, 1 section",
                      "auto, 2 clients, 2 sections", "auto, 1 clients, 2 sections, attended",
                      "auto, 1 clients, 2 sections, two", "auto, 2 clients, 1 section, attended",
                      "auto, 2 clients, 1 section, two", "auto, 1 clients, 1 section, yields",
                      "auto, 1 clients, 1 section, visited", "auto, 1 clients, 2 sections, visited",
                      "auto, 2 clients, 1 section, dozes", "auto, 2 clients, 1 section, nested",
                      "auto, 2 clients, 1 section, served", "auto, 2 clients, 1 section, visits"}),
      with(of_auto,
           {// A hint, as above.
            "src/lock/ask.hpp: m.store_unawaited(wanted, by_another);, drop",
            "src/lock/doze.hpp: if (lot.peek(sleepers_on_dozing) < 2) lot.set(wanted, 0);, drop",
            // Of two clients one sleeps.
            "src/lock/doze.hpp: const Word set = lot.make_odd(dozing, acq_rel);, tear",
            "src/lock/doze.hpp: lot.take(dozing, seen, seen + 1);, tear",
            // Whom nobody sees executes its request itself.
            "src/lock/hints.hpp: if (m.compare_exchange(clients, seen, client + 1, relaxed)) "
            "return;, tear",
            "src/lock/attended.hpp: m.exchange(news(), 1, release);, tear"}));
}

TEST(SpoiledStations, AreNoticed) {
  expect_noticed(
      "station", mutation_programs_of_lock("station"),
      {// Hints: without them the watchdog looks often, and who has the lock looks in vain.
       "src/lock/crew.hpp: m.store(asleep, 1, relaxed);, drop",
       "src/lock/numbers.hpp: m.store(row.wanted, 0, relaxed);, drop",
       // A section later it is known that the lock's sections block.
       "src/lock/ahead.hpp: m.store(left, 1, relaxed);, late",
       "src/lock/ahead.hpp: m.store(left, m.waits() != waits ? after_block : with_spare - 1, "
       "relaxed);, late"});
}

TEST(SpoiledMutexes, AreNoticed) {
  const std::string queue = "src/lock/parking_queue.hpp: ";
  const std::string cna = "src/lock/parking_cna.hpp: ";
  expect_noticed(
      "mutex", mutation_programs_of_mutexes(),
      {
          // Hints: who is near, how often the near ones went first.
          queue + "m.store(numa(t.client), t.numa, relaxed);, drop",
          cna + "m.store(q.streak(), streak + 1, relaxed);, drop",
          cna + "m.store(q.streak(), 0, relaxed);, drop",
          // Of two looks one: it sleeps later, or not at all.
          queue + "m.await(turn(t.client), equals(called), muster::acquire);, skip",
          queue + "if (!m.compare_exchange(turn(client), seen, asleep, relaxed)) return;, drop",
          // Who is called reads it when it has the mutex, which its caller gives later.
          queue + "m.store(aside_first(), 0, relaxed);, late",
          cna + "m.store(q.aside_first(), 0, relaxed);, late",
      });
}

}  // namespace
}  // namespace muster::check
