// SPDX-License-Identifier: BSD-3-Clause
#include "fitting/profile.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "topology/text_file.hpp"

namespace muster {
namespace {

constexpr std::string_view first_lines =
    "muster-profile 1\n"
    "# Behind a barrier: the microseconds that the model predicts. None is measured.\n";
constexpr const char* system_profile = "/etc/muster/profile";
constexpr const char* apart = "apart";

std::vector<Profile::Count> levels_of(const Topology& topology) {
  std::vector<Profile::Count> counts;
  for (const Level& level : topology.active_levels().levels) {
    counts.push_back({level.name, static_cast<unsigned>(level.units.size())});
  }
  counts.push_back({"CORE", static_cast<unsigned>(topology.cores().size())});
  return counts;
}

std::string format_us(double us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", us);
  return text;
}

std::string format_counts(const std::vector<Profile::Count>& counts) {
  std::string text;
  for (const auto& [of, count] : counts) {
    text += (text.empty() ? "" : " ") + of + ":" + std::to_string(count);
  }
  return text;
}

std::string format_class(const Profile::Team& team) {
  return std::to_string(team.participants) + " " + format_counts(team.spread);
}

/// The words of a line, one after another.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line.substr(0, line.find('#'))) { skip(); }

  bool done() const { return rest_.empty(); }
  std::string_view next() {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(blanks));
    rest_.remove_prefix(word.size());
    skip();
    return word;
  }
  bool take(std::string_view word) {
    Words after = *this;
    if (after.next() != word) return false;
    *this = after;
    return true;
  }

 private:
  static constexpr std::string_view blanks = " \t\r";
  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(blanks), rest_.size())); }

  std::string_view rest_;
};

template <class T>
bool read_number(std::string_view text, T& number) {
  const char* const end = text.data() + text.size();
  return std::from_chars(text.data(), end, number).ptr == end && !text.empty();
}

/// Words with a colon, as far as they go.
bool read_counts(Words& words, std::vector<Profile::Count>& counts) {
  for (Words at = words; !at.done(); words = at) {
    const std::string_view word = at.next();
    const std::size_t colon = word.find(':');
    if (colon == std::string_view::npos) break;
    Profile::Count count{std::string(word.substr(0, colon)), 0};
    if (!read_number(word.substr(colon + 1), count.count)) return false;
    counts.push_back(std::move(count));
  }
  return !counts.empty();
}

/// A barrier that there is, and what it takes.
bool read_barrier(Words& words, std::string& name, double& us) {
  name = words.next();
  try {
    const Algorithm algorithm = parse_algorithm(name);
    static_cast<void>(traits_of(algorithm.name));
    static_cast<void>(parse_level_mask(algorithm.levels));
  } catch (const Error&) {
    return false;
  }
  return read_number(words.next(), us) && us >= 0 && std::isfinite(us);
}

bool read_machine(Words& words, Profile::Section& machine) {
  machine.progresses = words.take("mpi");
  return (machine.progresses || words.take("threads")) && read_counts(words, machine.levels) &&
         words.done();
}

bool read_team(Words& words, const Profile::Section& machine, Profile::Team& team) {
  if (!read_number(words.next(), team.participants) || team.participants == 0) return false;
  if (!read_counts(words, team.spread) || team.spread.size() != machine.levels.size()) return false;
  for (std::size_t n = 0; n < team.spread.size(); ++n) {
    const auto& [of, count] = team.spread[n];
    const bool last = n + 1 == team.spread.size();
    if (of != (last ? apart : machine.levels[n].of) || (count == 0 && !last)) return false;
  }
  if (!words.take("takes") || !read_barrier(words, team.algorithm, team.us)) return false;
  if (words.take("not") && !read_barrier(words, team.other, team.other_us)) return false;
  return words.done();
}

/// How little a team is like one of so many participants, spread so. The lists name the same.
double distance(const Profile::Team& team, unsigned participants, const Profile::Spread& spread) {
  const auto share = [](unsigned part, unsigned whole) { return 1.0 * part / whole; };
  double sum = std::abs(std::log(share(team.participants, participants)));
  for (std::size_t n = 0; n + 1 < spread.size(); ++n) {
    sum += std::abs(std::log(share(team.spread[n].count, spread[n].count)));
  }
  return sum + std::abs(share(team.spread.back().count, team.participants) -
                        share(spread.back().count, participants));
}

/// What is said of it may be of anybody: it has to be a barrier for these participants, too.
std::string refusal(const Algorithm& algorithm, const Topology& topology,
                    const std::vector<PuSet>& bindings) {
  if (!algorithm.uses_groups()) return "";
  try {
    const ActiveLevels active = topology.active_levels(parse_level_mask(algorithm.levels));
    const Grouping grouping = group_ranks(topology.place(bindings, active));
    if (grouping.status != Status::ok) return grouping.reason;
    if (algorithm.name == "scheduled") {
      static_cast<void>(
          compose_proved(&grouping.tree, grouping.tree.participants, algorithm.recipe));
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void ignore(std::string& ignored, const std::string& why) {
  ignored += (ignored.empty() ? "ignored: " : "; ") + why;
}

/// The user's and the system's, those that are there.
std::vector<std::string> usual_profiles() {
  std::vector<std::string> paths;
  const char* const folder = secure_getenv("XDG_CONFIG_HOME");
  const char* const home = secure_getenv("HOME");
  if (folder != nullptr && *folder == '/') {
    paths.push_back(std::string(folder) + "/muster/profile");
  } else if (home != nullptr && *home == '/') {
    paths.push_back(std::string(home) + "/.config/muster/profile");
  }
  paths.emplace_back(system_profile);
  std::erase_if(paths, [](const std::string& path) { return access(path.c_str(), F_OK) != 0; });
  return paths;
}

}  // namespace

Profile::Spread spread_of(const Topology& topology, const std::vector<PuSet>& bindings) {
  const Placement placement = topology.place(bindings, topology.active_levels());
  Profile::Spread spread;
  for (std::size_t level = 0; level < placement.levels.size(); ++level) {
    std::vector<unsigned> units = placement.unit[level];
    std::sort(units.begin(), units.end());
    const auto end = std::unique(units.begin(), units.end());
    spread.push_back({placement.levels[level], static_cast<unsigned>(end - units.begin())});
  }
  unsigned next_apart = 0;
  if (!placement.unit.empty()) {
    const std::vector<unsigned>& unit = placement.unit.front();
    for (std::size_t rank = 0; rank < unit.size(); ++rank) {
      if (unit[rank] != unit[(rank + 1) % unit.size()]) ++next_apart;
    }
  }
  spread.push_back({apart, next_apart});
  return spread;
}

std::vector<Profile::Team>& Profile::teams_of(const Topology& topology, bool progresses) {
  std::vector<Count> levels = levels_of(topology);
  for (Section& section : sections) {
    if (section.progresses == progresses && section.levels == levels) return section.teams;
  }
  return sections.emplace_back(Section{progresses, std::move(levels), {}}).teams;
}

Profile parse_profile(std::string_view text, const std::string& name) {
  Profile profile;
  bool begun = false;
  for (unsigned number = 1; !text.empty(); ++number) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    Words words(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
    if (words.done()) continue;
    const auto fail = [&](const char* what) {
      throw Error(Status::invalid, name + ", line " + std::to_string(number) + ": " + what);
    };
    if (!begun) {
      begun = words.take("muster-profile") && words.take("1") && words.done();
      if (!begun) fail("a profile that this version reads begins with \"muster-profile 1\"");
    } else if (words.take("machine")) {
      if (!read_machine(words, profile.sections.emplace_back())) {
        fail("a machine is mpi or threads, then LEVEL:UNITS..., at last CORE:NUMBER");
      }
    } else if (words.take("team")) {
      if (profile.sections.empty()) fail("a team stands below its machine");
      Profile::Section& machine = profile.sections.back();
      if (!read_team(words, machine, machine.teams.emplace_back())) {
        fail(
            "a team is PARTICIPANTS, LEVEL:UNITS... of its machine's levels, apart:NUMBER, "
            "then takes BARRIER MICROSECONDS, perhaps not BARRIER MICROSECONDS");
      }
    } else {
      fail("a statement is machine or team");
    }
  }
  if (!begun) throw Error(Status::invalid, name + " is empty, and no profile");
  return profile;
}

std::string format_profile(const Profile& profile) {
  std::string text(first_lines);
  for (const Profile::Section& machine : profile.sections) {
    text += std::string("machine ") + (machine.progresses ? "mpi " : "threads ") +
            format_counts(machine.levels) + "\n";
    for (const Profile::Team& team : machine.teams) {
      text += "team " + format_class(team) + " takes " + team.algorithm + " " + format_us(team.us);
      if (!team.other.empty()) text += " not " + team.other + " " + format_us(team.other_us);
      text += "\n";
    }
  }
  return text;
}

const Profile::Team& nearest_team(const std::vector<Profile::Team>& teams, const Topology& topology,
                                  const std::vector<PuSet>& bindings) {
  const auto participants = static_cast<unsigned>(bindings.size());
  const Profile::Spread spread = spread_of(topology, bindings);
  return *std::min_element(
      teams.begin(), teams.end(), [&](const Profile::Team& a, const Profile::Team& b) {
        return distance(a, participants, spread) < distance(b, participants, spread);
      });
}

Profiles read_profiles(const Topology& topology, bool progresses) {
  Profiles result;
  if (getauxval(AT_SECURE) != 0) return result;
  const char* const named = secure_getenv("MUSTER_PROFILE");
  std::vector<std::string> paths;
  if (named == nullptr) {
    paths = usual_profiles();
  } else if (*named != '\0') {
    paths.emplace_back(named);
  }
  for (const std::string& path : paths) {
    try {
      Profile profile = parse_profile(read_text_file(path, "profile"), "profile '" + path + "'");
      std::vector<Profile::Team>& teams = profile.teams_of(topology, progresses);
      if (!teams.empty()) {
        result.serving.push_back({path, std::move(teams)});
        continue;
      }
      ignore(result.ignored, "profile '" + path + "' has nothing for " +
                                 (progresses ? "an MPI's ranks" : "threads") + " on a machine of " +
                                 format_counts(levels_of(topology)));
    } catch (const Error& error) {
      if (named != nullptr) {
        throw Error(error.code(), std::string("MUSTER_PROFILE: ") + error.what());
      }
      ignore(result.ignored, error.what());
    }
  }
  return result;
}

Profiled profiled_choice(const Topology& topology, const std::vector<PuSet>& bindings,
                         bool progresses) {
  const Profiles profiles = read_profiles(topology, progresses);
  Profiled result{std::nullopt, profiles.ignored};
  const auto participants = static_cast<unsigned>(bindings.size());
  for (const auto& [path, teams] : profiles.serving) {
    const Profile::Team& nearest = nearest_team(teams, topology, bindings);
    const Algorithm algorithm = parse_algorithm(nearest.algorithm);
    if (const std::string why_not = refusal(algorithm, topology, bindings); !why_not.empty()) {
      ignore(result.ignored, "profile '" + path + "': " + nearest.algorithm + " for " +
                                 std::to_string(participants) + " participants: " + why_not);
      continue;
    }
    const bool exact =
        nearest.participants == participants && nearest.spread == spread_of(topology, bindings);
    std::string why = "profile '" + path + "' has it for ";
    why += exact ? "such a team" : "the nearest team, " + format_class(nearest);
    why += "; the model predicts " + format_us(nearest.us) + " us";
    if (!nearest.other.empty()) {
      why += ", and " + format_us(nearest.other_us) + " for " + nearest.other;
    }
    result.choice = Choice{algorithm, why};
    return result;
  }
  return result;
}

}  // namespace muster
