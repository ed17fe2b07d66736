// SPDX-License-Identifier: BSD-3-Clause
#include "topology/picture.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "describe.hpp"

namespace muster {
namespace {

Picture picture_of(const Topology& topology, const std::vector<PuSet>& bindings,
                   const std::string& mask = "") {
  const ActiveLevels active = topology.active_levels(parse_level_mask(mask));
  return draw_groups(topology, active, bindings, group_ranks(topology.place(bindings, active)));
}

bool has_text(const Picture& picture, const std::string& text) {
  return std::any_of(picture.texts.begin(), picture.texts.end(),
                     [&](const Picture::Text& t) { return t.text == text; });
}

void expect_legible(const Picture& picture) {
  for (std::size_t i = 0; i < picture.texts.size(); ++i) {
    const Picture::Text& a = picture.texts[i];
    ASSERT_GE(a.x, 0) << a.text;
    ASSERT_LE(a.x + a.width(), picture.width) << a.text;
    ASSERT_LE(a.y, picture.height) << a.text;
    for (std::size_t j = i + 1; j < picture.texts.size(); ++j) {
      const Picture::Text& b = picture.texts[j];
      const bool apart = a.x + a.width() <= b.x || b.x + b.width() <= a.x ||
                         a.y <= b.y - 0.8 * b.size || b.y <= a.y - 0.8 * a.size;
      ASSERT_TRUE(apart) << "'" << a.text << "' and '" << b.text << "' overlap";
    }
  }
  // Boxes lie inside one another or apart: the machine's is the first.
  for (const Picture::Box& box : picture.boxes) {
    const Picture::Box& machine = picture.boxes.front();
    ASSERT_GE(box.x, machine.x);
    ASSERT_LE(box.x + box.width, machine.x + machine.width + 0.01);
    ASSERT_LE(box.y + box.height, machine.y + machine.height + 0.01);
  }
}

TEST(Picture, NoTextOverlapsOnAnyMachine) {
  for (const std::string& file : test::machine_files()) {
    SCOPED_TRACE(file);
    const Topology topology = test::machine(file);
    const auto cores = static_cast<unsigned>(topology.cores().size());
    for (const unsigned ranks : {2U, cores, 3 * cores + 1}) {
      expect_legible(picture_of(topology, topology.map_ranks(Mapping::numa, ranks)));
    }
    const Level* const numa = topology.level(LevelKind::numa);
    expect_legible(picture_of(topology, test::bind_to_units(*numa, 3), "CORE-GROUP-NUMA-SOCKET"));
  }
}

TEST(Picture, NoTextOverlapsFrom2To256Cores) {
  for (const unsigned cores : {2U, 3U, 7U, 16U, 61U, 128U, 256U}) {
    const Topology flat = Topology::from_synthetic(fmt::format("core:{} pu:1", cores));
    expect_legible(picture_of(flat, flat.map_ranks(Mapping::core, cores)));
  }
  const Topology deep = Topology::from_synthetic("package:4 numa:2 l3:4 l2:4 core:2 pu:2");
  expect_legible(picture_of(deep, deep.map_ranks(Mapping::socket, 1000)));
}

TEST(Picture, ShowsGroupsAndLeaders) {
  const Topology topology = Topology::from_synthetic("package:2 numa:2 l3:1 core:4 pu:1");
  const Picture picture = picture_of(topology, topology.map_ranks(Mapping::core, 16));
  EXPECT_TRUE(has_text(picture, "MACHINE · leader 0"));
  EXPECT_TRUE(has_text(picture, "PACKAGE 1 · leader 8"));
  EXPECT_TRUE(has_text(picture, "L3 3, NUMA 3 · leader 12"));
  EXPECT_TRUE(has_text(picture, "core 15"));
  EXPECT_TRUE(has_text(picture, "15"));
  const auto marks = [&](const std::string& level) {
    return std::count_if(picture.texts.begin(), picture.texts.end(),
                         [&](const Picture::Text& t) { return t.text == level; });
  };
  EXPECT_EQ(marks("MACHINE"), 1);
  EXPECT_EQ(marks("PACKAGE"), 1);
  EXPECT_EQ(marks("NUMA"), 2);
  // Four groups, four colours, four cells each.
  std::map<std::string, unsigned> cells;
  for (const Picture::Box& box : picture.boxes) {
    if (box.fill.rfind("hsl", 0) == 0) ++cells[box.fill];
  }
  ASSERT_EQ(cells.size(), 4U);
  for (const auto& [colour, count] : cells) EXPECT_EQ(count, 4U) << colour;
}

TEST(Picture, RanksOnSeveralCoresAreDashedCells) {
  const Topology topology = Topology::from_synthetic("package:2 numa:2 core:4 pu:1");
  const Picture picture = picture_of(topology, {{0}, PuSet::parse("0-7"), PuSet::parse("4-12")});
  const auto dashed = std::count_if(picture.boxes.begin(), picture.boxes.end(),
                                    [](const Picture::Box& box) { return box.dashed; });
  EXPECT_EQ(dashed, 2);
  EXPECT_TRUE(has_text(picture, "on 0-7"));
  EXPECT_TRUE(has_text(picture, "on 4-12"));
  expect_legible(picture);
}

TEST(Picture, SaysWhyItDeclined) {
  const Topology topology = Topology::from_synthetic("package:2 core:4 pu:1");
  const Picture picture = picture_of(topology, {{0}, {}});
  std::string all;
  for (const Picture::Text& text : picture.texts) all += text.text + " ";
  EXPECT_NE(all.find("Declined: unbound: rank 1"), std::string::npos);
  expect_legible(picture);
}

TEST(Picture, IsWellFormedSvg) {
  const Topology topology = Topology::from_synthetic("package:2 core:2 pu:1");
  Picture picture = picture_of(topology, topology.map_ranks(Mapping::core, 4));
  picture.texts[0].text = "a<b> & \"c\"";
  const std::string svg = to_svg(picture);
  EXPECT_EQ(svg.rfind("<?xml", 0), 0U);
  EXPECT_NE(svg.find("a&lt;b&gt; &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace muster
