// SPDX-License-Identifier: BSD-3-Clause
// Generated mutants of locks and mutexes: each store, update and wait of the source goes wrong, one
// at a time, and the gate's programs have to notice.
#include <gtest/gtest.h>

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
  for (const Mutation& mutation : spoil(algorithm, programs)) {
    ++all;
    const std::string name = name_of(mutation);
    const bool exempt = unnoticed.erase(name) != 0;
    EXPECT_EQ(mutation.fate == Fate::caught, !exempt)
        << algorithm << ", " << name << " (line " << mutation.access.site.line << ")";
  }
  for (const std::string& name : unnoticed) ADD_FAILURE() << "there is no " << name;
  EXPECT_GT(all, 0U);
  std::printf("%zu mutants of %s\n", all, algorithm.c_str());
}

TEST(SpoiledLocks, AreNoticed) {
  for (const char* const lock :
       {"cas-spin", "ticket", "mcs", "clh", "oyama", "dsm-synch", "rcl-batch"}) {
    expect_noticed(lock, mutation_programs_of_lock(lock));
  }
  // Whom the combiner overlooks is the next to have the lock, and executes its request itself.
  expect_noticed(
      "flat-combining", mutation_programs_of_lock("flat-combining"),
      {"src/lock/reception.hpp: if (m.compare_exchange(clients, seen, client + 1, relaxed)) "
       "return;, drop",
       "src/lock/reception.hpp: if (m.compare_exchange(clients, seen, client + 1, relaxed)) "
       "return;, tear"});
  const std::string not_linked =
      "src/lock/cc_synch.hpp: m.store(link(t.spare), t.next + 1, release);, drop";
  expect_noticed("cc-synch", mutation_programs_of_lock("cc-synch"), {not_linked});
  // A slot of one cluster is not used again here: the second one is cc-synch's to notice.
  expect_noticed(
      "h-synch", mutation_programs_of_lock("h-synch"),
      {not_linked, "src/lock/cc_synch.hpp: store_unawaited(m, link(t.spare), 0);, drop"});
}

TEST(SpoiledMutexes, AreNoticed) {
  const std::string queue = "src/lock/parking_queue.hpp: ";
  const std::string cna = "src/lock/parking_cna.hpp: ";
  expect_noticed(
      "mutex", mutation_programs_of_mutexes(),
      {
          // Hints: who may try, who is near, how often the near ones went first.
          queue + "m.store(first_sleeps(), 0, relaxed);, drop",
          queue + "m.store(first_sleeps(), 1, relaxed);, drop",
          queue + "m.store(first_sleeps(), sleeps ? 1 : 0, relaxed);, drop",
          queue + "m.store(numa(t.client), t.numa, relaxed);, drop",
          cna + "m.store(q.streak(), streak + 1, relaxed);, drop",
          cna + "m.store(q.streak(), 0, relaxed);, drop",
          // Of two looks one: it sleeps later, or not at all.
          queue + "if (!m.poll(turn(t.client), equals(called))) fall_asleep(m, t.client);, skip",
          queue + "m.await(turn(t.client), equals(called), muster::acquire);, skip",
          queue + "if (!m.compare_exchange(turn(client), seen, asleep, relaxed)) return;, drop",
          std::string("src/lock/parking.hpp: for (int tries = 0; tries < tries_max && ") +
              "m.poll(word(), equals(free)); ++tries) {, skip",
          // Faults of who comes a second time when others wait: no program has that many sections.
          queue + "m.store(link(t.client), 0, relaxed);, drop",
          cna + "m.store(q.aside_first(), 0, relaxed);, drop",
      });
}

}  // namespace
}  // namespace muster::check
