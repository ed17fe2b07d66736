// SPDX-License-Identifier: BSD-3-Clause
#include "sim/pair_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>
#include <string_view>
#include <tuple>

#include "machine/error.hpp"
#include "topology/text_file.hpp"

namespace muster::sim {
namespace {

constexpr double same_within = 0.10;
constexpr double margin_least = 0.10;
constexpr double margin_most = 10;  // that a machine file takes

double quantile(std::vector<double>& values, double q) {
  const auto at = static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

DistanceClass describe(std::optional<LevelKind> level, std::vector<double> values) {
  DistanceClass result{level, values.size(), 0, 0, 0};
  if (values.empty()) return result;
  result.median_ns = quantile(values, 0.5);
  result.p10_ns = quantile(values, 0.1);
  result.p90_ns = quantile(values, 0.9);
  return result;
}

/// Sum of the squared deviations of the logarithms from their mean.
double spread_of(const std::vector<double>& values) {
  double mean = 0;
  for (const double v : values) mean += std::log(v) / static_cast<double>(values.size());
  double sum = 0;
  for (const double v : values) sum += (std::log(v) - mean) * (std::log(v) - mean);
  return sum;
}

/// Two cores.
struct Pair {
  std::size_t level;  ///< the innermost that they share; that of the machine is after all others
  unsigned package;   ///< of one of them
  double ns;
};

/// What sharing a line's home has to tell more of the variance than sharing a package alone does.
constexpr double home_tells = 0.05;

Distances classes_of(const std::vector<Pair>& pairs, const std::vector<const Level*>& levels) {
  std::vector<std::vector<double>> values(levels.size() + 1);
  for (const Pair& pair : pairs) values[pair.level].push_back(pair.ns);
  Distances result;
  std::vector<std::vector<double>> members;
  std::vector<double> all;
  for (std::size_t l = 0; l < values.size(); ++l) {
    if (values[l].empty()) continue;
    const auto kind =
        l < levels.size() ? std::optional(levels[l]->kind) : std::optional<LevelKind>();
    DistanceClass next = describe(kind, values[l]);
    result.classes.push_back(next);
    all.insert(all.end(), values[l].begin(), values[l].end());
    std::vector<double> own = std::move(values[l]);
    while (!result.merged.empty() &&
           next.median_ns < result.merged.back().median_ns * (1 + same_within)) {
      own.insert(own.end(), members.back().begin(), members.back().end());
      next = describe(kind, own);
      members.pop_back();
      result.merged.pop_back();
    }
    result.merged.push_back(next);
    members.push_back(std::move(own));
  }
  if (result.merged.empty()) {
    throw Error(Status::invalid, "the matrix has no pair of two cores");
  }
  // The outermost class is the machine's, whichever level its pairs have in common.
  result.merged.back().level.reset();
  for (const auto& own : members) result.within += spread_of(own);
  const double total = spread_of(all);
  result.explained = total > 0 ? std::max(0.0, 1 - result.within / total) : 1;
  return result;
}

/// Whose units are the model's dies; none where all cores are one.
std::optional<LevelKind> die_level(const Topology& topology) {
  const Level* innermost = nullptr;
  for (const LevelKind kind : {LevelKind::l3, LevelKind::numa, LevelKind::package}) {
    const Level* const level = topology.level(kind);
    if (level == nullptr || level->units.size() < 2 || level->cores_per_unit_max() < 2) continue;
    std::size_t covered = 0;
    for (const Unit& unit : level->units) covered += unit.cores.size();
    if (covered != topology.cores().size()) continue;
    if (innermost == nullptr || level->cores_per_unit_max() < innermost->cores_per_unit_max()) {
      innermost = level;
    }
  }
  return innermost == nullptr ? std::nullopt : std::optional(innermost->kind);
}

Topology read_statement(const std::string& topology) {
  const std::string file = "file ";
  return topology.starts_with(file) ? Topology::from_file(topology.substr(file.size()))
                                    : Topology::from_synthetic(topology);
}

/// As hwloc writes a level in a synthetic description.
std::string_view synthetic_name(LevelKind kind) {
  switch (kind) {
    case LevelKind::l1:
      return "l1";
    case LevelKind::l2:
      return "l2";
    case LevelKind::l3:
      return "l3";
    case LevelKind::numa:
      return "numa";
    case LevelKind::die:
      return "die";
    case LevelKind::package:
      return "package";
    default:
      return "core";
  }
}

}  // namespace

PairMatrix parse_pair_matrix(const std::string& text, const std::string& source) {
  std::vector<std::vector<double>> rows;
  std::istringstream stream(text);
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty() && stream.peek() == std::istringstream::traits_type::eof()) break;
    auto& row = rows.emplace_back();
    std::size_t begin = 0;
    while (begin <= line.size()) {
      const std::size_t end = std::min(line.find(',', begin), line.size());
      const std::size_t first = line.find_first_not_of(" \t", begin);
      double value = std::numeric_limits<double>::quiet_NaN();
      if (first < end) {
        const std::size_t past = line.find_last_not_of(" \t", end - 1) + 1;
        const std::string_view word(line.data() + first, past - first);
        const bool is_none = word == "-" || word == "nan" || word == "NaN" || word == "NA";
        const auto [stop, error] =
            is_none ? std::from_chars_result{line.data() + past, std::errc{}}
                    : std::from_chars(line.data() + first, line.data() + past, value);
        if (is_none) value = std::numeric_limits<double>::quiet_NaN();
        if (error != std::errc{} || stop != line.data() + past || value < 0 || std::isinf(value) ||
            (std::isnan(value) && !is_none)) {
          throw Error(Status::invalid,
                      fmt::format("{}:{}: \"{}\" is no time in nanoseconds", source, number,
                                  line.substr(first, past - first)));
        }
      }
      row.push_back(value);
      begin = end + 1;
    }
  }
  PairMatrix matrix;
  matrix.size = static_cast<unsigned>(rows.size());
  if (matrix.size < 2) {
    throw Error(Status::invalid, fmt::format("{}: fewer than two CPUs: it takes the lower triangle "
                                             "of a matrix, one line a CPU",
                                             source));
  }
  matrix.ns.assign(std::size_t{matrix.size} * matrix.size,
                   std::numeric_limits<double>::quiet_NaN());
  std::vector<double> differences;
  for (unsigned a = 0; a < matrix.size; ++a) {
    if (rows[a].size() > matrix.size) {
      throw Error(Status::invalid, fmt::format("{}:{}: {} columns, but {} lines", source, a + 1,
                                               rows[a].size(), matrix.size));
    }
    for (unsigned b = 0; b < a; ++b) {
      const double below = b < rows[a].size() ? rows[a][b] : matrix.ns.front();
      const double above = a < rows[b].size() ? rows[b][a] : matrix.ns.front();
      const double ns = std::isnan(below) ? above : std::isnan(above) ? below : (below + above) / 2;
      matrix.ns[std::size_t{a} * matrix.size + b] = matrix.ns[std::size_t{b} * matrix.size + a] =
          ns;
      if (std::isnan(ns)) ++matrix.unmeasured;
      if (std::isnan(below) || std::isnan(above) || ns <= 0) continue;
      differences.push_back(std::abs(below - above) / ns);
    }
  }
  if (std::all_of(matrix.ns.begin(), matrix.ns.end(), [](double ns) { return std::isnan(ns); })) {
    throw Error(Status::invalid, source + ": no pair has a time");
  }
  if (!differences.empty()) matrix.asymmetry = quantile(differences, 0.5);
  return matrix;
}

PairMatrix load_pair_matrix(const std::string& file) {
  return parse_pair_matrix(read_text_file(file, "matrix of pairs"), file);
}

double DistanceClass::margin() const {
  const double widest = std::max(p90_ns / median_ns, median_ns / p10_ns) - 1;
  return std::clamp(widest, margin_least, margin_most);
}

std::vector<const Level*> distance_levels(const Topology& topology) {
  std::vector<const Level*> levels;
  for (const LevelKind kind : {LevelKind::l2, LevelKind::l3, LevelKind::numa, LevelKind::group,
                               LevelKind::die, LevelKind::package}) {
    const Level* const level = topology.level(kind);
    if (level != nullptr && level->units.size() > 1) levels.push_back(level);
  }
  std::stable_sort(levels.begin(), levels.end(), [](const Level* a, const Level* b) {
    return a->cores_per_unit_max() < b->cores_per_unit_max();
  });
  return levels;
}

std::vector<Numbering> usual_numberings(const Topology& topology) {
  struct Place {
    unsigned pu;
    std::size_t sibling;  ///< its place in its core
    std::size_t core;     ///< and the core's in the machine
    std::size_t turn;     ///< and in its package
    std::size_t package;
  };
  const Level* const packages = topology.level(LevelKind::package);
  std::vector<Place> places;
  std::vector<std::size_t> cores_of;  // each package, so far
  for (std::size_t core = 0; core < topology.cores().size(); ++core) {
    const std::vector<unsigned>& pus = topology.cores()[core].pus;
    const unsigned unit = packages != nullptr ? packages->unit_of(pus.front()) : 0;
    const std::size_t package = is_unit(unit) ? unit : 0;
    cores_of.resize(std::max(cores_of.size(), package + 1));
    for (std::size_t sibling = 0; sibling < pus.size(); ++sibling)
      places.push_back({pus[sibling], sibling, core, cores_of[package], package});
    ++cores_of[package];
  }
  std::vector<Numbering> found;
  const auto add = [&](const char* name, auto key) {
    std::stable_sort(places.begin(), places.end(),
                     [&](const Place& a, const Place& b) { return key(a) < key(b); });
    Numbering next{name, {}};
    for (const Place& place : places) next.cpus.push_back(place.pu);
    for (const Numbering& known : found) {
      if (known.cpus == next.cpus) return;
    }
    found.push_back(std::move(next));
  };
  add("as the topology numbers them", [](const Place& p) { return p.pu; });
  add("siblings side by side", [](const Place& p) { return std::tuple(p.core, p.sibling); });
  add("siblings last", [](const Place& p) { return std::tuple(p.sibling, p.core); });
  add("packages by turns, siblings side by side",
      [](const Place& p) { return std::tuple(p.turn, p.package, p.sibling); });
  add("packages by turns, siblings last",
      [](const Place& p) { return std::tuple(p.sibling, p.turn, p.package); });
  return found;
}

Numbering infer_numbering(const PairMatrix& matrix, const Topology& topology) {
  constexpr double clearly = 0.05;
  std::vector<Numbering> usual = usual_numberings(topology);
  const auto explained = [&](const Numbering& one) {
    return distances_of(matrix, topology, one.cpus).explained_with_siblings;
  };
  std::size_t best = 0;
  double most = explained(usual[0]) + clearly;
  for (std::size_t i = 1; i < usual.size(); ++i) {
    const double share = explained(usual[i]);
    if (share <= most) continue;
    most = share;
    best = i;
  }
  return std::move(usual[best]);
}

Distances distances_of(const PairMatrix& matrix, const Topology& topology,
                       std::vector<unsigned> cpus) {
  if (cpus.empty()) {
    for (unsigned pu = topology.pus().first(); pu != PuSet::kEnd && cpus.size() < matrix.size;
         pu = topology.pus().next(pu + 1)) {
      cpus.push_back(pu);
    }
  }
  if (cpus.size() != matrix.size) {
    throw Error(
        Status::invalid,
        fmt::format("the matrix has {} CPUs, the topology or --cpus {}: they have to be of the "
                    "same machine",
                    matrix.size, cpus.size()));
  }
  std::vector<unsigned> sorted = cpus;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    throw Error(Status::invalid,
                fmt::format("CPU {} stands for two rows of the matrix: each has its own", *twice));
  }
  const std::vector<const Level*> levels = distance_levels(topology);
  const Level* const packages = topology.level(LevelKind::package);
  std::vector<Pair> pairs;
  std::vector<double> siblings;
  for (unsigned a = 0; a < matrix.size; ++a) {
    for (unsigned b = 0; b < a; ++b) {
      const double ns = matrix.at(a, b);
      if (std::isnan(ns) || ns <= 0) continue;
      if (topology.core_of(cpus[a]) == kOutside || topology.core_of(cpus[b]) == kOutside) {
        throw Error(Status::invalid,
                    fmt::format("the topology has no CPU {}, or none to use",
                                topology.core_of(cpus[a]) == kOutside ? cpus[a] : cpus[b]));
      }
      if (topology.core_of(cpus[a]) == topology.core_of(cpus[b])) {
        siblings.push_back(ns);
        continue;
      }
      std::size_t l = 0;
      const auto shared = [&](const Level& level) {
        return is_unit(level.unit_of(cpus[a])) && level.unit_of(cpus[a]) == level.unit_of(cpus[b]);
      };
      while (l < levels.size() && !shared(*levels[l])) ++l;
      pairs.push_back({l, packages != nullptr ? packages->unit_of(cpus[a]) : kOutside, ns});
    }
  }

  Distances result = classes_of(pairs, levels);
  const std::optional<LevelKind> die = die_level(topology);
  const std::size_t inside_die = static_cast<std::size_t>(
      std::find_if(levels.begin(), levels.end(),
                   [&](const Level* level) { return level->kind == die; }) -
      levels.begin());
  for (std::size_t u = 0;
       packages != nullptr && packages->units.size() > 1 && u < packages->units.size(); ++u) {
    const unsigned home = packages->units[u].id;
    std::vector<Pair> by_home = pairs;
    for (Pair& pair : by_home) {
      if (pair.level > inside_die && pair.package != home) pair.level = levels.size();
    }
    Distances other = classes_of(by_home, levels);
    if (other.explained < result.explained + home_tells) continue;
    other.classes = result.classes;  // as the topology has them
    other.home = home;
    result = std::move(other);
  }
  std::vector<double> all = siblings;
  for (const Pair& pair : pairs) all.push_back(pair.ns);
  const double total = spread_of(all);
  result.explained_with_siblings =
      total > 0 ? 1 - (result.within + spread_of(siblings)) / total : 1;
  if (!siblings.empty()) result.siblings_ns = describe({}, siblings).median_ns;
  return result;
}

MachineModel machine_like(const MachineModel& like, const MachineSketch& sketch) {
  MachineModel machine;
  machine.name = sketch.name;
  machine.about = sketch.about;
  machine.topology = sketch.topology;
  machine.provenance["topology"] = "published: given with the latencies";
  machine.shape = read_statement(sketch.topology);
  machine.domain = die_level(*machine.shape);
  machine.provenance["domain"] =
      "derived: the innermost of L3, NUMA and PACKAGE that there are several of";
  if (!sketch.ll_sc) machine.mechanisms = machine.mechanisms.without(Mechanism::ll_sc);
  machine.provenance["rmw"] = sketch.rmw_source;
  machine.latencies = sketch.latencies;
  for (const LatencyClass& latency : machine.latencies) {
    machine.provenance["latency-" + latency.name()] = sketch.latency_source;
    machine.uncertainty["latency-" + latency.name()] = margin_least;
  }
  machine.parameters = like.parameters;
  const double scale = machine.latencies.front().ns / like.latencies.front().ns;
  for (const ParameterInfo& info : parameter_table()) {
    const std::string key(info.name);
    if (info.optional && like.provenance.count(key) == 0) continue;
    machine.provenance[key] = "assumed: as for " + like.name;
    if (key != "read-occupancy" && key != "agent-occupancy") continue;
    machine.set(key, like.value(key) * scale, "assumed: in proportion to " + like.name);
    machine.uncertainty[key] = 0.5;
  }
  if (sketch.home_way) machine.set("home-way", 1, "derived: from where the latencies are alike");
  for (const char* key : {"poll-overlap", "poll-turn", "call"}) machine.uncertainty[key] = 0.5;
  machine.error = 0.25;
  machine.provenance["error"] = "assumed: no measured barrier to compare with";
  return machine;
}

MachineModel imported_machine(const MachineModel& like, MachineSketch sketch,
                              const Distances& distances, const std::string& source) {
  sketch.home_way = distances.home.has_value();
  for (const DistanceClass& c : distances.merged)
    sketch.latencies.push_back({c.level, c.median_ns});
  MachineModel machine = machine_like(like, sketch);
  for (const DistanceClass& c : distances.merged) {
    const std::string key = "latency-" + c.name();
    machine.provenance[key] = fmt::format("measured: median of {} pairs, {}", c.pairs, source);
    machine.uncertainty[key] = c.margin();
  }
  return machine;
}

MachineModel assumed_machine(const Topology& topology, const std::string& statement) {
  const MachineCosts guess = costs_for(topology, true);
  const std::string source = "assumed: " + guess.source;
  MachineSketch sketch;
  sketch.name = "assumed";
  sketch.about = statement + ", costs assumed: " + guess.source;
  sketch.topology = statement;
  sketch.ll_sc = guess.costs.ll_sc;
  sketch.rmw_source = source;
  for (const MachineCosts::Class& each : guess.classes) {
    sketch.latencies.push_back({each.level, each.ns});
  }
  sketch.latency_source = source;
  MachineModel machine = machine_like(load_machine(std::string(guess.like)), sketch);
  machine.domain = guess.domain;
  machine.guessed = guess.source;
  const std::pair<const char*, double> costs[] = {{"call", guess.costs.call},
                                                  {"poll-turn", guess.costs.poll_turn},
                                                  {"hit", guess.costs.hit},
                                                  {"load-gap", guess.costs.load_gap},
                                                  {"store-gap", guess.costs.store_gap},
                                                  {"rmw-local", guess.costs.rmw_local},
                                                  {"read-occupancy", guess.costs.read_occupancy},
                                                  {"agent-occupancy", guess.costs.agent_occupancy},
                                                  {"poll-overlap", guess.costs.poll_overlap},
                                                  {"poll-ways", guess.costs.poll_ways},
                                                  {"set-fill", guess.costs.set_fill}};
  for (const auto& [key, value] : costs) machine.set(key, value, source);
  for (const LatencyClass& latency : machine.latencies) {
    machine.uncertainty["latency-" + latency.name()] = 0.5;
  }
  return machine;
}

std::string synthetic_description(const Topology& topology, std::string_view option) {
  const auto fail = [&] {
    throw Error(Status::unsupported,
                fmt::format("this machine's levels do not nest regularly: save it with `lstopo "
                            "machine.xml`, and say {} machine.xml",
                            option));
  };
  std::string text;
  std::size_t outer = 1;
  const std::size_t cores = topology.cores().size();
  for (const LevelKind kind :
       {LevelKind::package, LevelKind::die, LevelKind::numa, LevelKind::l3, LevelKind::l2}) {
    const Level* const level = topology.level(kind);
    if (level == nullptr) continue;
    const std::size_t units = level->units.size();
    if (units < outer || units % outer != 0 || cores % units != 0 ||
        level->cores_per_unit_min() != level->cores_per_unit_max() ||
        level->cores_per_unit_max() * units != cores) {
      fail();
    }
    if (kind == LevelKind::l2 && units == cores) continue;
    text += fmt::format("{}:{} ", synthetic_name(kind), units / outer);
    outer = units;
  }
  const std::size_t pus = topology.cores().front().pus.size();
  for (const Core& core : topology.cores()) {
    if (core.pus.size() != pus) fail();
  }
  return text + fmt::format("core:{} pu:{}", cores / outer, pus);
}

}  // namespace muster::sim
