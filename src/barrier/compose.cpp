// SPDX-License-Identifier: BSD-3-Clause
#include "barrier/compose.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <span>

#include "machine/error.hpp"

namespace muster {
namespace {

using Gather = LevelRecipe::Gather;

/// `auto` composes a dozen at each creation: no rank and no step has memory of its own.
class Composer {
 public:
  Composer(const GroupTree& groups, const Recipe& recipe, unsigned room)
      : groups_(groups),
        recipe_(recipe),
        room_(room),
        cells_left_(room == 0 ? SIZE_MAX : std::size_t{room} * groups.participants),
        runners_(groups.participants),
        used_(groups.participants) {
    std::iota(runners_.begin(), runners_.end(), 0U);
    for (unsigned rank = 0; rank < groups.participants; ++rank) agents_.push_back({rank});
  }

  Schedule run() {
    const std::size_t top = groups_.levels.size() - 1;
    for (std::size_t level = 0; level < top; ++level) {
      for (const Group& group : groups_.levels[level].groups) gather(group.members, level);
    }
    const std::vector<unsigned>& leaders = groups_.levels[top].groups.front().members;
    const LevelRecipe& how = at_level(top);
    if (how.gather == Gather::all) {
      tell_all(leaders);
    } else if (how.gather == Gather::rounds) {
      tell_in_rounds(leaders);
    } else {
      gather(leaders, top);
      release(agents_[leaders.front()], leaders, top);
      return finish();
    }
    // Each of them knows that all have arrived.
    for (const unsigned leader : leaders) release_below(agents_[leader], leader, top);
    return finish();
  }

 private:
  using Cells = std::span<const CellAt>;

  /// Who acts for some ranks: a rank, or whoever of some `runners_` completes their last counter.
  struct Agent {
    unsigned first;  ///< of them; a rank's is itself
    unsigned count = 1;
    bool is_rank() const { return count == 1; }
  };
  /// In whose memory its flags lie.
  unsigned home(const Agent& agent) const { return runners_[agent.first]; }

  const LevelRecipe& at_level(std::size_t level) const {
    return part_for(recipe_, level, groups_.levels.size());
  }
  /// Each of 65,536 tells each: that would be hours and all memory, and a recipe may come from
  /// another process.
  void reserve(std::size_t cells) {
    constexpr std::size_t cells_max = std::size_t{1} << 22;
    reserved_ += cells;
    if (reserved_ <= cells_max) return;
    throw Error(Status::invalid, "the recipe \"" + format_recipe(recipe_) + "\" wants more than " +
                                     std::to_string(cells_max) + " cells for " +
                                     std::to_string(groups_.participants) + " participants");
  }
  CellAt new_cell(unsigned rank) {
    if (cells_left_-- == 0) {
      throw Error(Status::invalid, "the recipe \"" + format_recipe(recipe_) +
                                       "\" wants more than " + std::to_string(room_) +
                                       " cells a participant");
    }
    return {rank, used_[rank]++};
  }

  /// What a rank does when it knows that all have arrived comes after its arrivals; what somebody
  /// does who completed a counter stands there for all who may.
  void add(const Agent& agent, Cells awaits, Cells stores, bool released) {
    if (awaits.empty() && stores.empty()) return;
    draft(agent, awaits, stores, 0, released);
  }
  void count_in(const Agent& agent, CellAt counter, unsigned adders) {
    draft(agent, {}, {}, adders, false);
    cells_.push_back(counter);
  }
  void draft(const Agent& agent, Cells awaits, Cells stores, unsigned adders, bool released) {
    reserve(agent.count * (awaits.size() + stores.size() + 1));
    const Step step{static_cast<unsigned>(cells_.size()), static_cast<unsigned>(awaits.size()),
                    static_cast<unsigned>(stores.size()), adders};
    for (const Cells cells : {awaits, stores}) {
      cells_.insert(cells_.end(), cells.begin(), cells.end());
    }
    for (unsigned n = 0; n < agent.count; ++n) {
      drafts_.push_back(
          {2 * runners_[agent.first + n] + (released && agent.is_rank() ? 1 : 0), step});
    }
  }

  void gather(const std::vector<unsigned>& members, std::size_t level) {
    const LevelRecipe& how = at_level(level);
    if (members.size() == 1) return;
    if (how.gather == Gather::counter) {
      count(members, how.radix);
    } else {
      gather_by_tree(members, how.radix);
    }
  }

  /// The i-th member polls the flags of those from radix * i + 1 on, which lie in its own memory.
  void gather_by_tree(const std::vector<unsigned>& members, unsigned radix) {
    const std::size_t count = members.size();
    const std::size_t children = radix == 0 ? count : radix;
    std::vector<CellAt> flags(count);  // the first has none
    for (std::size_t i = 1; i < count; ++i) {
      flags[i] = new_cell(home(agents_[members[(i - 1) / children]]));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t first = std::min(count, children * i + 1);
      const std::size_t end = std::min(count, first + children);
      add(agents_[members[i]], Cells(flags).subspan(first, end - first),
          Cells(flags).subspan(i, i == 0 ? 0 : 1), false);
    }
  }

  /// Members add in subgroups of about `radix`; those who complete one are the members of the next.
  void count(const std::vector<unsigned>& members, unsigned radix) {
    std::vector<Agent> adders;
    for (const unsigned member : members) adders.push_back(agents_[member]);
    while (adders.size() > 1) {
      const auto total = static_cast<unsigned>(adders.size());
      const unsigned most = radix == 0 ? total : std::max(2U, radix);
      const unsigned counters = (total + most - 1) / most;
      std::vector<Agent> winners(counters);
      for (unsigned c = 0; c < counters; ++c) {
        const unsigned begin = total * c / counters;
        const unsigned end = total * (c + 1) / counters;
        if (end - begin == 1) {
          winners[c] = adders[begin];
          continue;
        }
        const CellAt counter = new_cell(home(adders[begin]));
        winners[c] = {static_cast<unsigned>(runners_.size()), 0};
        for (unsigned i = begin; i < end; ++i) {
          count_in(adders[i], counter, end - begin);
          winners[c].count += adders[i].count;
          for (unsigned n = 0; n < adders[i].count; ++n) {
            const unsigned runner = runners_[adders[i].first + n];
            runners_.push_back(runner);
          }
        }
      }
      adders = std::move(winners);
    }
    agents_[members.front()] = adders.front();
  }

  void tell_all(const std::vector<unsigned>& members) {
    const std::size_t count = members.size();
    if (count == 1) return;
    reserve(count * count);
    std::vector<CellAt> told;
    std::vector<CellAt> heard(count * (count - 1));  // by hearer, then by teller
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t n = 1; n < count; ++n) {  // not everybody the same one first
        const std::size_t j = (i + n) % count;
        told.push_back(new_cell(home(agents_[members[j]])));
        heard[j * (count - 1) + i - (i > j ? 1 : 0)] = told.back();
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t first = i * (count - 1);
      add(agents_[members[i]], {}, Cells(told).subspan(first, count - 1), false);
      add(agents_[members[i]], Cells(heard).subspan(first, count - 1), {}, false);
    }
  }

  void tell_in_rounds(const std::vector<unsigned>& members) {
    const auto count = static_cast<unsigned>(members.size());
    std::vector<CellAt> flags(count);
    for (unsigned distance = 1; distance < count; distance *= 2) {
      for (unsigned i = 0; i < count; ++i) flags[i] = new_cell(home(agents_[members[i]]));
      for (unsigned i = 0; i < count; ++i) {
        add(agents_[members[i]], {}, {&flags[(i + distance) % count], 1}, false);
        add(agents_[members[i]], {&flags[i], 1}, {}, false);
      }
    }
  }

  /// `who`, which knows that all have arrived, tells the members of a group of this level.
  void release(const Agent& who, const std::vector<unsigned>& members, std::size_t level) {
    const LevelRecipe& how = at_level(level);
    // Whoever completes a counter may be any of them: then each has to be told.
    std::vector<unsigned> told;
    for (const unsigned member : members) {
      if (level > 0 && how.direct)
        add_below(member, level, told);
      else
        told.push_back(member);
    }
    if (who.is_rank()) std::erase(told, home(who));
    const auto count = static_cast<unsigned>(told.size());
    const unsigned readers = how.readers == 0 ? std::max(1U, count) : how.readers;
    // The first stores the lines of so many others, then each of those whom it told.
    const unsigned lines_each = how.fan_out == 0 ? count : how.fan_out;
    std::vector<CellAt> lines;
    std::vector<std::size_t> lines_before{0};  // by teller
    std::vector<CellAt> line_of(count);        // by who is told
    for (std::uint64_t next = 0; next < count;) {
      for (unsigned n = 0; n < lines_each && next < count; ++n) {
        lines.push_back(new_cell(told[next]));
        const std::uint64_t end = std::min<std::uint64_t>(count, next + readers);
        for (; next < end; ++next) line_of[next] = lines.back();
      }
      lines_before.push_back(lines.size());
    }
    const auto stored_by = [&](std::size_t teller) {
      if (teller + 1 >= lines_before.size()) return Cells();
      return Cells(lines).subspan(lines_before[teller],
                                  lines_before[teller + 1] - lines_before[teller]);
    };
    add(who, {}, stored_by(0), true);
    for (unsigned i = 0; i < count; ++i) add({told[i]}, {&line_of[i], 1}, stored_by(i + 1), true);
    if (level == 0 || how.direct) return;
    for (const unsigned member : members) {
      release_below(who.is_rank() && member == home(who) ? who : Agent{member}, member, level);
    }
  }

  /// The group that this member of a group of `level` leads below, if it leads one.
  const std::vector<unsigned>* led_below(unsigned leader, std::size_t level,
                                         std::size_t& where) const {
    for (where = level; where-- > 0;) {
      const std::vector<Group>& groups = groups_.levels[where].groups;
      const auto found =
          std::lower_bound(groups.begin(), groups.end(), leader,
                           [](const Group& group, unsigned rank) { return group.leader() < rank; });
      if (found != groups.end() && found->leader() == leader) return &found->members;
    }
    return nullptr;
  }

  void release_below(const Agent& who, unsigned leader, std::size_t level) {
    std::size_t where = 0;
    if (const auto* members = led_below(leader, level, where)) release(who, *members, where);
  }

  /// All ranks below this member of a group of `level`, itself first.
  void add_below(unsigned member, std::size_t level, std::vector<unsigned>& ranks) const {
    std::size_t where = 0;
    const auto* members = led_below(member, level, where);
    if (members == nullptr) {
      ranks.push_back(member);
      return;
    }
    for (const unsigned below : *members) {
      if (where > 0)
        add_below(below, where, ranks);
      else
        ranks.push_back(below);
    }
  }

  /// Each rank's memory is as large as that of the one who has most. Where one polls a thousand
  /// flags that would be lines by the million: then what is too much for it goes to those after it.
  void spread(Schedule& schedule) {
    constexpr std::size_t few = std::size_t{1} << 16;  // lines: not worth one that lies elsewhere
    const std::size_t ranks = used_.size();
    const std::size_t most = *std::max_element(used_.begin(), used_.end());
    const std::size_t all = std::accumulate(used_.begin(), used_.end(), std::size_t{0});
    const std::size_t room =
        room_ != 0 ? room_ : std::max(few / ranks, 2 * ((all + ranks - 1) / ranks));
    const auto kept = static_cast<unsigned>(std::min(most, room));
    schedule.cells_per_rank = kept;
    if (kept == most) return;
    std::vector<unsigned> taken;
    for (const unsigned used : used_) taken.push_back(std::min(used, kept));
    std::vector<CellAt> moved;
    std::vector<std::size_t> first(ranks);  // of a rank's cells there
    std::size_t host = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      first[rank] = moved.size();
      host = std::max(host, rank);
      for (unsigned index = kept; index < used_[rank]; ++index) {
        while (taken[host % ranks] == kept) ++host;
        moved.push_back({static_cast<unsigned>(host % ranks), taken[host % ranks]++});
      }
    }
    for (CellAt& cell : schedule.cells) {
      if (cell.index >= kept) cell = moved[first[cell.rank] + cell.index - kept];
    }
  }

  Schedule finish() {
    Schedule schedule;
    std::vector<unsigned> next(2 * std::size_t{groups_.participants} + 1);
    for (const Draft& draft : drafts_) ++next[draft.place + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (unsigned rank = 0; rank < groups_.participants; ++rank) {
      schedule.programs.push_back({next[2 * rank], next[2 * rank + 1], next[2 * rank + 2]});
    }
    schedule.steps.resize(drafts_.size());
    schedule.cells.reserve(reserved_);
    for (const Draft& draft : drafts_) schedule.steps[next[draft.place]++] = draft.step;
    for (Step& step : schedule.steps) {
      const auto cells = cells_.begin() + step.first_cell;
      step.first_cell = static_cast<unsigned>(schedule.cells.size());
      schedule.cells.insert(schedule.cells.end(), cells,
                            cells + step.awaits + step.stores + (step.adders > 0 ? 1 : 0));
    }
    spread(schedule);
    return schedule;
  }

  const GroupTree& groups_;
  const Recipe& recipe_;
  unsigned room_;
  std::size_t cells_left_;
  std::vector<unsigned> runners_;
  std::vector<Agent> agents_;  ///< by rank: who acts for those that it stands for
  std::vector<CellAt> cells_;  ///< of the steps below
  struct Draft {
    unsigned place;  ///< twice the rank, and one more for a departure
    Step step;
  };
  std::vector<Draft> drafts_;
  std::vector<unsigned> used_;  ///< cells, by rank
  std::size_t reserved_ = 0;
};

}  // namespace

GroupTree groups_or_one(const GroupTree* groups, unsigned participants) {
  if (groups != nullptr && !groups->levels.empty()) return *groups;
  GroupTree one{participants, {{"MACHINE", {{}}}}};
  one.levels.front().groups.front().members.resize(participants);
  std::iota(one.levels.front().groups.front().members.begin(),
            one.levels.front().groups.front().members.end(), 0U);
  return one;
}

const LevelRecipe& part_for(const Recipe& recipe, std::size_t level, std::size_t levels) {
  const std::size_t parts = recipe.size();
  if (parts > levels || parts == 1) return recipe[std::min(level, parts - 1)];
  return level + 1 == levels ? recipe.back() : recipe[std::min(level, parts - 2)];
}

Recipe recipe_for(const GroupTree& groups) {
  Recipe recipe(groups.levels.size());
  const std::size_t leaders = groups.levels.back().groups.front().members.size();
  if (leaders <= 8) recipe.back().gather = Gather::all;
  return recipe;
}

Schedule compose(const GroupTree& groups, const Recipe& recipe, unsigned room) {
  if (recipe.empty()) return compose(groups, recipe_for(groups), room);
  return Composer(groups, recipe, room).run();
}

Schedule compose_proved(const GroupTree* groups, unsigned participants, const Recipe& recipe,
                        unsigned room) {
  Schedule made = compose(groups_or_one(groups, participants), recipe, room);
  const std::string fault = check_schedule(made);
  if (fault.empty()) return made;
  throw Error(Status::system, "\"" + format_recipe(recipe) + "\" makes no barrier: " + fault);
}

namespace {

constexpr std::string_view possible =
    "a recipe is levels from the bottom up, separated by '/', each flat, tree8 (children), count8 "
    "(members a counter), all or rounds, then +line16 (readers a line), +direct16 (of all ranks "
    "below) or +line16x4 (lines that each stores in turn)";

/// Takes `word` and the number after it, if there is one, off `text`.
bool take(std::string_view& text, std::string_view word, unsigned& number) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  unsigned read = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (end == text.data()) return true;
  if (error != std::errc{} || read == 0 || read > 65536) return false;
  number = read;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool read_level(std::string_view text, LevelRecipe& level) {
  level.radix = level.readers = 0;
  unsigned none = 0;
  if (take(text, "flat", none)) {
    level.gather = Gather::tree;
  } else if (take(text, "tree", level.radix)) {
    if (level.radix == 0) return false;
  } else if (take(text, "count", level.radix)) {
    level.gather = Gather::counter;
  } else if (take(text, "all", none)) {
    level.gather = Gather::all;
  } else if (take(text, "rounds", none)) {
    level.gather = Gather::rounds;
  } else {
    return false;
  }
  if (none != 0) return false;
  if (take(text, "+direct", level.readers)) {
    level.direct = true;
  } else if (!take(text, "+line", level.readers)) {
    return text.empty();
  }
  if (level.exchanges()) return false;
  const bool tells_on = take(text, "x", level.fan_out);
  return text.empty() && tells_on == (level.fan_out != 0);
}

std::string with_number(std::string_view word, unsigned number) {
  return std::string(word) + (number == 0 ? "" : std::to_string(number));
}

}  // namespace

Recipe parse_recipe(std::string_view text) {
  Recipe recipe;
  for (bool more = true; more;) {
    const std::size_t end = std::min(text.find('/'), text.size());
    if (!read_level(text.substr(0, end), recipe.emplace_back())) {
      throw Error(Status::invalid, "\"" + std::string(text.substr(0, end)) +
                                       "\" is no level: " + std::string(possible));
    }
    more = end < text.size();
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  for (std::size_t level = 0; level + 1 < recipe.size(); ++level) {
    if (recipe[level].exchanges()) {
      throw Error(Status::invalid,
                  "only the topmost level can be all or rounds: " + std::string(possible));
    }
  }
  return recipe;
}

std::string format_recipe(const Recipe& recipe) {
  std::string text;
  for (const LevelRecipe& level : recipe) {
    if (!text.empty()) text += '/';
    if (level.gather == Gather::all)
      text += "all";
    else if (level.gather == Gather::rounds)
      text += "rounds";
    else if (level.gather == Gather::counter)
      text += with_number("count", level.radix);
    else
      text += level.radix == 0 ? "flat" : with_number("tree", level.radix);
    if (level.exchanges()) continue;
    text += with_number(level.direct ? "+direct" : "+line", level.readers);
    if (level.fan_out != 0) text += "x" + std::to_string(level.fan_out);
  }
  return text;
}

}  // namespace muster
