// SPDX-License-Identifier: BSD-3-Clause
#include "bench/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "bench/report.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"

namespace muster::bench {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t kSeed = 1;

/// One that took part, with what an episode or a section took it in each round.
struct Entry {
  std::string name;
  std::vector<double> rounds_ns;  ///< NaN where it had no turn; empty: it did not finish
  bool no_turn = false;           ///< there was no time for it

  double typical_ns() const {
    std::vector<double> known;
    for (const double value : rounds_ns) {
      if (!std::isnan(value)) known.push_back(value);
    }
    return known.empty() ? kNone : median(known);
  }
};

const Entry* fastest(const std::vector<Entry>& entries) {
  const Entry* best = nullptr;
  for (const Entry& entry : entries) {
    if (std::isnan(entry.typical_ns())) continue;
    if (best == nullptr || entry.typical_ns() < best->typical_ns()) best = &entry;
  }
  return best;
}

void add_finding(ResultSummary& summary, Finding::Kind kind, std::string where,
                 const std::vector<Entry>& ours, const std::vector<Entry>& others) {
  if (ours.empty()) return;
  Finding finding;
  finding.kind = kind;
  finding.where = std::move(where);
  const Entry* const our_best = fastest(ours);
  const Entry* const best = fastest(others);
  finding.ours = (our_best != nullptr ? *our_best : ours.front()).name;
  finding.no_turn = our_best == nullptr && ours.front().no_turn;
  finding.ours_ns = our_best != nullptr ? our_best->typical_ns() : kNone;
  finding.other_ns = best != nullptr ? best->typical_ns() : kNone;
  if (best != nullptr) {
    finding.other = best->name;
    if (our_best != nullptr)
      finding.faster = paired_ratio(best->rounds_ns, our_best->rounds_ns, kSeed);
  }
  summary.findings.push_back(std::move(finding));
}

std::vector<double> numbers(const Json& list, double factor = 1) {
  std::vector<double> values;
  for (const Json& value : list) {
    values.push_back(value.is_null() ? kNone : factor * value.get<double>());
  }
  return values;
}

std::vector<double> inverted(std::vector<double> values) {
  for (double& value : values) value = 1e9 / value;
  return values;
}

/// Rows that belong together, in the order in which they come first.
template <class Key>
class Groups {
 public:
  struct Group {
    std::vector<Entry> ours, others;
  };
  Group& at(const Key& key) {
    for (auto& [known, group] : groups_) {
      if (known == key) return group;
    }
    return groups_.emplace_back(key, Group{}).second;
  }
  auto begin() const { return groups_.begin(); }
  auto end() const { return groups_.end(); }

 private:
  std::vector<std::pair<Key, Group>> groups_;
};

/// "1 thread", "8 processes on 2 CPUs"
std::string counted_on(unsigned count, const std::string& what, unsigned cpus) {
  return counted(count, what) + (count > cpus ? " on " + counted(cpus, "CPUs") : "");
}

std::string text_of(const Json& row, const char* name) {
  const auto found = row.find(name);
  return found == row.end() || !found->is_string() ? "" : found->get<std::string>();
}

/// ", hogs" of a row that was measured in a regime.
std::string regime_of(const Json& row) {
  const std::string regime = text_of(row, "regime");
  return regime.empty() ? "" : ", " + regime;
}

void add_barriers(ResultSummary& summary, const Json& results) {
  const auto cpus = results.at("machine").at("cpus").get<unsigned>();
  Groups<std::tuple<std::string, unsigned, std::string>> groups;
  for (const Json& row : results.at("results")) {
    const bool ours = row.at("implementation") == "muster";
    if (!text_of(row, "regime").empty() && ours && row.at("wait_asked") != "auto") continue;
    // References have no rank, nor has who did not finish.
    const bool ok = row.at("status") == "ok";
    if (ours ? row.at("algorithm") != "auto" || row.at("via") != "c"
             : !ok || row.at("rank").is_null())
      continue;
    auto& group = groups.at({row.at("mode"), row.at("participants"), regime_of(row)});
    (ours ? group.ours : group.others)
        .push_back({ours ? row.at("algorithm") : row.at("implementation"),
                    ok ? numbers(row.at("round_means_ns")) : std::vector<double>{},
                    !ok && row.value("seconds", 1.0) == 0});
  }
  for (const auto& [key, group] : groups) {
    const auto& [mode, participants, regime] = key;
    add_finding(summary, mode == "threads" ? Finding::threads : Finding::processes,
                counted_on(participants, mode, cpus) + regime, group.ours, group.others);
  }
}

void add_locks(ResultSummary& summary, const Json& results) {
  Groups<std::pair<std::string, unsigned>> groups;
  for (const Json& row : results.at("results")) {
    const bool ours = row.at("lock") == "auto";
    const bool ok = row.at("status") == "ok";
    if (!ours && (!ok || row.at("kind") != "peer")) continue;
    auto& group = groups.at(
        {row.at("pattern").get<std::string>() + regime_of(row), row.at("threads").get<unsigned>()});
    (ours ? group.ours : group.others)
        .push_back({row.at("lock"),
                    ok ? inverted(numbers(row.at("rounds_ops_s"))) : std::vector<double>{}});
  }
  for (const auto& [key, group] : groups) {
    add_finding(summary, Finding::lock, counted(key.second, "threads") + ", " + key.first,
                group.ours, group.others);
  }
}

void add_mpi(ResultSummary& summary, const Json& results) {
  Groups<std::pair<std::string, unsigned>> groups;
  for (const Json& row : results.at("results")) {
    auto& group = groups.at({row.at("mpi").get<std::string>() + regime_of(row), row.at("ranks")});
    const bool ours = row.at("ours").get<bool>();
    (ours ? group.ours : group.others)
        .push_back({row.at("barrier"), regime_of(row).empty() ? numbers(row.at("latency_us"), 1000)
                                                              : numbers(row.at("round_means_ns"))});
  }
  for (const auto& [key, group] : groups) {
    // Beside the same MPI without: what a user sees who changes nothing else.
    add_finding(summary, Finding::mpi, counted(key.second, "ranks") + ", " + key.first, group.ours,
                group.others);
  }
}

void add_predictions(ResultSummary& summary, const Json& results) {
  const auto about = results.at("about").get<std::string>();
  summary.modelled = about.substr(0, about.find(':'));
  Groups<std::string> groups;
  const bool locks = results.contains("window");
  for (const Json& row : results.at("results")) {
    if (locks) {
      const auto pattern = row.at("pattern").get<std::string>();
      auto& group = groups.at(counted(row.at("threads").get<unsigned>(), "threads") +
                              (pattern == "sequential" ? "" : ", " + pattern));
      const auto name = row.at("lock").get<std::string>();
      if (row.contains("fairness") && row.at("fairness").is_null()) continue;  // starves a thread
      (name == "rcl" || name == "auto" ? group.ours : group.others)
          .push_back({name, inverted({row.at("throughput_ops_s").get<double>()})});
    } else {
      auto& group = groups.at(counted(row.at("ranks").get<unsigned>(), "ranks"));
      const auto name = row.at("algorithm").get<std::string>();
      const bool theirs = name.starts_with("base-");  // as in Open MPI
      (theirs ? group.others : group.ours)
          .push_back({theirs ? name.substr(5) : name, {1000 * row.at("latency_us").get<double>()}});
    }
  }
  for (const auto& [where, group] : groups) {
    add_finding(summary, locks ? Finding::predicted_lock : Finding::predicted_barrier, where,
                group.ours, group.others);
  }
}

/// "a, b and c"
std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + items[i];
  }
  return text;
}

std::string word_of(const Finding& finding) {
  if (finding.no_turn) return "no time was left";
  if (std::isnan(finding.ours_ns)) return "ours did not finish";
  if (finding.other.empty()) return "";
  if (!finding.is_prediction() && !finding.is_faster() && !finding.is_slower())
    return "about as fast";
  return times_as_fast(finding.faster.ratio);
}

constexpr Finding::Kind measured_kinds[] = {Finding::threads, Finding::processes, Finding::lock,
                                            Finding::mpi};

/// What is compared, in the first sentence and in the second.
const char* things(Finding::Kind kind) {
  switch (kind) {
    case Finding::threads:
      return "barriers of threads";
    case Finding::processes:
      return "barriers of processes";
    case Finding::lock:
      return "locks";
    default:
      return "MPI_Barrier";
  }
}

const char* title(Finding::Kind kind) {
  switch (kind) {
    case Finding::lock:
      return "critical sections";
    case Finding::predicted_barrier:
      return "predicted: barriers";
    case Finding::predicted_lock:
      return "predicted: sections";
    default:
      return things(kind);
  }
}

/// A prediction says of which of ours it is.
std::string where_of(const Finding& finding) {
  return finding.is_prediction() ? finding.ours + ", " + finding.where : finding.where;
}

std::vector<const Finding*> of_kind(const ResultSummary& summary, Finding::Kind kind) {
  std::vector<const Finding*> found;
  for (const Finding& finding : summary.findings) {
    if (finding.kind == kind) found.push_back(&finding);
  }
  return found;
}

std::string fastest_here(const ResultSummary& summary) {
  std::vector<std::string> wins;
  std::vector<std::string> losses;
  for (const Finding::Kind kind : measured_kinds) {
    auto all = of_kind(summary, kind);
    std::erase_if(all, [](const Finding* f) { return f->no_turn; });
    if (all.empty()) continue;
    const auto faster =
        std::count_if(all.begin(), all.end(), [](const Finding* f) { return f->is_faster(); });
    wins.push_back(fmt::format("{} of {}{} with {}", faster, all.size(),
                               wins.empty() ? " settings" : "", things(kind)));
    for (const Finding* finding : all) {
      if (finding->is_slower())
        losses.push_back(fmt::format("{} ({})", finding->other, finding->where));
    }
  }
  if (wins.empty()) return "Nothing was measured.";
  constexpr std::size_t kNamed = 3;
  std::string lost = "no other is surely faster anywhere";
  if (!losses.empty()) {
    const std::size_t more = losses.size() > kNamed ? losses.size() - kNamed : 0;
    losses.resize(losses.size() - more);
    if (more > 0) losses.push_back(fmt::format("{} more", more));
    const bool one = losses.size() == 1;
    lost = fmt::format("faster than Muster {} {}", one ? "is" : "are", joined(losses));
  }
  return fmt::format("Muster is surely the fastest in {}; {}.", joined(wins), lost);
}

/// "1.2 to 1.9 times as fast", "1.1 times as slow to 14 times as fast"
std::string range_to_text(double least, double most) {
  std::string low = times_as_fast(least);
  const std::string high = times_as_fast(most);
  if (low == high) return low;
  if ((least < 1) != (most < 1)) return low + " to " + high;
  return most < 1 ? format_times(1 / most) + " to " + low : format_times(least) + " to " + high;
}

std::string by_how_much(const ResultSummary& summary) {
  std::vector<std::string> parts;
  for (const Finding::Kind kind : measured_kinds) {
    std::vector<double> ratios;
    for (const Finding* finding : of_kind(summary, kind)) {
      if (finding->faster.rounds > 0) ratios.push_back(finding->faster.ratio);
    }
    if (ratios.empty()) continue;
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    parts.push_back(fmt::format("{} {}{}", things(kind), parts.empty() ? "are " : "",
                                range_to_text(*least, *most)));
  }
  if (parts.empty()) return "There was nothing to compare with.";
  return fmt::format("Beside the best of the others, its {}.", joined(parts));
}

const char* advice(Finding::Kind kind) {
  switch (kind) {
    case Finding::threads:
      return "put muster::barrier where std::barrier was (examples/std_barrier.cpp)";
    case Finding::processes:
      return "share a barrier between processes (examples/processes.c)";
    case Finding::lock:
      return "make a contended critical section a call (examples/word_count.c)";
    default:
      return "preload libmuster_mpi_preload.so into an MPI program (doc/mpi.md)";
  }
}

std::string what_next(const ResultSummary& summary) {
  std::optional<Finding::Kind> best;
  double gain = 0;
  for (const Finding::Kind kind : measured_kinds) {
    std::vector<double> ratios;
    bool wins = false;
    for (const Finding* finding : of_kind(summary, kind)) {
      if (finding->faster.rounds > 0) ratios.push_back(finding->faster.ratio);
      wins = wins || finding->is_faster();
    }
    if (wins && median(ratios) > gain) {
      best = kind;
      gain = median(ratios);
    }
  }
  std::string text = best ? fmt::format("Next, {}, where most is gained here", advice(*best))
                          : "Keep what you have: nothing here is surely faster";
  if (!summary.noise.empty()) {
    text += fmt::format("; but measure again when the machine is quiet ({})", summary.noise);
  }
  return text + ".";
}

}  // namespace

bool Finding::is_slower() const {
  if (std::isnan(ours_ns)) return !no_turn && !other.empty();
  return faster.rounds > 0 && faster.ci95.hi < 1;
}

void add_results(ResultSummary& summary, const Json& results, const std::string& name) {
  try {
    if (results.contains("about")) return add_predictions(summary, results);
    const auto benchmark = results.at("benchmark").get<std::string>();
    if (benchmark == "barrier") {
      add_barriers(summary, results);
    } else if (benchmark == "lock") {
      add_locks(summary, results);
    } else if (benchmark == "mpi") {
      add_mpi(summary, results);
    } else {
      throw Error(Status::invalid,
                  fmt::format("{}: no results of \"{}\" are known", name, benchmark));
    }
    summary.machine = results.at("machine").at("model").get<std::string>();
    if (results.contains("noise") && results.at("verdict") == "noisy" && summary.noise.empty()) {
      summary.noise = results.at("noise").at("why").get<std::string>();
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(Status::invalid, name +
                                     " is not what this version of `muster bench` or "
                                     "`muster sim` writes: something is missing in it");
  }
}

std::string times_as_fast(double ratio) {
  return ratio >= 1 ? format_times(ratio) + " times as fast"
                    : format_times(1 / ratio) + " times as slow";
}

std::string findings_to_text(const ResultSummary& summary) {
  constexpr std::size_t kColumns = 80;
  constexpr std::size_t kRest = 2 + 8 + 2 + 8 + 2 + 18;  // times, verdict, and what is between
  std::size_t where = 0;
  for (const Finding& finding : summary.findings) {
    where =
        std::max({where, where_of(finding).size(), std::string_view(title(finding.kind)).size()});
  }
  const std::size_t other = kColumns - kRest - std::min<std::size_t>(where, 30);
  std::string text;
  for (const Finding::Kind kind :
       {Finding::threads, Finding::processes, Finding::lock, Finding::mpi,
        Finding::predicted_barrier, Finding::predicted_lock}) {
    const auto all = of_kind(summary, kind);
    if (all.empty()) continue;
    text += fmt::format("{}{:<{}}{:>8}  {}\n", text.empty() ? "" : "\n", title(kind), where + 2,
                        "Muster", "best of the others");
    for (const Finding* f : all) {
      text +=
          fmt::format("  {:<{}}{:>8}  {:<{}.{}}{:>8}  {}\n", where_of(*f), where,
                      std::isnan(f->ours_ns) ? "-" : format_ns(f->ours_ns), f->other, other, other,
                      std::isnan(f->other_ns) ? "" : format_ns(f->other_ns), word_of(*f));
    }
  }
  if (!summary.modelled.empty()) {
    text += fmt::format("\npredicted: by the model, of {}; not measured\n", summary.modelled);
  }
  return text;
}

std::vector<std::string> sentences(const ResultSummary& summary) {
  return {fastest_here(summary), by_how_much(summary), what_next(summary)};
}

}  // namespace muster::bench
