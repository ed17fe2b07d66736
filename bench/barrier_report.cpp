// SPDX-License-Identifier: BSD-3-Clause
#include "bench/barrier_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "bench/report.hpp"
#include "machine/format.hpp"

namespace muster::bench {
namespace {

/// To a hundredth of a nanosecond: the rest is no knowledge.
Json ns(double value) { return rounded(value, 0.01); }

Json comparison_to_json(const RatioTo& comparison) {
  if (!(comparison.ratio > 0)) return nullptr;
  const auto share = [](double value) { return rounded(value, 1e-4); };
  const PairedRatio& paired = comparison.paired;
  return {{"ratio", share(comparison.ratio)},
          {"intervals_apart", comparison.intervals_apart},
          {"paired_ratio", paired.rounds > 0 ? share(paired.ratio) : Json(nullptr)},
          {"paired_ci95", paired.rounds > 0
                              ? Json::array({share(paired.ci95.lo), share(paired.ci95.hi)})
                              : Json(nullptr)}};
}

Json row_to_json(const Row& row) {
  const bool ok = row.status == RowStatus::ok;
  const Json none = nullptr;
  const auto if_ok = [&](double value) { return ok ? ns(value) : none; };
  Json json;
  if (row.mpi.empty()) {
    json["implementation"] = row.implementation;
    json["algorithm"] = row.algorithm;
    json["serves"] = row.ours && !row.serves.empty() ? Json(row.serves) : none;
    json["via"] = row.ours ? Json(row.via) : none;
    json["participants"] = row.participants;
    json["mode"] = mode_name(row.mode);
  } else {  // as where no regime was asked for
    json["mpi"] = row.mpi;
    json["barrier"] = row.algorithm;
    json["ours"] = row.ours;
    json["ranks"] = row.participants;
  }
  json["map_by"] = row.map_by;
  json["regime"] = row.regime != nullptr ? Json(row.regime->name) : none;
  json["wait"] = row.wait;
  json["wait_asked"] = row.ours ? Json(row.wait_asked) : none;
  json["status"] = row_status_name(row.status);
  json["reason"] = row.reason;
  const bool in_turns = row.regime != nullptr;
  const LatencyDistribution& singles = row.singles_ns;
  const auto interval = [&](const Interval& i, bool known) {
    return ok && known ? Json::array({ns(i.lo), ns(i.hi)}) : none;
  };
  json["latency_ns"] = {{"mean", if_ok(row.mean_ns)},
                        {"mean_ci95", interval(row.mean_ci95, true)},
                        {"median", if_ok(in_turns ? singles.median : row.latency_ns.median)},
                        {"min", if_ok(in_turns ? singles.min : row.latency_ns.min)},
                        {"p99", if_ok(in_turns ? singles.p99 : row.latency_ns.p99)},
                        {"p99.9", in_turns ? if_ok(singles.p999) : none},
                        {"ci95", interval(row.latency_ns.ci95, !in_turns)}};
  json["cpu_ns_per_episode"] = in_turns ? if_ok(row.cpu_ns) : none;
  json["round_means_ns"] = Json::array();
  for (const double mean : row.round_means_ns) json["round_means_ns"].push_back(ns(mean));
  json["exit_skew_ns"] = ok && row.exit_skews > 0 ? ns(row.exit_skew_ns) : none;
  json["episodes"] = row.episodes;
  json["seconds"] = rounded(row.seconds, 1e-3);
  json["samples"] = in_turns ? singles.samples : row.latency_ns.samples;
  json["rank"] = row.place > 0 ? Json(row.place) : none;
  json["tied"] = row.place > 0 ? Json(row.tied) : none;
  json["to_best_peer"] = comparison_to_json(row.to_best_peer);
  json["to_limit"] = comparison_to_json(row.to_limit);
  json["verdict"] = verdict(row.noise);
  json["noise"] = noise_to_json(row.noise);
  return json;
}

std::string name_of(const Row& row) {
  if (!row.mpi.empty()) return (row.ours ? "*" : " ") + row.algorithm;
  if (!row.ours) return " " + row.implementation;
  const bool policy = row.regime != nullptr && row.is_fixed();  // auto's algorithm, if not another
  std::string name = "*" + (policy && row.algorithm == "auto" ? row.wait_asked : row.algorithm);
  if (policy && row.algorithm != "auto") name += ", " + row.wait_asked;
  if (!policy && row.algorithm == "auto" && !row.serves.empty()) name += ": " + row.serves;
  return row.via == "template" ? name + ", template" : name;
}

/// "5.59 - 5.62 us", "999 ns - 1.02 us"
std::string interval_to_text(const Interval& interval) {
  const std::string hi = format_ns(interval.hi);
  std::string lo = format_ns(interval.lo);
  const std::size_t unit = lo.find(' ');
  if (lo.substr(unit) == hi.substr(hi.find(' '))) lo.resize(unit);
  return lo + " - " + hi;
}

/// What there is to say of single episodes and their costs, or of batches.
std::string figures_of(const Row& row) {
  if (row.regime != nullptr) {
    const LatencyDistribution& s = row.singles_ns;
    return fmt::format("{:>9}{:>8}{:>8}{:>8}{:>8}", format_ns(row.mean_ns), ns_or_dash(s.median),
                       ns_or_dash(s.p99), ns_or_dash(s.p999), format_ns(row.cpu_ns));
  }
  const Summary& s = row.latency_ns;
  return fmt::format("{:>8}{:>8}{:>18}{:>8}", format_ns(row.mean_ns), format_ns(s.median),
                     interval_to_text(s.ci95),
                     row.exit_skews > 0 ? format_ns(row.exit_skew_ns) : "");
}

/// At most 80 columns, but for reasons and for names of many levels.
std::string group_to_text(const std::vector<const Row*>& rows) {
  std::vector<const Row*> order = rows;
  const auto key = [](const Row* row) {
    const bool ok = row->status == RowStatus::ok;
    return std::tuple(!ok, ok ? row->typical_ns() : 0.0, ok ? 0 : static_cast<int>(row->status));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Row* a, const Row* b) { return key(a) < key(b); });
  std::string text = rows.front()->regime != nullptr
                         ? fmt::format(" #   {:<25}{:>9}{:>8}{:>8}{:>8}{:>8}{:>7}\n", "*ours",
                                       "mean", "p50", "p99", "p99.9", "CPU", "speed")
                         : fmt::format(" #   {:<25}{:>8}{:>8}{:>18}{:>8}{:>7}\n", "*ours", "mean",
                                       "median", "95 % interval", "skew", "speed");
  for (const Row* row : order) {
    if (row->status != RowStatus::ok) {
      text += fmt::format("     {:<19} {}: {}\n", name_of(*row), row_status_name(row->status),
                          row->reason);
      continue;
    }
    const std::string place = row->place == 0 ? "-" : fmt::format("{}", row->place);
    const double ratio = row->to_best_peer.ratio;
    text += fmt::format("{}{:>2}{} {:<25}{}{:>7}{}\n", row->noise.noisy ? "!" : " ", place,
                        row->tied ? "=" : " ", name_of(*row), figures_of(*row),
                        ratio > 0 ? format_times(1 / ratio) : "",
                        ratio > 0 && !row->to_best_peer.intervals_apart ? "~" : "");
  }
  return text;
}

BesideAuto beside_auto(const std::vector<const Row*>& group) {
  const Conclusion<Row> c = conclude(group);
  return {.where = group.front()->where(),
          .automatic = c.automatic != nullptr ? format_ns(c.automatic->mean_ns) : "",
          .own = c.best_own != nullptr ? c.best_own->wait_asked : "",
          .to_own = c.to_own(),
          .peer = c.best_peer != nullptr ? c.best_peer->implementation : "",
          .to_peer = c.to_peer()};
}

/// What closes a regime of MPIs: ours beside each MPI's own.
std::string conclusion_to_text(const Regime& regime, const std::vector<MpiConclusion>& mpis) {
  std::string text;
  for (const MpiConclusion& c : mpis) {
    text += text.empty()
                ? fmt::format("\nIn {}, Muster takes {} times the time of {}'s own barrier",
                              regime.name, format_times(c.to_own), c.mpi)
                : fmt::format(",\nand {} times that of {}'s", format_times(c.to_own), c.mpi);
  }
  return text.empty() ? "" : text + "\n(geometric means of ratios of means).\n";
}

/// What closes a regime: `auto` beside the best fixed policy and the best peer.
std::string conclusion_to_text(const std::vector<std::vector<const Row*>>& groups,
                               const Regime& regime) {
  std::vector<BesideAuto> settings;
  for (const std::vector<const Row*>& group : groups) {
    if (group.front()->regime == &regime) settings.push_back(beside_auto(group));
  }
  return beside_auto_to_text(regime.name,
                             {.figure = "mean time",
                              .does = "takes",
                              .own = "the time of the best fixed policy",
                              .peer = "that of the best peer"},
                             settings);
}

std::vector<const Row*> rows_in(const RunResults& results, const Regime& regime) {
  std::vector<const Row*> rows;
  for (const Row& row : results.rows) {
    if (row.regime == &regime) rows.push_back(&row);
  }
  return rows;
}

/// For how many no time was left, and how much all take at the speed of those that had some.
std::string time_to_text(const RunResults& results) {
  const std::size_t all = results.rows.size();
  const double each_s = results.elapsed_s / static_cast<double>(all - results.without_time);
  return fmt::format(
      "No time was left for {} of {}. {}", results.without_time, counted(all, "barriers"),
      std::isfinite(each_s) ? fmt::format("All take about --seconds {:.0f}.\n",
                                          std::ceil(each_s * static_cast<double>(all)))
                            : "Raise --seconds.\n");
}

Json conclusion_to_json(const std::vector<const Row*>& group) {
  const Row& first = *group.front();
  Json json{{"regime", first.regime->name},
            {"mode", mode_name(first.mode)},
            {"participants", first.participants}};
  json.update(beside_auto_to_json(beside_auto(group)));
  return json;
}

}  // namespace

Json to_json(const RunResults& results) {
  const RunOptions& options = results.options;
  Json json;
  json["benchmark"] = options.mpi.empty() ? "barrier" : "mpi";
  json["machine"] = machine_to_json(results.host, results.cpus);
  json["machine"]["topology"] = results.topology;
  json["machine"]["topology_imposed"] = results.topology_imposed;
  json["machine"]["ping_pong_ns"] = results.ping_pong_ns > 0 ? ns(results.ping_pong_ns) : Json();
  json["build"] = build_to_json(results.host);
  Json modes = Json::array();
  for (const Mode mode : options.modes) modes.push_back(mode_name(mode));
  json["settings"] = {{"algorithms", options.algorithms},
                      {"participants", options.participants},
                      {"modes", modes},
                      {"map_by", options.map_by},
                      {"waits", options.waits},
                      {"regimes", options.regimes},
                      {"turn_ms", options.turn_ms},
                      {"peers", options.peers},
                      {"via", options.via},
                      {"seconds", options.seconds.value_or(kSecondsDefault)},
                      {"rounds", results.rounds},
                      {"seed", options.seed}};
  if (!options.mpi.empty()) {
    for (const char* name : {"algorithms", "modes", "map_by", "waits", "peers", "via"})
      json["settings"].erase(name);
  }
  json["without_time"] = results.without_time;
  json["elapsed_s"] = rounded(results.elapsed_s, 1e-3);
  json["stopped"] = results.stopped;
  json["verdict"] = verdict(results.noise);
  json["noise"] = noise_to_json(results.noise);
  json["left_out"] = left_out_to_json(results.left_out);
  json["results"] = Json::array();
  for (const Row& row : results.rows) json["results"].push_back(row_to_json(row));
  json["conclusions"] = Json::array();
  for (const std::vector<const Row*>& group : groups_of(results.rows)) {
    if (group.front()->regime != nullptr && group.front()->mpi.empty())
      json["conclusions"].push_back(conclusion_to_json(group));
  }
  for (const Regime& regime : all_regimes()) {
    for (const MpiConclusion& c : conclude_mpis(rows_in(results, regime))) {
      json["conclusions"].push_back({{"regime", regime.name},
                                     {"mpi", c.mpi},
                                     {"muster_to_own", rounded(c.to_own, 1e-4)},
                                     {"rows", c.rows}});
    }
  }
  return json;
}

std::string to_csv(const RunResults& results) {
  static constexpr const char* plain[] = {"implementation", "algorithm",  "serves", "via",
                                          "participants",   "mode",       "map_by", "regime",
                                          "wait",           "wait_asked", "status", "reason"};
  static constexpr const char* after[] = {"exit_skew_ns", "episodes", "seconds", "samples",
                                          "rank",         "tied",     "verdict"};
  std::string text;
  for (const char* name : plain) text += fmt::format("{},", name);
  text +=
      "mean_ns,median_ns,min_ns,p99_ns,p99.9_ns,cpu_ns_per_episode,mean_ci95_lo_ns,"
      "mean_ci95_hi_ns,ci95_lo_ns,ci95_hi_ns";
  for (const char* name : after) text += fmt::format(",{}", name);
  text += ",involuntary_switches_per_s,steal_share,others_share\n";
  for (const Row& row : results.rows) {
    const Json json = row_to_json(row);
    const Json& latency = json.at("latency_ns");
    for (const char* name : plain) text += csv_field(json.at(name)) + ",";
    for (const char* name : {"mean", "median", "min", "p99", "p99.9"}) {
      text += csv_field(latency.at(name)) + ",";
    }
    text += csv_field(json.at("cpu_ns_per_episode"));
    for (const char* name : {"mean_ci95", "ci95"}) {
      const Json& ci95 = latency.at(name);
      text += ci95.is_null() ? ",," : "," + csv_field(ci95.at(0)) + "," + csv_field(ci95.at(1));
    }
    for (const char* name : after) text += "," + csv_field(json.at(name));
    for (const char* name : {"involuntary_switches_per_s", "steal_share", "others_share"}) {
      text += "," + csv_field(json.at("noise").at(name));
    }
    text += "\n";
  }
  return text;
}

std::string to_text(const RunResults& results) {
  const Host& host = results.host;
  std::string text = fmt::format("{}, {}\n{}{}\n", host.model, counted(results.cpus, "usable CPUs"),
                                 host.kernel, host.commit.empty() ? "" : ", commit " + host.commit);
  if (results.ping_pong_ns > 0) {
    text += fmt::format("ping-pong of a cache line: {} there and back\n",
                        format_ns(results.ping_pong_ns));
  }
  if (results.topology_imposed) {
    text += fmt::format("ours grouped as if they sat on: {} (imposed; they run here)\n",
                        results.topology);
  }
  text += fmt::format(
      "{} s, {}; {}\n", std::round(results.elapsed_s * 10) / 10, counted(results.rounds, "rounds"),
      results.options.mpi.empty() ? "mapped by " + results.options.map_by
                                  : "ranks bound to cores, but not where there are more ranks");

  const std::vector<std::vector<const Row*>> groups = groups_of(results.rows);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Row& first = *groups[i].front();
    text += fmt::format("\n{}{}{}\n",
                        first.regime != nullptr ? fmt::format("{}: ", first.regime->name) : "",
                        first.where(), first.participants > results.cpus ? ", more than CPUs" : "");
    text += group_to_text(groups[i]);
    const bool last = i + 1 == groups.size() || groups[i + 1].front()->regime != first.regime;
    if (first.regime == nullptr || !last) continue;
    text += first.mpi.empty()
                ? conclusion_to_text(groups, *first.regime)
                : conclusion_to_text(*first.regime, conclude_mpis(rows_in(results, *first.regime)));
  }

  text += "\n#: place; = shared, or its interval meets another's; - is a reference.\n";
  text += results.options.regimes.empty()
              ? "mean: all of the time over all episodes; median: of batches of them. skew: from\n"
                "the first one's leaving to the last's. # and speed go by the median; speed: to\n"
                "the best of the others; ~ is no surer difference than chance.\n"
              : "mean: all of the time over all episodes. p50 to p99.9: of single episodes, drawn\n"
                "at random, by rank 0's clock. CPU: all participants' time, of an episode. speed:\n"
                "by the mean, to the best of the others; ~ is no surer difference than chance.\n";
  if (std::any_of(results.rows.begin(), results.rows.end(),
                  [](const Row& row) { return row.noise.noisy; })) {
    text += "! was disturbed meanwhile: the JSON object says how.\n";
  }
  if (results.without_time > 0) text += time_to_text(results);
  text += fmt::format("verdict: {}{}\n", verdict(results.noise),
                      results.options.regimes.empty() ? "" : ", beside what the regimes add");
  if (results.noise.noisy) {  // a line for each reason
    std::string why = "  " + results.noise.why;
    for (std::size_t at = 0; (at = why.find("; ", at)) != std::string::npos; at += 2)
      why.replace(at, 2, "\n  ");
    text += why + "\n";
  }
  return text + left_out_to_text(results.left_out);
}

}  // namespace muster::bench
