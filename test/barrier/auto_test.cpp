// SPDX-License-Identifier: BSD-3-Clause
// The rule behind `auto`: what it picks in each situation, and the reason it gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "barrier/registry.hpp"

namespace muster::test {
namespace {

using testing::HasSubstr;

struct Case {
  Situation situation;
  const char* algorithm;
  const char* why;
};

TEST(Auto, PicksByRule) {
  const Case cases[] = {
      {{.participants = 1}, "sense-reversing", "one participant"},
      {{.participants = 4, .usable_cpus = 8, .needs_split = true}, "sense-reversing", "apart"},
      {{.participants = 4, .usable_cpus = 2}, "sense-reversing-pu", "not bound"},
      {{.participants = 4, .usable_cpus = 2, .bound = true, .share_cores = true},
       "topo-counter-CORE",
       "last on a core"},
      {{.participants = 6, .usable_cpus = 2, .bound = true}, "sense-reversing-pu", "none share"},
      {{.participants = 2, .usable_cpus = 2}, "dissemination", "two participants"},
      {{.participants = 2, .usable_cpus = 8, .bound = true, .numa_nodes = 2},
       "dissemination",
       "two participants"},
      {{.participants = 2, .usable_cpus = 2, .needs_champion = true},
       "combining-tree",
       "completion"},
      {{.participants = 8, .usable_cpus = 8, .bound = true, .numa_nodes = 2},
       "topo",
       "2 NUMA nodes"},
      {{.participants = 8, .usable_cpus = 8}, "dissemination", "few participants"},
      {{.participants = 32, .usable_cpus = 32}, "combining-tree", "many participants"},
  };
  for (const Case& c : cases) {
    const Choice choice = choose_barrier(c.situation);
    EXPECT_EQ(choice.algorithm.text(), c.algorithm) << choice.why;
    EXPECT_THAT(choice.why, HasSubstr(c.why));
  }
}

}  // namespace
}  // namespace muster::test
