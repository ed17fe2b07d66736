// SPDX-License-Identifier: BSD-3-Clause
// What [K22] says of its barriers, on the modelled Kunpeng.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/reproduce.hpp"
#include "sim/validate.hpp"

namespace muster::sim {
namespace {

constexpr const char* best_of_ours = "topo-NUMA";
constexpr Mapping all_mappings[] = {Mapping::core, Mapping::numa, Mapping::socket};

const std::vector<std::string>& classic() {
  static const std::vector<std::string> names = {"sense-reversing",
                                                 "sense-reversing-counter",
                                                 "sense-reversing-gr",
                                                 "combining-tree",
                                                 "mcs",
                                                 "tournament",
                                                 "dissemination"};
  return names;
}
const std::vector<std::string>& over_messages() {
  static const std::vector<std::string> names = {
      "base-linear", "base-double-ring", "base-recursive-doubling", "base-bruck", "base-tree"};
  return names;
}

class Latencies {
 public:
  explicit Latencies(const std::vector<BarrierPoint>& points) : points_(points) {}

  double operator()(std::string_view algorithm, unsigned ranks = 64,
                    Mapping map_by = Mapping::core) const {
    for (const BarrierPoint& point : points_) {
      if (point.query.algorithm == algorithm && point.query.ranks == ranks &&
          point.query.map_by == map_by) {
        return point.latency_us;
      }
    }
    return NAN;
  }

  /// The fastest but for one.
  std::string next_best(std::string_view but, unsigned ranks, Mapping map_by) const {
    const BarrierPoint* best = nullptr;
    for (const BarrierPoint& point : points_) {
      if (point.query.ranks != ranks || point.query.map_by != map_by) continue;
      if (point.query.algorithm == but) continue;
      if (best == nullptr || point.latency_us < best->latency_us) best = &point;
    }
    return best->query.algorithm;
  }

  /// What there is to compare.
  struct Compared {
    std::vector<Measurement> measured;
    std::vector<double> modelled;
  };
  Compared compared(unsigned ranks) const {
    Compared all;
    for (const BarrierPoint& point : points_) {
      if (point.query.ranks != ranks || !point.measured_us) continue;
      all.measured.push_back({point.query, *point.measured_us});
      all.modelled.push_back(point.latency_us);
    }
    return all;
  }

 private:
  const std::vector<BarrierPoint>& points_;
};

Claim figures(const char* source, const char* claim, const Latencies::Compared& all) {
  const std::vector<double> errors = relative_errors(all.modelled, all.measured);
  const auto near = static_cast<std::size_t>(
      std::count_if(errors.begin(), errors.end(), [](double error) { return error <= 0.35; }));
  const double middle = median(errors);
  return {
      source, claim,
      fmt::format("median error {:.1f} %, {} of {} within 35 %", 100 * middle, near, errors.size()),
      verdict_of(middle <= 0.12 && 10 * near >= 9 * errors.size(), middle <= 0.25),
      "a median error of 12 % at most, and nine of ten within 35 %; partly: a median of 25 %"};
}

void judge_one_package(const Latencies& us, std::vector<Claim>& claims) {
  const char* const source = "[K22], Fig. 4";
  const double tree = us("combining-tree");
  const std::string next = us.next_best("combining-tree", 64, Mapping::core);
  claims.push_back({source, "64 ranks on one package: the combining tree is the fastest",
                    fmt::format("{:.2f} us; {} {:.2f}", tree, next, us(next)),
                    verdict_of(tree < us(next), tree < 1.15 * us(next)),
                    "it is; partly: another one is faster by less than 15 %"});
  const auto times = [&](const char* other, double claimed, const char* what) {
    const double ratio = us(other) / tree;
    claims.push_back({source, what, fmt::format("{:.2f} times", ratio),
                      verdict_of_ratio(ratio, claimed), ratio_rule});
  };
  times("tournament", 1.4, "it is 40 % faster than the tournament");
  times("mcs", 1.55, "it is 55 % faster than MCS");
  times("base-tree", 2.8, "base-tree takes almost 2.8 times as long");
  double slowest = 0;
  for (const std::string& name : classic()) {
    if (name != "sense-reversing") slowest = std::max(slowest, us(name));
  }
  std::vector<double> base;
  for (const std::string& name : over_messages()) base.push_back(us(name));
  const double fastest = *std::min_element(base.begin(), base.end());
  claims.push_back({source,
                    "barriers over messages are much slower than those over shared memory, but for "
                    "sense-reversing",
                    fmt::format("messages: {:.2f} us and more; shared memory: {:.2f} us and less",
                                fastest, slowest),
                    verdict_of(fastest > 1.15 * slowest, median(base) > 1.15 * slowest),
                    "the fastest over messages takes 15 % longer than the slowest over shared "
                    "memory; partly: the median one does"});
  const double central = us("sense-reversing");
  claims.push_back({source, "sense-reversing, with its one counter, does not scale",
                    fmt::format("{:.2f} us; the next {:.2f}, over messages in the median {:.2f}",
                                central, slowest, median(base)),
                    verdict_of(central > median(base), central > slowest),
                    "slower than the median over messages, as printed; partly: than all others "
                    "over shared memory"});
  claims.push_back(
      figures(source, "its twelve latencies (the model was fitted to them)", us.compared(64)));
}

void judge_two_packages(const Latencies& us, std::vector<Claim>& claims) {
  const Latencies::Compared all = us.compared(128);
  claims.push_back(
      figures("[K22], Fig. 6", "its latencies by core and by NUMA node (fitted, too)", all));
  const Share ordered = pairs_ordered(all.measured, all.modelled);
  claims.push_back(
      {"[K22], Fig. 6", "who is faster than whom there, by more than 15 %",
       fmt::format("{} of {} pairs are in order", ordered.good, ordered.all),
       verdict_of(10 * ordered.good >= 9 * ordered.all, 4 * ordered.good >= 3 * ordered.all),
       "nine of ten; partly: three of four"});

  std::string text;
  unsigned wins = 0;
  double least = INFINITY;
  double most = 0;
  for (const Mapping map_by : all_mappings) {
    const double ours = us(best_of_ours, 128, map_by);
    const std::string next = us.next_best(best_of_ours, 128, map_by);
    if (ours < us(next, 128, map_by)) ++wins;
    least = std::min(least, ours);
    most = std::max(most, ours);
    text += fmt::format("{}by {} {:.2f} us ({} {:.2f})", text.empty() ? "" : "; ",
                        mapping_name(map_by), ours, next, us(next, 128, map_by));
  }
  claims.push_back({"[K22], conclusion",
                    "128 ranks: groups by NUMA node take the least time of all barriers", text,
                    verdict_of(wins == std::size(all_mappings), wins > 0),
                    "in all three mappings; partly: in one"});
  claims.push_back({"[K22], conclusion", "and hardly mind how ranks are mapped",
                    fmt::format("the slowest mapping takes {:.1f} % longer than the fastest",
                                100 * (most / least - 1)),
                    verdict_of(most < 1.15 * least, most < 1.3 * least),
                    "by less than 15 %; partly: 30 %"});
  std::string changed;
  double largest = 0;
  for (const std::string& name : classic()) {
    const double by[] = {us(name, 128, Mapping::core), us(name, 128, Mapping::numa),
                         us(name, 128, Mapping::socket)};
    const double change = *std::max_element(std::begin(by), std::end(by)) /
                              *std::min_element(std::begin(by), std::end(by)) -
                          1;
    if (change <= largest) continue;
    largest = change;
    changed = name;
  }
  claims.push_back({"[K22], section 3", "the mapping can change an algorithm's time considerably",
                    fmt::format("{} by {:.0f} %", changed, 100 * largest),
                    verdict_of(largest >= 0.15, largest >= 0.05),
                    "one of the classic ones by 15 %; partly: by 5 %"});
}

}  // namespace

std::vector<BarrierPoint> barrier_points(const MachineModel& kunpeng) {
  std::vector<BarrierPoint> points;
  const auto add = [&](const std::vector<std::string>& names, unsigned ranks, Mapping map_by) {
    for (const std::string& name : names) points.push_back({{name, ranks, map_by}, 0, {}});
  };
  add(classic(), 64, Mapping::core);
  add(over_messages(), 64, Mapping::core);
  for (const Mapping map_by : all_mappings) {
    add(classic(), 128, map_by);
    add({"topo-NUMA-SOCKET", best_of_ours, "topo-SOCKET"}, 128, map_by);
    add(over_messages(), 128, map_by);
  }
  std::vector<Query> queries;
  for (const BarrierPoint& point : points) queries.push_back(point.query);
  const std::vector<Prediction> modelled = predict(kunpeng, queries, {.members = 0});
  for (std::size_t n = 0; n < points.size(); ++n) points[n].latency_us = modelled[n].latency_us;
  for (const auto& [name, text] : shipped_measurements()) {
    for (const Measurement& m : parse_measurements(std::string(text), std::string(name))) {
      for (BarrierPoint& point : points) {
        if (point.query.algorithm == m.query.algorithm && point.query.ranks == m.query.ranks &&
            point.query.map_by == m.query.map_by) {
          point.measured_us = m.latency_us;
        }
      }
    }
  }
  return points;
}

std::vector<Claim> judge_barriers(const std::vector<BarrierPoint>& points) {
  const Latencies us(points);
  std::vector<Claim> claims;
  judge_one_package(us, claims);
  judge_two_packages(us, claims);
  return claims;
}

}  // namespace muster::sim
