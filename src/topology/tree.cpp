// SPDX-License-Identifier: BSD-3-Clause
#include "topology/tree.hpp"

#include <algorithm>
#include <cstddef>

#include "machine/format.hpp"

namespace muster {

std::string check_tree(const GroupTree& tree) {
  if (tree.participants == 0) return "the tree has no participants";
  if (tree.levels.empty()) return "the tree has no levels: the last one joins all leaders";
  // Climbing: a rank is waiting to join until it is a member of a group that another rank leads.
  std::vector<char> waiting(tree.participants, 1);
  std::vector<std::size_t> joined(tree.participants, 0);  // last level it is a member of, plus one
  std::size_t waiting_count = tree.participants;
  for (std::size_t l = 0; l < tree.levels.size(); ++l) {
    const GroupLevel& level = tree.levels[l];
    if (level.groups.empty()) return format("level {} ({}) has no groups", l, level.name);
    for (std::size_t g = 0; g < level.groups.size(); ++g) {
      const Group& group = level.groups[g];
      const std::string where = format("group {} of level {} ({})", g, l, level.name);
      if (group.members.empty()) return where + " has no members";
      for (std::size_t m = 0; m < group.members.size(); ++m) {
        const unsigned rank = group.members[m];
        if (rank >= tree.participants) {
          return format("{} has rank {}, but ranks end at {}", where, rank, tree.participants - 1);
        }
        if (m > 0 && rank <= group.members[m - 1]) {
          return format("{}: members do not ascend at rank {}", where, rank);
        }
        if (joined[rank] == l + 1) {
          return format("rank {} is in two groups of level {} ({})", rank, l, level.name);
        }
        if (!waiting[rank]) {
          return format("{} has rank {}, which does not lead its group below", where, rank);
        }
        joined[rank] = l + 1;
        if (m > 0) {
          waiting[rank] = 0;
          --waiting_count;
        }
      }
      if (g > 0 && group.leader() <= level.groups[g - 1].leader()) {
        return where + " is out of order: groups are ordered by leader";
      }
    }
  }
  const GroupLevel& top = tree.levels.back();
  if (top.groups.size() != 1) {
    return format("the last level ({}) has {} groups: one joins all leaders", top.name,
                  top.groups.size());
  }
  if (top.groups[0].leader() != 0) {
    return format("the last group is led by rank {}, not by rank 0", top.groups[0].leader());
  }
  if (waiting_count != 1) {
    for (unsigned rank = 1; rank < tree.participants; ++rank) {
      if (waiting[rank]) {
        return format("rank {} is in no group that leads to the last one", rank);
      }
    }
  }
  return {};
}

std::string format_numbers(const std::vector<unsigned>& numbers) {
  std::string text;
  const auto append = [&text](const std::string& piece) {
    if (!text.empty()) text += ',';
    text += piece;
  };
  std::size_t i = 0;
  while (i < numbers.size()) {
    std::size_t end = i + 1;  // the run [i, end) has one stride
    const unsigned stride = end < numbers.size() ? numbers[end] - numbers[i] : 0;
    while (end < numbers.size() && numbers[end] - numbers[end - 1] == stride) ++end;
    if (end - i >= (stride == 1 ? 3U : 5U)) {
      const std::string step = stride == 1 ? "" : format(":{}", stride);
      append(format("{}-{}{}", numbers[i], numbers[end - 1], step));
      i = end;
    } else {
      append(format("{}", numbers[i]));
      ++i;
    }
  }
  return text;
}

namespace {

struct TreePrinter {
  const GroupTree& tree;
  // led[rank]: (level, group) of the groups it leads, bottom up.
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> led;
  std::string text;

  explicit TreePrinter(const GroupTree& t) : tree(t), led(t.participants) {
    for (std::size_t l = 0; l < tree.levels.size(); ++l) {
      for (std::size_t g = 0; g < tree.levels[l].groups.size(); ++g) {
        led[tree.levels[l].groups[g].leader()].emplace_back(l, g);
      }
    }
  }

  void print(std::size_t level, std::size_t index, const std::string& first,
             const std::string& rest) {
    const Group& group = tree.levels[level].groups[index];
    text += format("{}{}  leader {}  members {}\n", first, tree.levels[level].name, group.leader(),
                   format_numbers(group.members));
    std::vector<std::pair<std::size_t, std::size_t>> children;
    for (const unsigned member : group.members) {
      const auto& of = led[member];
      const auto above =
          std::lower_bound(of.begin(), of.end(), std::make_pair(level, std::size_t{0}));
      if (above != of.begin()) children.push_back(*(above - 1));
    }
    for (std::size_t c = 0; c < children.size(); ++c) {
      const bool last = c + 1 == children.size();
      print(children[c].first, children[c].second, rest + (last ? "└─ " : "├─ "),
            rest + (last ? "   " : "│  "));
    }
  }
};

}  // namespace

std::string format_tree(const GroupTree& tree) {
  if (tree.levels.empty()) return {};
  TreePrinter printer(tree);
  printer.print(tree.levels.size() - 1, 0, "", "");
  return printer.text;
}

}  // namespace muster
