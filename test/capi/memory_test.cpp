// SPDX-License-Identifier: BSD-3-Clause
// What barriers take: many share little, and explain tells how much; and what it tells else.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "capi/block.hpp"
#include "capi/explain.hpp"
#include "every.hpp"
#include "memory/pages.hpp"

namespace muster::test {
namespace {

using nlohmann::json;

constexpr unsigned thousand = 1000;
constexpr std::size_t limit_bytes = std::size_t{64} << 20;

std::vector<std::string> with_auto() {
  std::vector<std::string> names = all_names();
  names.emplace_back("auto");
  return names;
}

std::size_t resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  unsigned long size = 0;
  unsigned long resident = 0;
  if (file == nullptr || std::fscanf(file, "%lu %lu", &size, &resident) != 2) return 0;
  std::fclose(file);
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

class Thousand : public testing::TestWithParam<std::string> {};

// The barriers themselves; of the default one also with what each of 64000 ranks keeps once it has
// waited, all in one process. Of the others half wait.
TEST_P(Thousand, BarriersOf64StayUnder64MiB) {
  const HangGuard guard(100);
  struct Sizes {
    std::size_t told, made, used;
  };
  const Shared<Sizes> sizes;
  const unsigned used = GetParam() == "auto" ? thousand : thousand / 2;
  Child child([&] {  // with a heap that no other test has used
    run_threads(64, [](unsigned) {});
    const std::size_t before = resident_bytes();
    std::vector<muster_barrier*> barriers(thousand);
    const muster_options options = options_for(64, GetParam().c_str());
    for (muster_barrier*& barrier : barriers) {
      if (muster_barrier_create(&barrier, &options) != MUSTER_OK) _exit(1);
      sizes->told += json::parse(explain(barrier, "json"))["memory"]["bytes"].get<std::size_t>();
    }
    sizes->made = resident_bytes() - before;
    run_threads(64, [&](unsigned rank) {
      for (unsigned i = 0; i < used; ++i) {
        if (muster_barrier_timedwait(barriers[i], rank, patience_ns) != MUSTER_OK) _exit(2);
      }
      if (rank == 0) sizes->used = resident_bytes() - before;
    });
  });
  ASSERT_EQ(child.wait(), "");
  std::printf("%-24s %5zu KiB told, %5zu KiB resident, %5zu KiB once used\n", GetParam().c_str(),
              sizes->told >> 10, sizes->made >> 10, sizes->used >> 10);
  EXPECT_LT(sizes->told, limit_bytes);
  // What a rank keeps to itself; it is not shared, and only in the process that waits as it.
  EXPECT_LT(sizes->used - sizes->made, std::size_t{used} * 64 * 1024);
  if (GetParam() == "auto") {
    EXPECT_LT(sizes->used, limit_bytes);
  }
  EXPECT_LT(sizes->made, sizes->told + sizes->told / 2 + (4 << 20)) << "explain hides something";
  EXPECT_GT(sizes->made, sizes->told / 2) << "not what was measured";
}

TEST_P(Thousand, ShareOneSegment) {
  const HangGuard guard(100);
  muster_segment* segment = nullptr;
  ASSERT_EQ(muster_segment_create(&segment, limit_bytes), MUSTER_OK) << muster_last_error();
  muster_options options = options_for(64, GetParam().c_str());
  options.segment = segment;
  std::vector<muster_barrier*> barriers(thousand);
  for (muster_barrier*& barrier : barriers) {
    ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK) << muster_last_error();
  }
  for (muster_barrier* barrier : barriers) muster_barrier_destroy(barrier);
  muster_segment_destroy(segment);
}

INSTANTIATE_TEST_SUITE_P(All, Thousand, testing::ValuesIn(with_auto()), identifier);

json memory_of(const char* topology, const char* map_by, unsigned participants) {
  muster_options options = options_for(participants, "mcs");
  options.topology = topology;
  options.map_by = map_by;
  const CapiSubject barrier(options);
  const json told = json::parse(explain(barrier.handle(), "json"));
  std::size_t bytes = 0;
  std::size_t alignment = 0;
  EXPECT_EQ(muster_barrier_memory(&options, &bytes, &alignment), MUSTER_OK);
  EXPECT_EQ(told["memory"]["bytes"], bytes);
  EXPECT_EQ(run_trial({const_cast<CapiSubject*>(&barrier)},
                      {.seed = case_seed(), .episodes = 200, .budget_ms = 50}),
            "");
  return told["memory"];
}

// First touch matters only where there are several NUMA nodes: pages there, lines elsewhere.
TEST(Pages, AreWholeForEachRankOnSeveralNumaNodes) {
  const HangGuard guard(60);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const json several = memory_of("package:2 numa:2 core:4 pu:1", "numa", 8);
  EXPECT_EQ(several["paged"], true);
  EXPECT_EQ(several["bytes_per_rank"].get<std::size_t>() % page, 0U);
  EXPECT_GE(several["bytes"].get<std::size_t>(), 8 * page);

  const json one = memory_of("package:1 numa:1 core:8 pu:1", "core", 8);
  EXPECT_EQ(one["paged"], false);
  EXPECT_LT(one["bytes_per_rank"].get<std::size_t>(), page);

  // All four on the first NUMA node of several.
  EXPECT_EQ(memory_of("package:2 numa:2 core:4 pu:1", "core", 4)["paged"], false);
}

/// Where everything is that a participant writes: cells, marks, and what the domain announces.
std::vector<const std::byte*> written_places(const Plan& plan, const Block& block) {
  const Layout cells = with_barrier<Hardware>(plan.algorithm.name,
                                              [&]<class B>() { return B::layout(plan.shape()); });
  std::vector<const std::byte*> places;
  const auto add = [&](const auto& object) {
    places.push_back(reinterpret_cast<const std::byte*>(&object));
  };
  add(block.domain());
  for (unsigned i = 0; i < cells.global_cells; ++i) add(block.cells().global(i));
  for (unsigned rank = 0; rank < plan.participants; ++rank) {
    add(block.mark(rank));
    for (unsigned i = 0; i < cells.cells_per_rank; ++i) add(block.cells().of(rank, i));
  }
  return places;
}

// With pages, too: two NUMA nodes.
TEST(Lines, EachCellHasOneToItself) {
  for (const std::string& name : with_auto()) {
    for (const unsigned participants : {1U, 2U, 5U, 17U}) {
      for (const char* topology : {"package:2 l3:3 core:3 pu:1", "package:2 [numa] core:9 pu:1"}) {
        muster_options options = options_for(participants, name.c_str());
        options.topology = topology;
        options.map_by = "socket";
        const Plan plan = make_plan(options);
        const BlockLayout layout = Block::lay_out(plan);
        EXPECT_EQ(layout.line, line_size());
        EXPECT_EQ(layout.paged, participants > 1 && topology[10] == '[');
        const SharedMemory memory(layout.bytes);
        const Block block = Block::create(memory.data(), layout, plan);
        std::vector<const std::byte*> places = written_places(plan, block);
        ASSERT_GT(places.size(), participants);
        std::sort(places.begin(), places.end());
        // What is read at every wait, but not written, comes first.
        EXPECT_GE(places[0], memory.data() + layout.description + layout.description_bytes);
        EXPECT_LE(places.back() + layout.line, memory.data() + layout.bytes);
        for (std::size_t i = 0; i < places.size(); ++i) {
          EXPECT_EQ((places[i] - memory.data()) % static_cast<std::ptrdiff_t>(layout.line), 0);
          if (i > 0) {
            ASSERT_GE(places[i] - places[i - 1], static_cast<std::ptrdiff_t>(layout.line))
                << name << " of " << participants << ", place " << i;
          }
        }
        // And no two participants' blocks share a pair of lines, or a page.
        for (unsigned rank = 0; rank < participants; ++rank) {
          const auto at = static_cast<std::size_t>(block.rank_memory(rank) - memory.data());
          EXPECT_EQ(at % (layout.paged ? page_size() : 2 * layout.line), 0U) << name;
        }
      }
    }
  }
}

TEST(Explain, IsJsonWhateverTheTextsHaveInThem) {
  Plan plan;
  plan.participants = 4;
  plan.algorithm.name = "topo";
  plan.asked = "quoted \"and\\ broken\n\t\x7f\xff\xc3";
  plan.groups.levels.push_back({"L3", {{{0, 1}}, {{2, 3}}}});
  plan.groups.levels.push_back({"NU\"MA", {{{0, 2}}}});
  plan.wait.spin_ns = WaitPolicy::forever;
  plan.wait.yield_ns = 7;
  const auto told = json::parse(explain_as_json(plan, BlockLayout{}));
  EXPECT_EQ(told["asked"], "quoted \"and\\ broken\n\t\x7f\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(told["participants"], 4);
  EXPECT_EQ(told["shared"], false);
  EXPECT_TRUE(told["wait"]["spin_ns"].is_null());
  EXPECT_EQ(told["wait"]["yield_ns"], 7);
  ASSERT_EQ(told["groups"].size(), 3U);
  EXPECT_EQ(told["groups"][2]["level"], "NU\"MA");
  EXPECT_EQ(told["groups"][1]["members"], (std::vector<unsigned>{2, 3}));
  EXPECT_EQ(told["groups"][1]["leader"], 2);
  EXPECT_EQ(told["steps"].size(), 3U);
  EXPECT_FALSE(told.contains("learnt"));
  Learnt learnt;
  learnt.ranks = 3;
  EXPECT_EQ(json::parse(explain_as_json(plan, BlockLayout{}, learnt))["learnt"]["ranks"], 3);
}

TEST(Explain, SaysWhereItBelievesEverybodyToSit) {
  Plan plan;
  plan.participants = 3;
  plan.algorithm.name = "following";
  EXPECT_FALSE(json::parse(explain_as_json(plan, BlockLayout{})).contains("whereabouts"));
  const Whereabouts where{{8, 0, 1}, "scheduled-NUMA:flat+line", 2};
  const auto told = json::parse(explain_as_json(plan, BlockLayout{}, {}, where));
  EXPECT_EQ(told["whereabouts"]["pus"], json::parse("[7,null,0]"));
  EXPECT_EQ(told["whereabouts"]["composed"], "scheduled-NUMA:flat+line");
  EXPECT_EQ(told["whereabouts"]["changes"], 2);
  const std::string text = explain_as_text(plan, BlockLayout{}, {}, where);
  EXPECT_NE(text.find("seats         on CPU, by rank: 7 ? 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("runs          scheduled-NUMA:flat+line (2 changes)\n"), std::string::npos);
}

}  // namespace
}  // namespace muster::test
