// SPDX-License-Identifier: BSD-3-Clause
#include "topology/picture.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "machine/format.hpp"
#include "topology/partition.hpp"

namespace muster {

namespace {

constexpr double kCharacterEm = 0.602;  // advance of DejaVu Sans Mono; other such fonts have 0.6
constexpr double kCellWidth = 54;
constexpr double kCellHeight = 38;
constexpr double kGap = 5;
constexpr double kHeader = 17;
constexpr double kHeaderSize = 10;
constexpr double kTitleSize = 13;
constexpr double kNoteSize = 10;
constexpr double kMargin = 12;
constexpr double kWidthMin = 460;
constexpr double kAspect = 1.5;  // width to height that a box is laid out for

const char* const kInk = "#1f2430";
const char* const kFaint = "#767c89";

double text_width(std::string_view text, double size) {
  const auto characters = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  });
  return kCharacterEm * size * static_cast<double>(characters);
}

// Distinct hues for neighbours however many groups there are: steps of the golden angle.
std::string group_colour(std::size_t index) {
  const double hue = std::fmod(205.0 + 137.508 * static_cast<double>(index), 360.0);
  const int lightness = index % 2 == 0 ? 84 : 77;
  return format("hsl({:.0f},62%,{}%)", hue, lightness);
}

// A core, or the place of ranks that span several.
struct Cell {
  std::string label;
  bool spans = false;
  std::vector<unsigned> ranks;
  std::string tooltip;
  double x = 0, y = 0;
};

struct Node {
  std::string label;
  bool active = false;
  std::vector<Cell> cells;
  std::vector<Node> children;
  PuSet pus;
  double x = 0, y = 0, width = 0, height = 0;
};

struct Grid {
  std::size_t columns = 1;
  double width = 0, height = 0;

  std::size_t row(std::size_t item) const { return item / columns; }
};

// The number of columns that comes closest to kAspect without leaving many places empty.
Grid arrange(std::size_t count, double item_width, double item_height) {
  Grid best;
  double best_cost = 1e9;
  for (std::size_t columns = 1; columns <= count; ++columns) {
    const std::size_t rows = (count + columns - 1) / columns;
    const double width = static_cast<double>(columns) * (item_width + kGap) - kGap;
    const double height = static_cast<double>(rows) * (item_height + kGap) - kGap;
    const double empty = static_cast<double>(rows * columns - count) / static_cast<double>(count);
    const double cost = std::abs(std::log(width / height / kAspect)) + empty;
    if (cost < best_cost - 1e-9) {
      best_cost = cost;
      best = {columns, width, height};
    }
  }
  return best;
}

class Painter {
 public:
  Painter(const Topology& topology, const ActiveLevels& active, const std::vector<PuSet>& bindings,
          const Grouping& grouping)
      : topology_(topology), active_(active), bindings_(bindings), grouping_(grouping) {}

  Picture paint() {
    choose_levels();
    collect_groups();
    Node machine = build_machine();
    size(machine);

    const double width = std::max(kWidthMin, machine.width) + 2 * kMargin;
    double y = kMargin;
    y = paragraph(title(), y, width, kTitleSize, true);
    place(machine, kMargin, y + kGap);
    draw(machine);
    y += kGap + machine.height + kGap;
    for (const std::string& note : notes()) y = paragraph(note, y, width, kNoteSize, false);
    picture_.width = width;
    picture_.height = y + kMargin;
    return std::move(picture_);
  }

 private:
  bool is_active(const Level& level) const {
    return std::any_of(active_.levels.begin(), active_.levels.end(),
                       [&level](const Level& other) { return other.name == level.name; });
  }

  void choose_levels() {
    std::vector<Candidate> candidates;
    for (const Level& level : topology_.levels()) {
      const bool usual = level.kind == LevelKind::l2 || level.kind == LevelKind::l3 ||
                         level.kind == LevelKind::numa || level.kind == LevelKind::die ||
                         level.kind == LevelKind::package;
      Candidate candidate{level.kind, level.name, {}};
      for (const Core& core : topology_.cores()) {
        candidate.column.push_back(level.unit_of(core.pus.front()));
      }
      if ((!usual && !is_active(level)) || !shared(candidate.column)) continue;
      candidates.push_back(std::move(candidate));
      named_.push_back(&level);
    }
    std::vector<DroppedLevel> twins;
    for (const std::size_t c : distinct_bottom_up(candidates, twins, "cores")) {
      boxes_.push_back(std::move(candidates[c].column));
    }
  }

  void collect_groups() {
    group_of_rank_.assign(bindings_.size(), kNoGroup);
    leads_.assign(bindings_.size(), "");
    std::size_t index = 0;
    const GroupTree& tree = grouping_.tree;
    for (const GroupLevel& level : tree.levels) {
      for (const Group& group : level.groups) {
        bool first_for_someone = false;
        for (const unsigned rank : group.members) {
          if (group_of_rank_[rank] != kNoGroup) continue;
          group_of_rank_[rank] = index;
          first_for_someone = true;
        }
        if (first_for_someone) ++index;
        const bool top = &level == &tree.levels.back();
        // Leading nobody but oneself is no news.
        if (group.members.size() > 1 || top) leads_[group.leader()] = level.name;
        for (const Level& of : active_.levels) {
          if (of.name != level.name) continue;
          leader_of_unit_[{level.name, of.unit_of_binding(bindings_[group.leader()])}] =
              group.leader();
        }
      }
    }
  }

  // All units that are this box, and who leads the active one's group.
  void label(Node& node) const {
    std::string leader;
    for (const Level* level : named_) {
      for (const Unit& unit : level->units) {
        if (unit.pus != node.pus) continue;
        node.label += format("{}{} {}", node.label.empty() ? "" : ", ", level->name, unit.id);
        node.active = node.active || is_active(*level);
        const auto found = leader_of_unit_.find({level->name, unit.id});
        if (found != leader_of_unit_.end()) leader = format(" · leader {}", found->second);
      }
    }
    node.label += leader;
  }

  // The cores' boxes below `depth` levels, outermost first; cores outside of a level's units stay
  // directly in the box above.
  void fill(Node& node, const std::vector<unsigned>& cores, std::size_t depth) {
    if (depth == 0) {
      for (const unsigned core : cores) {
        Cell cell;
        cell.label = format("core {}", topology_.cores()[core].id);
        cell.tooltip = format("core {}: PUs {}", topology_.cores()[core].id,
                              topology_.cores()[core].pu_set().to_string());
        cell.ranks = ranks_on_core_[core];
        node.cells.push_back(std::move(cell));
      }
      return;
    }
    const Column& box = boxes_[depth - 1];
    std::vector<unsigned> outside;
    std::vector<unsigned> ids;  // in the order of their first core
    std::map<unsigned, std::vector<unsigned>> inside;
    for (const unsigned core : cores) {
      const unsigned id = box[core];
      if (!is_unit(id)) {
        outside.push_back(core);
        continue;
      }
      if (inside[id].empty()) ids.push_back(id);
      inside[id].push_back(core);
    }
    for (const unsigned id : ids) {
      // A box around one core says nothing.
      if (inside[id].size() == 1) {
        fill(node, inside[id], depth - 1);
        continue;
      }
      Node child;
      for (const unsigned core : inside[id]) child.pus |= topology_.cores()[core].pu_set();
      label(child);
      fill(child, inside[id], depth - 1);
      node.children.push_back(std::move(child));
    }
    if (!outside.empty()) fill(node, outside, depth - 1);
  }

  // Ranks on several cores: a cell in the smallest box that holds them.
  void add_spanning(Node& node, const PuSet& binding, const std::vector<unsigned>& ranks) {
    for (Node& child : node.children) {
      if (binding.is_subset_of(child.pus)) return add_spanning(child, binding, ranks);
    }
    std::vector<unsigned> cores;
    for (const unsigned pu : binding.to_vector()) {
      cores.push_back(topology_.cores()[topology_.core_of(pu)].id);
    }
    std::sort(cores.begin(), cores.end());
    cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
    Cell cell;
    cell.spans = true;
    cell.label = fit({format("on {}", format_numbers(cores)), format("{} cores", cores.size())},
                     kCellWidth - 4, 7);
    cell.ranks = ranks;
    cell.tooltip = format("bound to PUs {}", binding.to_string());
    const auto first_core =
        std::find_if(node.cells.begin(), node.cells.end(), [](const Cell& c) { return !c.spans; });
    node.cells.insert(first_core, std::move(cell));
  }

  Node build_machine() {
    ranks_on_core_.assign(topology_.cores().size(), {});
    std::vector<std::pair<PuSet, std::vector<unsigned>>> spanning;
    for (unsigned rank = 0; rank < bindings_.size() && grouping_.status == Status::ok; ++rank) {
      const PuSet& binding = bindings_[rank];
      const unsigned core = topology_.core_of(binding.first());
      if (binding.is_subset_of(topology_.cores()[core].pu_set())) {
        ranks_on_core_[core].push_back(rank);
        continue;
      }
      const auto same = std::find_if(spanning.begin(), spanning.end(),
                                     [&](const auto& entry) { return entry.first == binding; });
      if (same != spanning.end()) {
        same->second.push_back(rank);
      } else {
        spanning.push_back({binding, {rank}});
      }
    }
    Node machine;
    machine.label = "MACHINE";
    if (grouping_.status == Status::ok) machine.label += " · leader 0";
    machine.active = true;
    machine.pus = topology_.pus();
    std::vector<unsigned> all(topology_.cores().size());
    for (unsigned core = 0; core < all.size(); ++core) all[core] = core;
    fill(machine, all, boxes_.size());
    for (const auto& [binding, ranks] : spanning) add_spanning(machine, binding, ranks);
    return machine;
  }

  static std::string fit(const std::vector<std::string>& from_longest, double width, double size) {
    for (const std::string& text : from_longest) {
      if (text_width(text, size) <= width) return text;
    }
    return from_longest.back();
  }

  void size(Node& node) {
    double child_width = 0;
    double child_height = 0;
    for (Node& child : node.children) {
      size(child);
      child_width = std::max(child_width, child.width);
      child_height = std::max(child_height, child.height);
    }
    const Grid cells = arrange(node.cells.size(), kCellWidth, kCellHeight);
    const Grid children = arrange(node.children.size(), child_width, child_height);
    const double both = !node.cells.empty() && !node.children.empty() ? kGap : 0;
    const double content =
        std::max(node.cells.empty() ? 0 : cells.width, node.children.empty() ? 0 : children.width);
    node.width = std::max(content, text_width(node.label, kHeaderSize) + kGap) + 2 * kGap;
    node.height = kHeader + (node.cells.empty() ? 0 : cells.height) + both +
                  (node.children.empty() ? 0 : children.height) + kGap;
  }

  void place(Node& node, double x, double y) {
    node.x = x;
    node.y = y;
    double top = y + kHeader;
    const Grid cells = arrange(node.cells.size(), kCellWidth, kCellHeight);
    for (std::size_t c = 0; c < node.cells.size(); ++c) {
      node.cells[c].x = x + kGap + static_cast<double>(c % cells.columns) * (kCellWidth + kGap);
      node.cells[c].y = top + static_cast<double>(cells.row(c)) * (kCellHeight + kGap);
    }
    if (node.children.empty()) return;
    if (!node.cells.empty()) top += cells.height + kGap;
    double child_width = 0;
    double child_height = 0;
    for (const Node& child : node.children) {
      child_width = std::max(child_width, child.width);
      child_height = std::max(child_height, child.height);
    }
    const Grid grid = arrange(node.children.size(), child_width, child_height);
    for (std::size_t c = 0; c < node.children.size(); ++c) {
      place(node.children[c],
            x + kGap + static_cast<double>(c % grid.columns) * (child_width + kGap),
            top + static_cast<double>(grid.row(c)) * (child_height + kGap));
    }
  }

  void text(double x, double baseline, double font_size, bool bold, const char* colour,
            std::string content) {
    picture_.texts.push_back({x, baseline, font_size, bold, colour, std::move(content)});
  }

  void centred(const Cell& cell, double baseline, double font_size, bool bold, const char* colour,
               const std::string& content) {
    text(cell.x + (kCellWidth - text_width(content, font_size)) / 2, baseline, font_size, bold,
         colour, content);
  }

  void draw(const Node& node) {
    picture_.boxes.push_back(
        {node.x, node.y, node.width, node.height, node.active ? "#f7f8fa" : "#ffffff",
         node.active ? "#4a5162" : "#c3c8d1", node.active ? 1.2 : 0.8, false, node.label});
    text(node.x + kGap, node.y + 12.5, kHeaderSize, node.active, node.active ? kInk : kFaint,
         node.label);
    for (const Cell& cell : node.cells) draw(cell);
    for (const Node& child : node.children) draw(child);
  }

  void draw(const Cell& cell) {
    std::string fill = "#ffffff";
    std::string leads;
    if (!cell.ranks.empty()) {
      fill = group_colour(group_of_rank_[cell.ranks.front()]);
      leads = leads_[cell.ranks.front()];  // of ranks in one place the lowest leads
    }
    std::string tooltip = cell.tooltip;
    if (!cell.ranks.empty()) tooltip += format("; ranks {}", format_numbers(cell.ranks));
    if (!leads.empty()) {
      tooltip += format("; rank {} leads up to {}", cell.ranks.front(), leads);
    }
    picture_.boxes.push_back({cell.x, cell.y, kCellWidth, kCellHeight, fill,
                              leads.empty() ? "#a9afbb" : kInk, leads.empty() ? 0.8 : 2.0,
                              cell.spans, tooltip});
    centred(cell, cell.y + 9.5, 7, false, cell.ranks.empty() ? kFaint : kInk, cell.label);
    if (cell.ranks.empty()) return;
    centred(cell, cell.y + 22.5, 11, true, kInk,
            fit({format_numbers(cell.ranks),
                 format("{} +{}", cell.ranks.front(), cell.ranks.size() - 1)},
                kCellWidth - 4, 11));
    if (!leads.empty()) centred(cell, cell.y + 33.5, 7.5, true, kInk, leads);
  }

  std::string title() const {
    return format("{} on {}, {}", counted(bindings_.size(), "ranks"), topology_.source(),
                  counted(topology_.cores().size(), "cores"));
  }

  std::vector<std::string> notes() const {
    if (grouping_.status != Status::ok) return {"Declined: " + grouping_.reason};
    std::vector<std::string> lines = {
        "Colour: a rank's lowest group. Thick frame: a leader, with the highest level it leads."};
    std::string groups = "Groups, bottom up:";
    for (const GroupLevel& level : grouping_.tree.levels) {
      groups += format(" {} {}{}", level.groups.size(), level.name,
                       &level == &grouping_.tree.levels.back() ? "." : ",");
    }
    lines.push_back(std::move(groups));
    return lines;
  }

  // Wrapped at spaces; returns where the next line goes.
  double paragraph(const std::string& content, double y, double width, double font_size,
                   bool bold) {
    const double room = width - 2 * kMargin;
    std::string line;
    const auto flush = [&] {
      y += font_size * 1.4;
      text(kMargin, y - font_size * 0.3, font_size, bold, kInk, std::exchange(line, {}));
    };
    std::size_t at = 0;
    while (at < content.size()) {
      std::size_t end = std::min(content.find(' ', at), content.size());
      std::string word = content.substr(at, end - at);
      // A word longer than a line (a path) is cut.
      while (text_width(word, font_size) > room) {
        if (!line.empty()) flush();
        auto characters = static_cast<std::size_t>(room / (kCharacterEm * font_size));
        while (characters < word.size() &&
               (static_cast<unsigned char>(word[characters]) & 0xc0) == 0x80) {
          ++characters;  // not inside a UTF-8 sequence
        }
        line = word.substr(0, characters);
        word.erase(0, characters);
        flush();
      }
      if (!line.empty() && text_width(line + ' ' + word, font_size) > room) flush();
      line += (line.empty() ? "" : " ") + word;
      at = end + 1;
    }
    if (!line.empty()) flush();
    return y;
  }

  static constexpr std::size_t kNoGroup = ~std::size_t{0};

  const Topology& topology_;
  const ActiveLevels& active_;
  const std::vector<PuSet>& bindings_;
  const Grouping& grouping_;
  Picture picture_;
  std::vector<const Level*> named_;  // levels that boxes stand for
  std::vector<Column> boxes_;  // unit by core, bottom up, each other cores than the ones below
  std::vector<std::vector<unsigned>> ranks_on_core_;
  std::vector<std::size_t> group_of_rank_;  // its lowest group, numbered from the bottom
  std::vector<std::string> leads_;          // by rank: the highest level it leads, or ""
  std::map<std::pair<std::string, unsigned>, unsigned> leader_of_unit_;
};

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

double Picture::Text::width() const { return text_width(text, size); }

Picture draw_groups(const Topology& topology, const ActiveLevels& active,
                    const std::vector<PuSet>& bindings, const Grouping& grouping) {
  return Painter(topology, active, bindings, grouping).paint();
}

std::string to_svg(const Picture& picture) {
  std::string svg = format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"'DejaVu Sans "
      "Mono',Menlo,Consolas,monospace\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      std::ceil(picture.width), std::ceil(picture.height));
  for (const Picture::Box& box : picture.boxes) {
    svg += format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" fill=\"{}\" "
        "stroke=\"{}\" stroke-width=\"{:.1f}\"{}><title>{}</title></rect>\n",
        box.x, box.y, box.width, box.height, box.fill, box.stroke, box.stroke_width,
        box.dashed ? " stroke-dasharray=\"4 2\"" : "", escaped(box.tooltip));
  }
  for (const Picture::Text& text : picture.texts) {
    svg += format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\"{} fill=\"{}\">{}</text>\n",
                  text.x, text.y, text.size, text.bold ? " font-weight=\"bold\"" : "", text.colour,
                  escaped(text.text));
  }
  return svg + "</svg>\n";
}

}  // namespace muster
