// SPDX-License-Identifier: BSD-3-Clause
#include "bench/barrier_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "bench/report.hpp"

namespace muster::bench {
namespace {

/// To a hundredth of a nanosecond: the rest is no knowledge.
Json ns(double value) { return rounded(value, 0.01); }

Json comparison_to_json(const Comparison& comparison) {
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
  json["implementation"] = row.implementation;
  json["algorithm"] = row.algorithm;
  json["serves"] = row.ours && !row.serves.empty() ? Json(row.serves) : none;
  json["via"] = row.ours ? Json(row.via) : none;
  json["participants"] = row.participants;
  json["mode"] = mode_name(row.mode);
  json["map_by"] = row.map_by;
  json["wait"] = row.wait;
  json["status"] = row_status_name(row.status);
  json["reason"] = row.reason;
  json["latency_ns"] = {
      {"median", if_ok(row.latency_ns.median)},
      {"min", if_ok(row.latency_ns.min)},
      {"p99", if_ok(row.latency_ns.p99)},
      {"ci95", ok ? Json::array({ns(row.latency_ns.ci95.lo), ns(row.latency_ns.ci95.hi)}) : none}};
  json["round_means_ns"] = Json::array();
  for (const double mean : row.round_means_ns) json["round_means_ns"].push_back(ns(mean));
  json["exit_skew_ns"] = ok && row.exit_skews > 0 ? ns(row.exit_skew_ns) : none;
  json["episodes"] = row.episodes;
  json["seconds"] = rounded(row.seconds, 1e-3);
  json["samples"] = row.latency_ns.samples;
  json["rank"] = row.place > 0 ? Json(row.place) : none;
  json["tied"] = row.place > 0 ? Json(row.tied) : none;
  json["to_best_peer"] = comparison_to_json(row.to_best_peer);
  json["to_limit"] = comparison_to_json(row.to_limit);
  json["verdict"] = verdict(row.noise);
  json["noise"] = noise_to_json(row.noise);
  return json;
}

std::string name_of(const Row& row) {
  if (!row.ours) return " " + row.implementation;
  std::string name = "*" + row.algorithm;
  if (row.algorithm == "auto" && !row.serves.empty()) name += ": " + row.serves;
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

/// At most 80 columns, but for reasons and for names of many levels.
std::string group_to_text(const std::vector<const Row*>& rows) {
  std::vector<const Row*> order = rows;
  const auto key = [](const Row* row) {
    const bool ok = row->status == RowStatus::ok;
    return std::tuple(!ok, ok ? row->latency_ns.median : 0.0,
                      ok ? 0 : static_cast<int>(row->status));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Row* a, const Row* b) { return key(a) < key(b); });
  std::string text = fmt::format(" #   {:<25}{:>8}{:>18}{:>8}{:>8}{:>7}\n", "*ours", "median",
                                 "95 % interval", "p99", "skew", "speed");
  for (const Row* row : order) {
    if (row->status != RowStatus::ok) {
      text += fmt::format("     {:<19} {}: {}\n", name_of(*row), row_status_name(row->status),
                          row->reason);
      continue;
    }
    const Summary& s = row->latency_ns;
    const std::string place = row->place == 0 ? "-" : fmt::format("{}", row->place);
    const double ratio = row->to_best_peer.ratio;
    text += fmt::format("{}{:>2}{} {:<25}{:>8}{:>18}{:>8}{:>8}{:>7}{}\n",
                        row->noise.noisy ? "!" : " ", place, row->tied ? "=" : " ", name_of(*row),
                        format_ns(s.median), interval_to_text(s.ci95), format_ns(s.p99),
                        row->exit_skews > 0 ? format_ns(row->exit_skew_ns) : "",
                        ratio > 0 ? format_times(1 / ratio) : "",
                        ratio > 0 && !row->to_best_peer.intervals_apart ? "~" : "");
  }
  return text;
}

}  // namespace

Json to_json(const RunResults& results) {
  const RunOptions& options = results.options;
  Json json;
  json["benchmark"] = "barrier";
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
                      {"wait", options.wait},
                      {"peers", options.peers},
                      {"via", options.via},
                      {"seconds", options.seconds},
                      {"rounds", results.rounds},
                      {"seed", options.seed}};
  json["elapsed_s"] = rounded(results.elapsed_s, 1e-3);
  json["verdict"] = verdict(results.noise);
  json["noise"] = noise_to_json(results.noise);
  json["left_out"] = left_out_to_json(results.left_out);
  json["results"] = Json::array();
  for (const Row& row : results.rows) json["results"].push_back(row_to_json(row));
  return json;
}

std::string to_csv(const RunResults& results) {
  static constexpr const char* plain[] = {"implementation", "algorithm", "serves", "via",
                                          "participants",   "mode",      "map_by", "wait",
                                          "status",         "reason"};
  static constexpr const char* after[] = {"exit_skew_ns", "episodes", "seconds", "samples",
                                          "rank",         "tied",     "verdict"};
  std::string text;
  for (const char* name : plain) text += fmt::format("{},", name);
  text += "median_ns,min_ns,p99_ns,ci95_lo_ns,ci95_hi_ns";
  for (const char* name : after) text += fmt::format(",{}", name);
  text += ",involuntary_switches_per_s,steal_share,others_share\n";
  for (const Row& row : results.rows) {
    const Json json = row_to_json(row);
    const Json& latency = json.at("latency_ns");
    for (const char* name : plain) text += csv_field(json.at(name)) + ",";
    for (const char* name : {"median", "min", "p99"}) text += csv_field(latency.at(name)) + ",";
    const Json& ci95 = latency.at("ci95");
    text += ci95.is_null() ? "," : csv_field(ci95.at(0)) + "," + csv_field(ci95.at(1));
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
  std::string text = fmt::format("{}, {} usable CPU{}, {}{}\n", host.model, results.cpus,
                                 results.cpus == 1 ? "" : "s", host.kernel,
                                 host.commit.empty() ? "" : ", commit " + host.commit);
  if (results.ping_pong_ns > 0) {
    text += fmt::format("ping-pong of a cache line: {} there and back\n",
                        format_ns(results.ping_pong_ns));
  }
  if (results.topology_imposed) {
    text += fmt::format("ours grouped as if they sat on: {} (imposed; they run here)\n",
                        results.topology);
  }
  text += fmt::format("{} s, {} rounds; mapped by {}\n", std::round(results.elapsed_s * 10) / 10,
                      results.rounds, results.options.map_by);

  for (std::size_t i = 0; i < results.rows.size();) {
    const Row& first = results.rows[i];
    std::vector<const Row*> group;
    for (; i < results.rows.size() && results.rows[i].mode == first.mode &&
           results.rows[i].participants == first.participants;
         ++i) {
      group.push_back(&results.rows[i]);
    }
    text += fmt::format("\n{} {}{}\n", first.participants, mode_name(first.mode),
                        first.participants > results.cpus ? ", more than CPUs" : "");
    text += group_to_text(group);
  }

  text +=
      "\n#: place; = shared, or its interval meets another's; - is a reference.\n"
      "skew: from the first one's leaving to the last's. speed: to the best of the\n"
      "others; ~ is no surer difference than chance.\n";
  if (std::any_of(results.rows.begin(), results.rows.end(),
                  [](const Row& row) { return row.noise.noisy; })) {
    text += "! was disturbed meanwhile: the JSON object says how.\n";
  }
  text += fmt::format("verdict: {}{}\n", verdict(results.noise),
                      results.noise.noisy ? " (" + results.noise.why + ")" : "");
  return text + left_out_to_text(results.left_out);
}

}  // namespace muster::bench
