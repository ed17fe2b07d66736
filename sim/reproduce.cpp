// SPDX-License-Identifier: BSD-3-Clause
#include "sim/reproduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

namespace muster::sim {
namespace {

// As the papers call them.
constexpr const char* default_malloc = "DefaultMalloc";
constexpr const char* aware_malloc = "RCLAwareMalloc";
constexpr const char* init_default = "RCLLockInitDefault";
constexpr const char* init_numa = "RCLLockInitNUMA";
// The papers' ratio of remote to local memory is the firmware's. This is what others measured.
constexpr const char* figure_5a_measured = "PS18 Fig. 5a, 122 ns";
constexpr double memory_far_measured_ns = 122;
// [PS18, Fig. 4] says where the server is. Algorithm 1 would choose another core.
constexpr const char* figure_5a_chosen = "PS18 Fig. 5a, chosen core";

/// One machine's runs, asked for first and answered together.
class Book {
 public:
  explicit Book(const MachineModel& machine) : machine_(machine), tree_(*machine.shape) {}

  const CoreTree& tree() const { return tree_; }
  LockBatch batch() const { return {machine_, tree_, queries_}; }

  /// A point of a figure, whose outcome is the weighted mean over its placements.
  void add(FigurePoint point, const std::vector<WeightedPlacement>& placements,
           std::uint64_t stride) {
    point.machine = machine_.name;
    if (placements.size() == 1 && point.placement.empty()) {
      point.placement = placement_text(tree_, placements.front().placement);
    }
    Entry entry{std::move(point), {}};
    for (const WeightedPlacement& each : placements) {
      entry.runs.emplace_back(queries_.size(), each.weight);
      LockQuery query;
      query.pattern = entry.point.pattern;
      query.stride = stride;
      query.placement = each.placement;
      queries_.push_back(std::move(query));
    }
    entries_.push_back(std::move(entry));
  }

  void answer(const std::vector<LockOutcome>& outcomes, Reproduction& into) {
    for (const LockOutcome& outcome : outcomes) {
      into.change_max = std::max(into.change_max, std::abs(outcome.change));
    }
    for (Entry& entry : entries_) {
      LockOutcome& mean = entry.point.outcome;
      for (const auto& [run, weight] : entry.runs) {
        const LockOutcome& one = outcomes[run];
        mean.throughput_ops_s += weight * one.throughput_ops_s;
        mean.change += weight * one.change;
        mean.cache_misses_percent += weight * one.cache_misses_percent;
        mean.far_memory_percent += weight * one.far_memory_percent;
        mean.private_misses_percent += weight * one.private_misses_percent;
      }
      into.points.push_back(entry.point);
    }
  }

 private:
  struct Entry {
    FigurePoint point;
    std::vector<std::pair<std::size_t, double>> runs;  ///< of queries_, with their weights
  };
  const MachineModel& machine_;
  CoreTree tree_;
  std::vector<LockQuery> queries_;
  std::vector<Entry> entries_;
};

FigurePoint point_of(const char* figure, const char* variant, Pattern pattern, unsigned threads) {
  FigurePoint point;
  point.figure = figure;
  point.variant = variant;
  point.pattern = pattern;
  point.threads = threads;
  return point;
}

/// What the second variant of a pair makes of the first one's placement.
using Change = LockPlacement (*)(const CoreTree& tree, LockPlacement placement);

/// The first variant's threads and server sit where [P17] says, with the array at the allocator.
void add_pair(Book& book, const char* figure, const char* from, const char* to, Change change,
              unsigned threads, std::uint64_t stride) {
  const LockPlacement apart = apart_placement(book.tree(), threads);
  for (const Pattern pattern : all_patterns) {
    book.add(point_of(figure, from, pattern, threads), {{apart, 1}}, stride);
    book.add(point_of(figure, to, pattern, threads), {{change(book.tree(), apart), 1}}, stride);
  }
}

/// [PS18, Fig. 5b]: server and array are where they are, the threads wander.
void add_wandering_pair(Book& book, const char* figure, unsigned threads) {
  const CoreTree& tree = book.tree();
  const LockPlacement apart = apart_placement(tree, threads);
  const LockPlacement bound = with_bound_memory(tree, apart);
  for (const Pattern pattern : all_patterns) {
    book.add(point_of(figure, init_default, pattern, threads),
             all_placements(tree, threads, apart.server, apart.memory), 20);
    book.add(point_of(figure, init_numa, pattern, threads),
             all_placements(tree, threads, bound.server, bound.memory), 20);
  }
}

/// [PS18, Figs. 6 and 7]: every placement of server, threads and allocator, with both ways to
/// initialise the lock. How many there are.
std::size_t add_placements(Book& book, const char* figure, unsigned threads) {
  const CoreTree& tree = book.tree();
  const std::string chosen =
      placement_key(tree, hierarchical_placement(tree, threads, 0, tree.numa_of(0)));
  const std::vector<WeightedPlacement> all = all_placements(tree, threads);
  for (const Pattern pattern : all_patterns) {
    for (const WeightedPlacement& each : all) {
      FigurePoint point = point_of(figure, init_default, pattern, threads);
      point.hierarchical = placement_key(tree, each.placement) == chosen;
      point.placement = placement_text(tree, each.placement);
      book.add(point, {{each.placement, 1}}, 20);
      point.variant = init_numa;
      book.add(point, {{with_bound_memory(tree, each.placement), 1}}, 20);
    }
  }
  return all.size();
}

/// In whole percent, with its sign; no "-0".
std::string percent(double share) { return fmt::format("{:+.0f}", std::round(100 * share) + 0.0); }

// Judging -----------------------------------------------------------------------------------------

/// A range of figures and their mean.
struct Range {
  std::vector<double> values;
  double min() const { return *std::min_element(values.begin(), values.end()); }
  double max() const { return *std::max_element(values.begin(), values.end()); }
  double mean() const {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
  std::string text() const {
    return fmt::format("{} to {} %, mean {} %", percent(min()), percent(max()), percent(mean()));
  }
};

class Judge {
 public:
  explicit Judge(const std::vector<FigurePoint>& points) : points_(points) {}

  /// Gains of one variant over another in a figure, by thread count.
  std::map<unsigned, double> gains(std::string_view figure, std::string_view from,
                                   std::string_view to, Pattern pattern) const {
    std::map<unsigned, double> base;
    std::map<unsigned, double> gain;
    for (const FigurePoint& point : points_) {
      if (point.figure != figure || point.pattern != pattern) continue;
      if (point.variant == from) base[point.threads] = point.outcome.throughput_ops_s;
      if (point.variant == to) gain[point.threads] = point.outcome.throughput_ops_s;
    }
    for (auto& [threads, value] : gain) value = value / base.at(threads) - 1;
    return gain;
  }

  static Range range(const std::map<unsigned, double>& of) {
    Range range;
    for (const auto& [threads, value] : of) range.values.push_back(value);
    return range;
  }

  /// Throughputs in Fig. 6 or 7: RCLHierarchicalAffinity's and all others'.
  struct Field {
    double chosen = 0;
    double best = 0;
    double worst = INFINITY;
    double worst_with_numa = INFINITY;  ///< with the array at the server, as the chosen one has it
  };
  Field field(const std::string& figure, Pattern pattern, unsigned threads) const {
    Field field;
    for (const FigurePoint& point : points_) {
      if (point.figure != figure || point.pattern != pattern || point.threads != threads) continue;
      const double ops = point.outcome.throughput_ops_s;
      if (point.variant == init_numa) {
        field.worst_with_numa = std::min(field.worst_with_numa, ops);
        continue;
      }
      if (point.hierarchical) field.chosen = ops;
      field.best = std::max(field.best, ops);
      field.worst = std::min(field.worst, ops);
    }
    return field;
  }

 private:
  const std::vector<FigurePoint>& points_;
};

std::string figure_of(const char* base, unsigned threads) {
  return fmt::format("{}{}", base, static_cast<char>('a' + threads - 2));
}

void judge_p17(const Judge& judge, std::vector<Claim>& claims) {
  const char* const figure = "P17 Fig. 5";
  std::map<Pattern, std::map<unsigned, double>> gain;
  for (const Pattern pattern : all_patterns) {
    gain[pattern] = judge.gains(figure, default_malloc, aware_malloc, pattern);
  }
  const Range sequential = Judge::range(gain[Pattern::sequential]);
  const Range strided = Judge::range(gain[Pattern::strided]);
  const Range random = Judge::range(gain[Pattern::random]);

  const bool none_loses = sequential.min() > -0.01 && strided.min() > -0.01 && random.min() > -0.01;
  claims.push_back(
      {"[P17], Fig. 5a", "RCLAwareMalloc raises the throughput of critical sections",
       fmt::format("sequential {}; strided {}; random {}", sequential.text(), strided.text(),
                   random.text()),
       verdict_of(none_loses && strided.mean() > 0.02 && random.mean() > 0.02,
                  strided.mean() > 0.02 || random.mean() > 0.02),
       "no pattern and number of threads loses 1 %, strided and random access gain 2 % in the "
       "mean; partly: one of the two does"});
  claims.push_back(
      {"[P17], Fig. 5a", "it is the most effective for random and strided access",
       fmt::format("mean: random {} %, strided {} %, sequential {} %", percent(random.mean()),
                   percent(strided.mean()), percent(sequential.mean())),
       verdict_of(std::min(random.mean(), strided.mean()) > sequential.mean() + 0.01,
                  std::max(random.mean(), strided.mean()) > sequential.mean() + 0.01),
       "both gain more than sequential access by a point; partly: one does"});
  const auto grows = [&](Pattern pattern) {
    return gain[pattern].rbegin()->second > gain[pattern].begin()->second + 0.02;
  };
  const auto steps = [&](Pattern pattern) {
    std::string text;
    for (const auto& [threads, value] : gain[pattern]) {
      text += (text.empty() ? "" : " ") + percent(value);
    }
    return text;
  };
  claims.push_back(
      {"[P17], Fig. 5a", "its effect grows with the number of threads",
       fmt::format("for {} to {} threads, %: random {}; strided {}",
                   gain[Pattern::random].begin()->first, gain[Pattern::random].rbegin()->first,
                   steps(Pattern::random), steps(Pattern::strided)),
       verdict_of(grows(Pattern::random) && grows(Pattern::strided),
                  grows(Pattern::random) || grows(Pattern::strided)),
       "more by two points at the last than at the first number of threads, for "
       "random and strided access; partly: for one"});
}

void judge_init(const Judge& judge, std::vector<Claim>& claims) {
  const auto gains = [&](const char* figure, Pattern pattern) {
    return judge.gains(figure, init_default, init_numa, pattern);
  };
  for (const Pattern pattern : {Pattern::random, Pattern::strided}) {
    const Range bound = Judge::range(gains("PS18 Fig. 5a", pattern));
    const double mean = bound.mean();
    claims.push_back(
        {"[PS18], Fig. 5",
         fmt::format("RCLLockInitNUMA raises the throughput of {} access by 10 to 20 %",
                     pattern_name(pattern)),
         fmt::format("{}; with the {} ns that others measured for remote memory mean {} %; with "
                     "the core that it would choose {}",
                     bound.text(), memory_far_measured_ns,
                     percent(Judge::range(gains(figure_5a_measured, pattern)).mean()),
                     Judge::range(gains(figure_5a_chosen, pattern)).text()),
         verdict_of(mean >= 0.095 && mean <= 0.205, mean > 0.02),
         "the mean over the numbers of threads is 10 to 20 %; partly: it gains 2 % or more"});
  }
  const Range sequential = Judge::range(gains("PS18 Fig. 5a", Pattern::sequential));
  const Range strided = Judge::range(gains("PS18 Fig. 5a", Pattern::strided));
  const Range random = Judge::range(gains("PS18 Fig. 5a", Pattern::random));
  claims.push_back(
      {"[PS18], Fig. 5", "because the data is in no cache then: sequential access gains less",
       fmt::format("sequential {}; with the core that it would choose {}", sequential.text(),
                   Judge::range(gains(figure_5a_chosen, Pattern::sequential)).text()),
       verdict_of(sequential.mean() < 0.5 * std::min(random.mean(), strided.mean()),
                  sequential.mean() < std::max(random.mean(), strided.mean())),
       "less than half of what the others gain; partly: less than one of them"});
  Range full;
  for (const Pattern pattern : {Pattern::random, Pattern::strided}) {
    const auto few = gains("PS18 Fig. 5a", pattern);
    full.values.push_back(few.rbegin()->second);
    for (const auto& [threads, gain] : gains("PS18 Fig. 5c", pattern)) {
      if (threads >= 8) full.values.push_back(gain);
    }
  }
  claims.push_back({"[PS18], Fig. 5",
                    "the effect shows where threads are as many as cores, and more than cores",
                    full.text(), verdict_of(full.min() > 0.02, full.max() > 0.02),
                    "2 % or more for each such number of threads; partly: for some"});
  double least = INFINITY;
  double most = -INFINITY;
  for (const auto& [threads, gain] : gains("PS18 Fig. 5c", Pattern::random)) {
    least = std::min(least, gain);
    most = std::max(most, gain);
  }
  claims.push_back({"[PS18], Fig. 5c", "and does not change much with their number",
                    fmt::format("random access: {} to {} %", percent(least), percent(most)),
                    verdict_of(most - least < 0.1, most - least < 0.2),
                    "by less than 10 points; partly: 20"});
  double largest = 0;
  for (const Pattern pattern : all_patterns) {
    const auto bound = gains("PS18 Fig. 5a", pattern);
    const auto wandering = gains("PS18 Fig. 5b", pattern);
    for (const auto& [threads, gain] : wandering) {
      largest = std::max(largest, std::abs(gain - bound.at(threads)));
    }
  }
  claims.push_back({"[PS18], Fig. 5a, 5b", "fixing the threads' affinity does not affect it much",
                    fmt::format("the gains differ by {:.1f} points at most", 100 * largest),
                    verdict_of(largest < 0.05, largest < 0.1),
                    "by less than 5 points; partly: 10"});
}

void judge_affinity(const Judge& judge, std::vector<Claim>& claims) {
  const auto figure = [](unsigned threads) { return figure_of("PS18 Fig. 6", threads); };
  struct Most {
    double ratio = 0;
    double threads_alone = 0;
    void raise(const Judge::Field& field) {
      ratio = std::max(ratio, field.chosen / field.worst);
      threads_alone = std::max(threads_alone, field.chosen / field.worst_with_numa);
    }
    std::string text() const {
      return fmt::format("up to {:.2f} times ({:.2f} with the array at the server in both)", ratio,
                         threads_alone);
    }
  };
  std::map<unsigned, Most> by_threads;
  std::map<Pattern, Most> by_pattern;
  for (unsigned threads = 2; threads <= 5; ++threads) {
    for (const Pattern pattern : all_patterns) {
      const Judge::Field field = judge.field(figure(threads), pattern, threads);
      by_threads[threads].raise(field);
      by_pattern[pattern].raise(field);
    }
  }
  constexpr double claimed[] = {2.4, 2.2, 1.3, 1.2};
  for (unsigned threads = 2; threads <= 5; ++threads) {
    claims.push_back(
        {fmt::format("[PS18], Fig. 6{}", static_cast<char>('a' + threads - 2)),
         fmt::format("RCLHierarchicalAffinity against other placements: up to {} times at p = {}",
                     claimed[threads - 2], threads),
         by_threads[threads].text(),
         verdict_of_ratio(by_threads[threads].ratio, claimed[threads - 2]), ratio_rule});
  }
  for (const auto& [pattern, ratio] : std::map<Pattern, double>{
           {Pattern::sequential, 2.4}, {Pattern::strided, 2.1}, {Pattern::random, 1.5}}) {
    claims.push_back({"[PS18], Fig. 6",
                      fmt::format("up to {} times for {} access", ratio, pattern_name(pattern)),
                      by_pattern[pattern].text(),
                      verdict_of_ratio(by_pattern[pattern].ratio, ratio), ratio_rule});
  }
  const bool falls = by_threads[2].ratio >= by_threads[4].ratio &&
                     by_threads[3].ratio >= by_threads[4].ratio &&
                     by_threads[4].ratio >= by_threads[5].ratio;
  claims.push_back(
      {"[PS18], Fig. 6", "its effect falls when the threads are more than the cores of a NUMA node",
       fmt::format("{:.2f}, {:.2f}, {:.2f}, {:.2f} times for 2 to 5 threads", by_threads[2].ratio,
                   by_threads[3].ratio, by_threads[4].ratio, by_threads[5].ratio),
       verdict_of(falls, by_threads[2].ratio > by_threads[5].ratio),
       "4 threads less than 2 and 3, 5 no more than 4; partly: 5 less than 2"});
}

void judge_smp(const Judge& judge, std::vector<Claim>& claims) {
  Range spread;
  for (unsigned threads = 2; threads <= 5; ++threads) {
    for (const Pattern pattern : all_patterns) {
      const Judge::Field field = judge.field(figure_of("PS18 Fig. 7", threads), pattern, threads);
      spread.values.push_back(field.best / field.worst - 1);
    }
  }
  claims.push_back({"[PS18], Fig. 7", "on Jet placements hardly matter",
                    fmt::format("best over worst placement: {}", spread.text()),
                    verdict_of(spread.max() < 0.1, spread.max() < 0.25),
                    "by less than 10 % for every number of threads and pattern; partly: 25 %"});
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  constexpr std::string_view names[] = {"agrees", "partly", "disagrees"};
  return names[static_cast<int>(verdict)];
}

Verdict verdict_of(bool agrees, bool partly) {
  return agrees ? Verdict::agrees : partly ? Verdict::partly : Verdict::disagrees;
}

Verdict verdict_of_ratio(double ratio, double claimed) {
  const double gain = claimed - 1;
  return verdict_of(ratio >= 1 + gain / 1.5 && ratio <= 1 + gain * 1.5, ratio >= 1.05);
}

std::vector<Claim> judge(const std::vector<FigurePoint>& points) {
  const Judge figures(points);
  const auto has = [&](std::string_view paper) {
    return std::any_of(points.begin(), points.end(),
                       [&](const FigurePoint& point) { return point.figure.starts_with(paper); });
  };
  std::vector<Claim> claims;
  if (has("P17")) judge_p17(figures, claims);
  if (has("PS18")) {
    judge_init(figures, claims);
    judge_affinity(figures, claims);
    judge_smp(figures, claims);
  }
  return claims;
}

Reproduction reproduce(const ReproduceMachines& machines, const ReproduceOptions& options,
                       const Progress& progress) {
  using Counts = std::vector<unsigned>;
  const bool quick = options.quick;
  Reproduction result;
  if (options.papers.contains("K22")) {
    result.barriers = barrier_points(machines.kunpeng);
    result.claims = judge_barriers(result.barriers);
  }
  Book oaks(machines.oak);
  if (options.papers.contains("P17")) {
    for (const unsigned p : quick ? Counts{1, 4, 7} : Counts{1, 2, 3, 4, 5, 6, 7, 8}) {
      add_pair(oaks, "P17 Fig. 5", default_malloc, aware_malloc, with_aware_memory, p, 1000);
    }
  }
  MachineModel otherwise = machines.oak;
  otherwise.set("memory-far", memory_far_measured_ns, "published: 7-cpu.com, Westmere");
  Book measured(otherwise);
  Book jets(machines.jet);
  if (options.papers.contains("PS18")) {
    const auto add = [](Book& book, const char* figure, Change change, unsigned threads) {
      add_pair(book, figure, init_default, init_numa, change, threads, 20);
    };
    for (const unsigned p : quick ? Counts{2, 7} : Counts{2, 3, 4, 5, 6, 7}) {
      add(oaks, "PS18 Fig. 5a", with_bound_memory, p);
      add(oaks, figure_5a_chosen, with_chosen_server, p);
      add(measured, figure_5a_measured, with_bound_memory, p);
      add_wandering_pair(oaks, "PS18 Fig. 5b", p);
    }
    for (const unsigned p : quick ? Counts{2, 20} : Counts{2, 4, 7, 10, 20, 40, 70, 100}) {
      add(oaks, "PS18 Fig. 5c", with_bound_memory, p);
    }
    for (unsigned p = 2; p <= 5; ++p) {
      result.placements_oak += add_placements(oaks, figure_of("PS18 Fig. 6", p).c_str(), p);
      result.placements_jet += add_placements(jets, figure_of("PS18 Fig. 7", p).c_str(), p);
    }
  }
  LockEffort effort;
  effort.seed = options.seed;
  if (quick) {
    effort.warm_up = 1000;
    effort.window = 2500;
  }
  Book* const books[] = {&oaks, &measured, &jets};
  std::vector<LockBatch> batches;
  for (const Book* book : books) batches.push_back(book->batch());
  const std::vector<std::vector<LockOutcome>> outcomes = predict_locks(batches, effort, progress);
  for (std::size_t n = 0; n < batches.size(); ++n) books[n]->answer(outcomes[n], result);

  std::vector<Claim> of_locks = judge(result.points);
  std::move(of_locks.begin(), of_locks.end(), std::back_inserter(result.claims));
  return result;
}

}  // namespace muster::sim
