// SPDX-License-Identifier: BSD-3-Clause
// A picture of the groups on their machine: nested boxes as lstopo draws them, down to a cell per
// core; ranks coloured by their lowest group, leaders framed and marked with the highest level that
// they lead.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/topology.hpp"

namespace muster {

/// Shapes in drawing order; all lengths in px, y downwards.
struct Picture {
  struct Box {
    double x, y, width, height;
    std::string fill, stroke;  ///< SVG colours
    double stroke_width;
    bool dashed;
    std::string tooltip;
  };
  struct Text {
    double x, y;  ///< left end of the baseline
    double size;
    bool bold;
    std::string colour;
    std::string text;

    double width() const;  ///< as the monospaced font sets it
  };
  double width = 0, height = 0;
  std::vector<Box> boxes;
  std::vector<Text> texts;
};

/// Boxes: package, die, NUMA node, L3, L2 and the active levels, where shared by two or more cores;
/// units over the same cores are one box with both names. `bindings` as given to Topology::place().
/// A rank on several cores is a dashed cell in the smallest box around them. If `grouping`
/// declined, the machine is drawn with the reason below it. Texts do not overlap.
Picture draw_groups(const Topology& topology, const ActiveLevels& active,
                    const std::vector<PuSet>& bindings, const Grouping& grouping);

/// Text as it stands in SVG and HTML.
std::string escaped(std::string_view text);

/// The picture as an SVG file's text.
std::string to_svg(const Picture& picture);

}  // namespace muster
