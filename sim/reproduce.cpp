// SPDX-License-Identifier: BSD-3-Clause
#include "sim/reproduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

/// One machine's runs, asked for first and answered together.
class Book {
 public:
  explicit Book(const MachineModel& machine) : machine_(machine), tree_(*machine.shape) {}

  const CoreTree& tree() const { return tree_; }

  /// A point of a figure, whose outcome is the weighted mean over its placements.
  struct Entry {
    FigurePoint point;
    std::vector<std::pair<std::size_t, double>> runs;  ///< of queries_, with their weights
  };

  void add(FigurePoint point, const std::vector<WeightedPlacement>& placements,
           std::uint64_t stride) {
    point.machine = machine_.name;
    if (placements.size() == 1) {
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

  void run(const LockEffort& effort, const LockProgress& progress, Reproduction& into) {
    const std::vector<LockOutcome> outcomes =
        predict_locks(machine_, tree_, queries_, effort, progress);
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
        mean.events += one.events;
      }
      into.points.push_back(entry.point);
    }
  }

 private:
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

/// The same placement, with the array where a thread on the server's NUMA node would have put it.
LockPlacement with_near_memory(const CoreTree& tree, LockPlacement placement) {
  placement.memory = tree.numa_of(*placement.server);
  return placement;
}

/// The threads of both variants sit where [P17] says; the variants differ in where the array is.
void add_pair(Book& book, const char* figure, const char* far, const char* near, unsigned threads,
              std::uint64_t stride) {
  const LockPlacement apart = apart_placement(book.tree(), threads);
  for (const Pattern pattern : all_patterns) {
    book.add(point_of(figure, far, pattern, threads), {{apart, 1}}, stride);
    book.add(point_of(figure, near, pattern, threads), {{with_near_memory(book.tree(), apart), 1}},
             stride);
  }
}

/// [PS18, Fig. 5b]: server and array are where they are, the threads wander.
void add_wandering_pair(Book& book, const char* figure, unsigned threads) {
  const CoreTree& tree = book.tree();
  const LockPlacement apart = apart_placement(tree, threads);
  const unsigned near = tree.numa_of(*apart.server);
  for (const Pattern pattern : all_patterns) {
    book.add(point_of(figure, init_default, pattern, threads),
             all_placements(tree, threads, apart.server, apart.memory), 20);
    book.add(point_of(figure, init_numa, pattern, threads),
             all_placements(tree, threads, apart.server, near), 20);
  }
}

/// [PS18, Figs. 6 and 7]: every placement of server, threads and array. How many there are.
std::size_t add_placements(Book& book, const char* figure, unsigned threads) {
  const CoreTree& tree = book.tree();
  const std::string chosen =
      placement_key(tree, hierarchical_placement(tree, threads, 0, tree.numa_of(0)));
  const std::vector<WeightedPlacement> all = all_placements(tree, threads);
  for (const Pattern pattern : all_patterns) {
    for (const WeightedPlacement& each : all) {
      FigurePoint point = point_of(figure, init_default, pattern, threads);
      point.hierarchical = placement_key(tree, each.placement) == chosen;
      book.add(point, {{each.placement, 1}}, 20);
      // RCLLockInitNUMA binds memory to the server's NUMA node, wherever the allocator is.
      if (each.placement.memory != tree.numa_of(*each.placement.server)) continue;
      point.variant = init_numa;
      book.add(point, {{each.placement, 1}}, 20);
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

  /// Throughputs in Fig. 6 or 7 for one variant: RCLHierarchicalAffinity's and all others'.
  struct Field {
    double chosen = 0;
    double chosen_memory_alike_worst = 0;  ///< the worst with the array where the chosen one has it
    double worst = 0;
    double best = 0;
    std::vector<double> all;
  };
  Field field(const std::string& figure, std::string_view variant, Pattern pattern,
              unsigned threads) const {
    Field field;
    const FigurePoint* chosen = nullptr;
    for (const FigurePoint& point : points_) {
      if (!in(point, figure, variant, pattern, threads)) continue;
      if (point.hierarchical) chosen = &point;
      field.all.push_back(point.outcome.throughput_ops_s);
    }
    field.chosen = chosen->outcome.throughput_ops_s;
    field.worst = *std::min_element(field.all.begin(), field.all.end());
    field.best = *std::max_element(field.all.begin(), field.all.end());
    field.chosen_memory_alike_worst = field.best;
    for (const FigurePoint& point : points_) {
      // RCLLockInitNUMA's points all have the array at the server, as the chosen placement has.
      if (!in(point, figure, init_numa, pattern, threads)) continue;
      field.chosen_memory_alike_worst =
          std::min(field.chosen_memory_alike_worst, point.outcome.throughput_ops_s);
    }
    return field;
  }

  Range of(std::string_view figure, std::string_view variant, double LockOutcome::*value) const {
    Range range;
    for (const FigurePoint& point : points_) {
      if (point.figure == figure && point.variant == variant) {
        range.values.push_back(point.outcome.*value);
      }
    }
    return range;
  }

 private:
  static bool in(const FigurePoint& point, const std::string& figure, std::string_view variant,
                 Pattern pattern, unsigned threads) {
    return point.figure == figure && point.variant == variant && point.pattern == pattern &&
           point.threads == threads;
  }

  const std::vector<FigurePoint>& points_;
};

Verdict verdict_of(bool agrees, bool partly) {
  return agrees ? Verdict::agrees : partly ? Verdict::partly : Verdict::disagrees;
}

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
  const Range far = judge.of(figure, default_malloc, &LockOutcome::far_memory_percent);
  const Range near = judge.of(figure, aware_malloc, &LockOutcome::far_memory_percent);
  const Range missed = judge.of(figure, default_malloc, &LockOutcome::cache_misses_percent);
  const Range missed_then = judge.of(figure, aware_malloc, &LockOutcome::cache_misses_percent);
  claims.push_back(
      {"[P17], Fig. 5, conclusion", "by having fewer accesses to remote NUMA memory",
       fmt::format(
           "lines from the other NUMA node's memory: {:.0f} %, then {:.0f} %; accesses that "
           "miss the caches: {:.1f} %, then {:.1f} %",
           far.mean(), near.mean(), missed.mean(), missed_then.mean()),
       verdict_of(near.mean() < 0.1 * far.mean(), near.mean() < far.mean()),
       "fewer than a tenth are left; partly: fewer"});
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
         fmt::format("{}; with the {} ns that others measured for remote memory mean {} %",
                     bound.text(), memory_far_measured_ns,
                     percent(Judge::range(gains(figure_5a_measured, pattern)).mean())),
         verdict_of(mean >= 0.095 && mean <= 0.205, mean > 0.02),
         "the mean over the numbers of threads is 10 to 20 %; partly: it gains 2 % or more"});
  }
  const Range sequential = Judge::range(gains("PS18 Fig. 5a", Pattern::sequential));
  const Range strided = Judge::range(gains("PS18 Fig. 5a", Pattern::strided));
  const Range random = Judge::range(gains("PS18 Fig. 5a", Pattern::random));
  claims.push_back({"[PS18], Fig. 5",
                    "because the data is in no cache then: sequential access gains less",
                    fmt::format("sequential {}", sequential.text()),
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
  const auto judged = [](double ratio, double claimed) {
    const double gain = claimed - 1;
    return verdict_of(ratio >= 1 + gain / 1.5 && ratio <= 1 + gain * 1.5, ratio >= 1.05);
  };
  const char* const rule =
      "what is above 1 is within a factor of 1.5 of the paper's; partly: 1.05 or more";
  struct Most {
    double ratio = 0;
    double threads_alone = 0;
    void raise(const Judge::Field& field) {
      ratio = std::max(ratio, field.chosen / field.worst);
      threads_alone = std::max(threads_alone, field.chosen / field.chosen_memory_alike_worst);
    }
    std::string text() const {
      return fmt::format("up to {:.2f} times ({:.2f} with the array at the server in both)", ratio,
                         threads_alone);
    }
  };
  std::map<unsigned, Most> by_threads;
  std::map<Pattern, Most> by_pattern;
  unsigned cases = 0;
  unsigned nearly_best = 0;
  double farthest = 0;
  for (unsigned threads = 2; threads <= 5; ++threads) {
    for (const Pattern pattern : all_patterns) {
      for (const char* variant : {init_default, init_numa}) {
        const Judge::Field field = judge.field(figure(threads), variant, pattern, threads);
        by_threads[threads].raise(field);
        by_pattern[pattern].raise(field);
        ++cases;
        if (field.chosen >= 0.97 * field.best) ++nearly_best;
        farthest = std::max(farthest, 1 - field.chosen / field.best);
      }
    }
  }
  constexpr double claimed[] = {2.4, 2.2, 1.3, 1.2};
  for (unsigned threads = 2; threads <= 5; ++threads) {
    claims.push_back(
        {fmt::format("[PS18], Fig. 6{}", static_cast<char>('a' + threads - 2)),
         fmt::format("RCLHierarchicalAffinity against other placements: up to {} times at p = {}",
                     claimed[threads - 2], threads),
         by_threads[threads].text(), judged(by_threads[threads].ratio, claimed[threads - 2]),
         rule});
  }
  for (const auto& [pattern, ratio] : std::map<Pattern, double>{
           {Pattern::sequential, 2.4}, {Pattern::strided, 2.1}, {Pattern::random, 1.5}}) {
    claims.push_back({"[PS18], Fig. 6",
                      fmt::format("up to {} times for {} access", ratio, pattern_name(pattern)),
                      by_pattern[pattern].text(), judged(by_pattern[pattern].ratio, ratio), rule});
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
  claims.push_back({"[PS18], Fig. 6", "its placements are good ones",
                    fmt::format("within 3 % of the best of all in {} of {} cases, {:.0f} % off at "
                                "most",
                                nearly_best, cases, 100 * farthest),
                    verdict_of(nearly_best == cases, 2 * nearly_best >= cases),
                    "in all; partly: in half"});
}

void judge_smp(const Judge& judge, std::vector<Claim>& claims) {
  Range spread;
  for (unsigned threads = 2; threads <= 5; ++threads) {
    for (const Pattern pattern : all_patterns) {
      const Judge::Field field =
          judge.field(figure_of("PS18 Fig. 7", threads), init_default, pattern, threads);
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

std::vector<Claim> judge(const std::vector<FigurePoint>& points) {
  const Judge figures(points);
  std::vector<Claim> claims;
  judge_p17(figures, claims);
  judge_init(figures, claims);
  judge_affinity(figures, claims);
  judge_smp(figures, claims);
  return claims;
}

Reproduction reproduce(const MachineModel& oak, const MachineModel& jet, bool quick,
                       std::uint64_t seed, const LockProgress& progress) {
  using Counts = std::vector<unsigned>;
  Reproduction result;
  Book oaks(oak);
  for (const unsigned p : quick ? Counts{1, 4, 7} : Counts{1, 2, 3, 4, 5, 6, 7, 8}) {
    add_pair(oaks, "P17 Fig. 5", default_malloc, aware_malloc, p, 1000);
  }
  for (const unsigned p : quick ? Counts{2, 7} : Counts{2, 3, 4, 5, 6, 7}) {
    add_pair(oaks, "PS18 Fig. 5a", init_default, init_numa, p, 20);
    add_wandering_pair(oaks, "PS18 Fig. 5b", p);
  }
  for (const unsigned p : quick ? Counts{2, 20} : Counts{2, 4, 7, 10, 20, 40, 70, 100}) {
    add_pair(oaks, "PS18 Fig. 5c", init_default, init_numa, p, 20);
  }
  MachineModel otherwise = oak;
  otherwise.set("memory-far", memory_far_measured_ns, "published: 7-cpu.com, Westmere");
  Book measured(otherwise);
  for (const unsigned p : quick ? Counts{2, 7} : Counts{2, 3, 4, 5, 6, 7}) {
    add_pair(measured, figure_5a_measured, init_default, init_numa, p, 20);
  }
  Book jets(jet);
  for (unsigned p = 2; p <= 5; ++p) {
    result.placements_oak += add_placements(oaks, figure_of("PS18 Fig. 6", p).c_str(), p);
    result.placements_jet += add_placements(jets, figure_of("PS18 Fig. 7", p).c_str(), p);
  }
  LockEffort effort;
  effort.seed = seed;
  if (quick) {
    effort.warm_up = 1000;
    effort.window = 2500;
  }
  oaks.run(effort, progress, result);
  measured.run(effort, progress, result);
  jets.run(effort, progress, result);

  result.claims = judge(result.points);
  return result;
}

}  // namespace muster::sim
