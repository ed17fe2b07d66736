// SPDX-License-Identifier: BSD-3-Clause
#include "bench/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/report.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"

namespace muster::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t peers_least = 3;  ///< that tell what chance is
constexpr double level = 0.05;

std::string text_of(const Json& json, const char* name) {
  const Json value = json.value(name, Json());
  return value.is_string() ? value.get<std::string>() : std::string{};
}

/// NaN where there is none.
std::vector<double> positive(const Json& rounds, double unit_ns, bool is_rate) {
  std::vector<double> values;
  for (const Json& round : rounds) {
    const double value = round.is_number() ? round.get<double>() : 0;
    values.push_back(value <= 0 ? std::nan("") : is_rate ? 1e9 / value : value * unit_ns);
  }
  return values;
}

RunRow barrier_row(const Json& row) {
  const bool ours = text_of(row, "implementation") == "muster";
  RunRow result;
  result.ours = ours;
  result.group = fmt::format("{} {}", row.at("participants").get<unsigned>(), text_of(row, "mode"));
  if (const std::string regime = text_of(row, "regime"); !regime.empty())
    result.group = regime + ", " + result.group;
  result.what = ours ? text_of(row, "algorithm") : text_of(row, "implementation");
  if (ours && text_of(row, "via") != "c") result.what += " " + text_of(row, "via");
  const std::string wait = text_of(row, "wait_asked");
  if (ours && !wait.empty() && wait != "auto") result.what += " " + wait;
  result.rounds = positive(row.value("round_means_ns", Json::array()), 1, false);
  return result;
}

RunRow lock_row(const Json& row) {
  RunRow result;
  result.ours = text_of(row, "kind") == "ours";
  result.group =
      counted(row.at("threads").get<unsigned>(), "threads") + ", " + text_of(row, "pattern");
  if (const std::string regime = text_of(row, "regime"); !regime.empty())
    result.group = regime + ", " + result.group;
  result.what = text_of(row, "lock");
  result.rounds = positive(row.value("rounds_ops_s", Json::array()), 1, true);
  return result;
}

RunRow mpi_row(const Json& row) {
  RunRow result;
  result.ours = row.at("ours").get<bool>();
  result.group = counted(row.at("ranks").get<unsigned>(), "ranks");
  result.what = text_of(row, "mpi") + " " + text_of(row, "barrier");
  result.rounds = positive(row.at("latency_us"), 1000, false);
  return result;
}

using RowReader = RunRow (*)(const Json&);

/// Null for a benchmark that is none.
RowReader reader_of(const std::string& benchmark) {
  return benchmark == "barrier" ? barrier_row
         : benchmark == "lock"  ? lock_row
         : benchmark == "mpi"   ? mpi_row
                                : nullptr;
}

struct Difference {
  const RunRow* row = nullptr;
  double old_log = 0;
  double new_log = 0;
  double own_variance = 0;  ///< of the difference, by the rounds
  std::size_t rounds = 0;

  double log() const { return new_log - old_log; }
};

double mean_of_logs(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return sum / static_cast<double>(values.size());
}

double variance_of_logs(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = mean_of_logs(values);
  double sum = 0;
  for (const double value : values) sum += (std::log(value) - mean) * (std::log(value) - mean);
  return sum / static_cast<double>(values.size() - 1);
}

double mean_of(const std::vector<const Difference*>& all) {
  double sum = 0;
  for (const Difference* one : all) sum += one->log();
  return all.empty() ? 0 : sum / static_cast<double>(all.size());
}

double squares_of(const std::vector<const Difference*>& all) {
  const double mean = mean_of(all);
  double sum = 0;
  for (const Difference* one : all) sum += (one->log() - mean) * (one->log() - mean);
  return sum;
}

/// Rows that are noisy alike.
struct Group {
  std::vector<const Difference*> ours;
  std::vector<const Difference*> peers;

  double drift() const { return mean_of(peers); }
  double freedom() const {
    const auto left = [](const auto& all) { return all.empty() ? 0.0 : double(all.size()) - 1; };
    return std::max(1.0, left(ours) + left(peers));
  }
  /// Of one row by chance: around ours, if those moved together, and around the peers.
  double variance() const { return (squares_of(ours) + squares_of(peers)) / freedom(); }
  /// Of the drift, which is told by few.
  double drift_variance() const { return variance() / static_cast<double>(peers.size()); }
};

double quantile_of_t(double freedom, double probability) {
  return boost::math::quantile(boost::math::students_t(std::max(1.0, freedom)), probability);
}

/// Of both signs.
double chance_of(double t, double freedom) {
  const boost::math::students_t distribution(std::max(1.0, freedom));
  return 2 * boost::math::cdf(boost::math::complement(distribution, std::abs(t)));
}

struct Judged {
  Change change;
  double p = 1;
};

Judged judge(const std::string& what, double old_log, double new_log, double log_change,
             double error, double freedom) {
  Judged judged;
  judged.change.what = what;
  judged.change.old_ns = std::exp(old_log);
  judged.change.new_ns = std::exp(new_log);
  judged.change.ratio = std::exp(log_change);
  const double reach = quantile_of_t(freedom, 1 - level / 2) * error;
  judged.change.ci95 = {std::exp(log_change - reach), std::exp(log_change + reach)};
  judged.p = error > 0 ? chance_of(log_change / error, freedom) : 1;
  return judged;
}

/// A mean of groups' means, each by how well it is known.
class Weighted {
 public:
  void add(double mean, double variance) {
    means_.push_back(mean);
    weights_.push_back(1 / std::max(variance, 1e-12));
  }
  double mean() const {
    return std::inner_product(means_.begin(), means_.end(), weights_.begin(), 0.0) / weight();
  }
  /// Larger than the variances say, where the means differ by more than these (Birge 1932).
  double error() const {
    double sum = 0;
    for (std::size_t i = 0; i < means_.size(); ++i) {
      sum += weights_[i] * (means_[i] - mean()) * (means_[i] - mean());
    }
    const double excess = means_.size() > 1 ? sum / static_cast<double>(means_.size() - 1) : 1;
    return std::sqrt(std::max(1.0, excess) / weight());
  }

 private:
  double weight() const { return std::accumulate(weights_.begin(), weights_.end(), 0.0); }

  std::vector<double> means_;
  std::vector<double> weights_;
};

/// Holm 1979: all that hold together, with one error in 1 / `share` at most.
void tell_apart(std::vector<Judged>& all, double share) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Judged& a, const Judged& b) { return a.p < b.p; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].p > share / static_cast<double>(all.size() - i)) return;
    all[i].change.is_told = true;
  }
}

/// One error in twenty, over the whole and the rows.
void finish(Comparison& result, std::vector<Judged>& together, std::vector<Judged>& rows) {
  tell_apart(together, level / 2);
  tell_apart(rows, level / 2);
  result.whole = std::move(together.front().change);
  for (Judged& one : rows) result.rows.push_back(std::move(one.change));
}

}  // namespace

bool is_run(const Json& json) { return reader_of(text_of(json, "benchmark")) != nullptr; }

RunFile read_run(const Json& json, const std::string& source) {
  constexpr int schema = 1;
  const auto invalid = [&](const std::string& why) {
    return Error(Status::invalid, fmt::format("{}: {}", source, why));
  };
  if (!json.is_object()) throw invalid("no JSON object");
  if (json.contains("schema") && json["schema"] != schema) {
    throw invalid(
        fmt::format("of schema {}; this program knows {}", json["schema"].dump(), schema));
  }
  RunFile run;
  run.benchmark = text_of(json, "benchmark");
  const RowReader read = reader_of(run.benchmark);
  if (read == nullptr)
    throw invalid("not what bench barrier, bench lock or bench mpi write with --output or --json");
  try {
    const Json& machine = json.at("machine");
    run.machine = fmt::format("{}, {}, {}", text_of(machine, "model"),
                              counted(machine.at("cpus").get<unsigned>(), "CPUs"),
                              text_of(machine, "architecture"));
    run.commit = text_of(json.value("build", Json::object()), "commit");
    run.noisy = json.value("verdict", "") == "noisy";
    if (run.benchmark == "barrier")
      run.settings = "mapped by " + text_of(json.at("settings"), "map_by");
    if (run.benchmark == "lock")
      run.settings = fmt::format("an array of {}, {} % readers",
                                 counted(json.at("array").get<std::uint64_t>(), "words"),
                                 json.value("readers_percent", 0.0));
    if (run.benchmark == "mpi")
      run.settings = json.at("settings").at("seconds").dump() + " s of barriers in each launch";
    for (const Json& row : json.at("results")) {
      RunRow next = read(row);
      next.by_round = next.rounds;
      std::erase_if(next.rounds, [](double ns) { return std::isnan(ns); });
      if (next.rounds.empty()) continue;
      next.what += ", " + next.group;
      run.rows.push_back(std::move(next));
    }
  } catch (const Json::exception&) {
    throw invalid("not whole: something is missing in it");
  }
  return run;
}

namespace {

Error too_few(std::size_t peers) {
  return Error(Status::invalid,
               fmt::format("{} of the others' implementations are in all runs: {} are needed, to "
                           "tell what the machine did",
                           peers, peers_least));
}

/// One run of each: how far the others lie apart is chance.
Comparison compare_two(const RunFile& old_run, const RunFile& new_run) {
  Comparison result;
  std::map<std::string, const RunRow*> before;
  for (const RunRow& row : old_run.rows) before[row.what] = &row;
  std::vector<Difference> differences;
  for (const RunRow& row : new_run.rows) {
    const auto found = before.find(row.what);
    if (found == before.end()) {
      result.only_new.push_back(row.what);
      continue;
    }
    const RunRow& old_row = *found->second;
    const auto count = [](const RunRow& of) { return static_cast<double>(of.rounds.size()); };
    differences.push_back({.row = &row,
                           .old_log = mean_of_logs(old_row.rounds),
                           .new_log = mean_of_logs(row.rounds),
                           .own_variance = variance_of_logs(old_row.rounds) / count(old_row) +
                                           variance_of_logs(row.rounds) / count(row),
                           .rounds = old_row.rounds.size() + row.rounds.size()});
    before.erase(found);
  }
  for (const RunRow& row : old_run.rows) {
    if (before.contains(row.what)) result.only_old.push_back(row.what);
  }

  Group all;
  std::map<std::string, Group> groups;
  for (const Difference& one : differences) {
    Group& its = groups[one.row->group];
    (one.row->ours ? all.ours : all.peers).push_back(&one);
    (one.row->ours ? its.ours : its.peers).push_back(&one);
  }
  result.peers = all.peers.size();
  if (all.peers.size() < peers_least) throw too_few(all.peers.size());
  result.drift = std::exp(all.drift());
  result.chance = std::sqrt(all.variance());
  if (all.ours.empty()) return result;

  std::vector<Judged> judged;
  Weighted whole;
  for (const auto& [name, its] : groups) {
    if (its.ours.empty()) continue;
    const Group& around = its.peers.size() >= peers_least ? its : all;  // all tell it worse
    for (const Difference* one : its.ours) {
      const bool by_rounds = one->own_variance > around.variance();
      const double variance = std::max(around.variance(), one->own_variance);
      judged.push_back(judge(one->row->what, one->old_log, one->new_log,
                             one->log() - around.drift(),
                             std::sqrt(variance + around.drift_variance()),
                             by_rounds ? static_cast<double>(one->rounds) - 2 : around.freedom()));
    }
    whole.add(mean_of(its.ours) - around.drift(),
              around.variance() / static_cast<double>(its.ours.size()) + around.drift_variance());
  }
  double old_sum = 0;
  double new_sum = 0;
  for (const Difference* one : all.ours) {
    old_sum += one->old_log;
    new_sum += one->new_log;
  }
  const auto count = static_cast<double>(all.ours.size());
  std::vector<Judged> together{judge("all of ours", old_sum / count, new_sum / count, whole.mean(),
                                     whole.error(), all.freedom())};
  finish(result, together, judged);
  return result;
}

/// What both sides' runs say of one quantity: logarithms, one a run.
struct Sides {
  std::vector<double> before;
  std::vector<double> after;

  static double mean(const std::vector<double>& side) {
    return std::accumulate(side.begin(), side.end(), 0.0) / static_cast<double>(side.size());
  }
  double change() const { return mean(after) - mean(before); }
  double freedom() const { return static_cast<double>(before.size() + after.size()) - 2; }
  /// From one run of a build to the next, alike on both sides.
  double variance() const {
    double squares = 0;
    for (const std::vector<double>* side : {&before, &after}) {
      for (const double value : *side) squares += (value - mean(*side)) * (value - mean(*side));
    }
    return squares / freedom();
  }
  /// Of change(), if single runs have this variance (Student's t of two samples).
  double error(double of_runs) const {
    const auto share = [](const auto& side) { return 1 / static_cast<double>(side.size()); };
    return std::sqrt(of_runs * (share(before) + share(after)));
  }
  Sides& add(const Sides& other, double times) {
    for (std::size_t i = 0; i < before.size(); ++i) before[i] += times * other.before[i];
    for (std::size_t i = 0; i < after.size(); ++i) after[i] += times * other.after[i];
    return *this;
  }
  Sides minus(const Sides& other) const { return Sides(*this).add(other, -1); }
};

/// Rows that are in every run, by name.
using Rows = std::map<std::string, const Sides*>;

Sides mean_of(const Rows& rows) {
  const Sides& any = *rows.begin()->second;
  Sides mean{std::vector<double>(any.before.size()), std::vector<double>(any.after.size())};
  for (const auto& [what, logs] : rows) mean.add(*logs, 1 / static_cast<double>(rows.size()));
  return mean;
}

/// A row in all runs of both sides, the old ones first.
struct Series {
  std::vector<const RunRow*> runs;
  double usual = 0;  ///< median of the logarithms of all rounds

  void find_usual() {
    std::vector<double> logs;
    for (const RunRow* row : runs) {
      for (const double ns : row->rounds) logs.push_back(std::log(ns));
    }
    usual = median(std::move(logs));
  }
};

/// Of the middle half: a few that were disturbed are not in it.
double middle_mean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto cut = static_cast<std::ptrdiff_t>(values.size() / 4);
  return std::accumulate(values.begin() + cut, values.end() - cut, 0.0) /
         static_cast<double>(values.size() - 2 * static_cast<std::size_t>(cut));
}

/// How much longer ours took in a run than the others, as logarithm, but for a constant: the median
/// over the rounds, since what disturbs a round disturbs both.
double beside(const std::vector<const Series*>& ours, const std::vector<const Series*>& peers,
              std::size_t run) {
  std::size_t rounds = 0;
  for (const auto* all : {&ours, &peers}) {
    for (const Series* one : *all) rounds = std::max(rounds, one->runs[run]->by_round.size());
  }
  const auto middle = [&](const std::vector<const Series*>& all, std::size_t from, std::size_t to) {
    std::vector<double> logs;
    for (const Series* one : all) {
      const std::vector<double>& ns = one->runs[run]->by_round;
      for (std::size_t round = from; round < std::min(to, ns.size()); ++round) {
        if (!std::isnan(ns[round])) logs.push_back(std::log(ns[round]) - one->usual);
      }
    }
    return logs.empty() ? std::nan("") : middle_mean(std::move(logs));
  };
  std::vector<double> differences;
  for (std::size_t round = 0; round < rounds; ++round) {
    const double difference = middle(ours, round, round + 1) - middle(peers, round, round + 1);
    if (!std::isnan(difference)) differences.push_back(difference);
  }
  if (differences.empty()) return middle(ours, 0, rounds) - middle(peers, 0, rounds);
  return median(std::move(differences));
}

/// Several runs of each: how far runs of one build lie apart is chance. All of ours may move
/// together from run to run, which no single run shows.
Comparison compare_sides(const std::vector<RunFile>& old_runs,
                         const std::vector<RunFile>& new_runs) {
  Comparison result;
  std::map<std::string, Sides> found;
  std::map<std::string, Series> series;
  for (const bool is_new : {false, true}) {
    for (const RunFile& run : is_new ? new_runs : old_runs) {
      for (const RunRow& row : run.rows) {
        Sides& logs = found[row.what];
        (is_new ? logs.after : logs.before).push_back(mean_of_logs(row.rounds));
        series[row.what].runs.push_back(&row);
      }
    }
  }
  struct Kinds {
    Rows ours;
    Rows peers;
    std::vector<const Series*> our_series;
    std::vector<const Series*> peer_series;
  };
  Kinds all;
  std::map<std::string, Kinds> groups;
  for (const auto& [what, logs] : found) {
    if (logs.before.size() == old_runs.size() && logs.after.size() == new_runs.size()) {
      Series& its = series[what];
      its.find_usual();
      const RunRow& row = *its.runs.front();
      for (Kinds* group : {&all, &groups[row.group]}) {
        (row.ours ? group->ours : group->peers)[what] = &logs;
        (row.ours ? group->our_series : group->peer_series).push_back(&its);
      }
      continue;
    }
    if (!logs.before.empty()) result.only_old.push_back(what);
    if (!logs.after.empty()) result.only_new.push_back(what);
  }
  result.peers = all.peers.size();
  if (all.peers.size() < peers_least) throw too_few(all.peers.size());
  result.drift = std::exp(mean_of(all.peers).change());
  if (all.ours.empty()) return result;

  std::vector<Judged> judged;
  Sides whole{std::vector<double>(old_runs.size()), std::vector<double>(new_runs.size())};
  double weights = 0;
  for (const auto& [name, its] : groups) {
    if (its.ours.empty()) continue;
    const Kinds& around = its.peers.size() >= peers_least ? its : all;
    const Sides drift = mean_of(around.peers);
    const auto count = static_cast<double>(its.ours.size());
    double variance = 0;  // of a row without the drift, in the mean
    for (const auto& [what, logs] : its.ours) variance += logs->minus(drift).variance() / count;
    for (const auto& [what, logs] : its.ours) {
      const Sides alone = logs->minus(drift);
      judged.push_back(judge(what, Sides::mean(logs->before), Sides::mean(logs->after),
                             alone.change(), alone.error(std::max(variance, alone.variance())),
                             alone.freedom()));
    }
    for (std::size_t run = 0; run < old_runs.size() + new_runs.size(); ++run) {
      const bool is_new = run >= old_runs.size();
      (is_new ? whole.after[run - old_runs.size()] : whole.before[run]) +=
          count * beside(its.our_series, around.peer_series, run);
    }
    weights += count;
  }
  for (std::vector<double>* side : {&whole.before, &whole.after}) {
    for (double& value : *side) value /= weights;
  }
  const Sides ours = mean_of(all.ours);
  result.chance = std::sqrt(whole.variance());
  std::vector<Judged> together{judge("all of ours", Sides::mean(ours.before),
                                     Sides::mean(ours.after), whole.change(),
                                     whole.error(whole.variance()), whole.freedom())};
  finish(result, together, judged);
  return result;
}

}  // namespace

Comparison compare_runs(const std::vector<RunFile>& old_runs,
                        const std::vector<RunFile>& new_runs) {
  const std::size_t least = std::min(old_runs.size(), new_runs.size());
  if (least == 1 && old_runs.size() == new_runs.size())
    return compare_two(old_runs.front(), new_runs.front());
  if (least < 2) {
    throw Error(Status::invalid,
                fmt::format("{} old and {} new runs: give one of each, or two at least",
                            old_runs.size(), new_runs.size()));
  }
  return compare_sides(old_runs, new_runs);
}

}  // namespace muster::bench
