// SPDX-License-Identifier: BSD-3-Clause
// Placements on described machines against golden/*.golden.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "placement/placer.hpp"
#include "test/topology/describe.hpp"

namespace muster::test {
namespace {

const std::filesystem::path golden = MUSTER_TEST_PLACEMENTS;

std::string describe_tree(const CoreTree& tree) {
  std::string text = fmt::format("cores {}\n", tree.cores());
  for (unsigned level = 0; level < tree.levels().size(); ++level) {
    text += fmt::format("{}:", tree.levels()[level]);
    for (const Element& element : tree.elements()) {
      if (element.level != level) continue;
      const auto at = tree.order().begin();
      std::vector<unsigned> cores(at + element.first, at + element.end);
      std::sort(cores.begin(), cores.end());
      text += fmt::format(" {{{}}}", format_numbers(cores));
    }
    text += "\n";
  }
  for (const NumaCores& numa : tree.numa_nodes()) {
    text += fmt::format(
        "cores of {}: {}\n",
        numa.os_index ? fmt::format("NUMA node {}", *numa.os_index) : std::string("no NUMA node"),
        format_numbers(numa.cores));
  }
  return text;
}

std::string describe(const MemoryDecision& memory, const CoreTree& tree) {
  switch (memory.binding) {
    case MemoryDecision::Binding::bind:
      return fmt::format(" bind {}{}", *tree.numa_nodes()[*memory.numa].os_index,
                         memory.migrate ? " migrate" : "");
    case MemoryDecision::Binding::lift:
      return " lift";
    case MemoryDecision::Binding::keep:
      break;
  }
  return "";
}

// All servers that fit and two that share; threads with the first few servers: one each, and half
// as many again.
std::string describe_placements(const CoreTree& tree) {
  std::string text;
  for (const ServerPolicy policy : {ServerPolicy::pack, ServerPolicy::spread}) {
    Placer placer(tree);
    text += fmt::format("\nservers, {}:", policy_name(policy));
    for (unsigned server = 0; server < std::min(tree.cores() + 1, 40U); ++server) {
      const Placer::Server placed = placer.add_server(policy);
      text += fmt::format(" {}{}", placed.core, describe(placed.memory, tree));
    }
    text += "\n";
    for (const unsigned servers : {1U, 2U, 3U}) {
      Placer with(tree);
      for (unsigned server = 0; server < servers; ++server) with.add_server(policy);
      const std::vector<unsigned> threads = with.add_threads(tree.cores() + tree.cores() / 2);
      text += fmt::format("threads, {} servers: {}\n", servers, fmt::join(threads, " "));
    }
  }
  return text;
}

class Placements : public ::testing::TestWithParam<std::string> {};

TEST_P(Placements, AreAsBefore) {
  const CoreTree tree(machine(GetParam()));
  expect_golden(describe_tree(tree) + describe_placements(tree),
                golden / std::filesystem::path(GetParam()).replace_extension(".golden"),
                "regenerate-placements");
}

INSTANTIATE_TEST_SUITE_P(Described, Placements, ::testing::ValuesIn(machine_files()), test_name);

TEST(GoldenPlacements, AllAreThere) {
  EXPECT_EQ(files(golden, {".golden"}).size(), machine_files().size());
}

}  // namespace
}  // namespace muster::test
