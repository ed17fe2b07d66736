// SPDX-License-Identifier: BSD-3-Clause
#include "bench/lock_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/report.hpp"
#include "machine/format.hpp"

namespace muster::bench {
namespace {

Json latency_to_json(const LatencyDistribution& latency) {
  const auto ns = [](double value) { return rounded(value, 1); };
  Json from_ns = Json::array();
  Json operations = Json::array();
  for (const auto& bucket : latency.histogram) {
    from_ns.push_back(bucket.from_ns);
    operations.push_back(std::llround(bucket.operations));
  }
  return {{"min", ns(latency.min)},
          {"p10", ns(latency.p10)},
          {"p25", ns(latency.p25)},
          {"median", ns(latency.median)},
          {"p75", ns(latency.p75)},
          {"p90", ns(latency.p90)},
          {"p99", ns(latency.p99)},
          {"p99.9", ns(latency.p999)},
          {"max", ns(latency.max)},
          {"samples", latency.samples},
          {"histogram", {{"from_ns", from_ns}, {"operations", operations}}}};
}

Json row_to_json(const LockRow& row) {
  const bool ok = row.status == RowStatus::ok;
  const auto if_ok = [&](double value, double unit) { return ok ? rounded(value, unit) : Json(); };
  const Summary& t = row.throughput_ops_s;
  constexpr const char* kinds[] = {"ours", "peer", "reference"};
  Json json;
  json["lock"] = row.lock;
  json["kind"] = kinds[row.kind];
  json["threads"] = row.threads;
  json["pattern"] = pattern_name(row.pattern);
  json["status"] = row_status_name(row.status);
  json["reason"] = row.reason;
  json["regime"] = row.regime != nullptr ? Json(row.regime->name) : Json();
  json["throughput_ops_s"] = {
      {"mean", if_ok(row.mean_ops_s, 1)},
      {"mean_ci95",
       ok ? Json::array({rounded(row.mean_ci95.lo, 1), rounded(row.mean_ci95.hi, 1)}) : Json()},
      {"median", if_ok(t.median, 1)},
      {"min", if_ok(t.min, 1)},
      {"ci95", ok ? Json::array({rounded(t.ci95.lo, 1), rounded(t.ci95.hi, 1)}) : Json()}};
  json["rounds_ops_s"] = Json::array();
  for (const double value : row.rounds_ops_s) json["rounds_ops_s"].push_back(rounded(value, 1));
  json["latency_ns"] = latency_to_json(row.latency_ns);
  json["fairness"] = if_ok(row.fairness, 0.01);
  const bool counted = ok && std::isfinite(row.cache_misses_percent);
  json["cache_misses_percent"] = counted ? rounded(row.cache_misses_percent, 0.01) : Json("n/a");
  json["operations"] = row.operations;
  json["cpu_ns_per_operation"] = if_ok(row.cpu_ns, 0.1);
  json["to_pthread_mutex"] = ratio_to_json(row.to_pthread);
  json["to_best"] = ratio_to_json(row.to_best);
  json["verdict"] = verdict(row.noise);
  json["noise"] = noise_to_json(row.noise);
  return json;
}

/// Three digits, in at most seven characters.
std::string millions(double ops) {
  const double value = ops / 1e6;
  return value >= 999.5               ? fmt::format("{:.0f}", value)
         : value < 0.001 && value > 0 ? fmt::format("{:.1e}", value)
                                      : fmt::format("{:.3g}", value);
}

std::string group_to_text(std::vector<const LockRow*> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const LockRow* a, const LockRow* b) {
    const bool a_ok = a->status == RowStatus::ok;
    const bool b_ok = b->status == RowStatus::ok;
    if (a_ok != b_ok) return a_ok;
    return a_ok && a->mean_ops_s > b->mean_ops_s;
  });
  const bool in_turns = rows.front()->regime != nullptr;
  double pthread_ops_s = 0;
  for (const LockRow* row : rows) {
    if (row->lock == "pthread_mutex") pthread_ops_s = row->mean_ops_s;
  }
  std::string text =
      fmt::format(" {:<14}{:>7}{:>16}{:>8}{:>8}{:>8}{:>9}{:>9}\n", "lock", "M/s",
                  in_turns ? "CPU" : "95 % interval", "p50", "p99", "p99.9", "fairness", "as fast");
  for (const LockRow* row : rows) {
    if (row->status != RowStatus::ok) {
      text += fmt::format(" {:<14} {}: {}\n", row->lock, row_status_name(row->status), row->reason);
      continue;
    }
    const LatencyDistribution& l = row->latency_ns;
    text +=
        fmt::format("{}{:<14}{:>7}{:>16}{:>8}{:>8}{:>8}{:>9}{:>9}\n", row->noise.noisy ? "!" : " ",
                    row->lock, millions(row->mean_ops_s),
                    in_turns ? format_ns(row->cpu_ns)
                             : millions(row->mean_ci95.lo) + " - " + millions(row->mean_ci95.hi),
                    ns_or_dash(l.median), ns_or_dash(l.p99), ns_or_dash(l.p999),
                    std::isfinite(row->fairness) ? fmt::format("{:.3g}", row->fairness) : "starved",
                    pthread_ops_s > 0 ? format_times(row->mean_ops_s / pthread_ops_s) : "");
  }
  return text;
}

std::string title_of(const LockRow& row) {
  return fmt::format("{}, {}", counted(row.threads, "threads"), pattern_name(row.pattern));
}

BesideAuto beside_auto(const std::vector<const LockRow*>& group) {
  const Conclusion<LockRow> c = conclude(group);
  return {.where = title_of(*group.front()),
          .automatic = c.automatic != nullptr ? millions(c.automatic->mean_ops_s) + " M/s" : "",
          .own = c.best_own != nullptr ? c.best_own->lock : "",
          .to_own = c.to_own(),
          .peer = c.best_peer != nullptr ? c.best_peer->lock : "",
          .to_peer = c.to_peer()};
}

}  // namespace

nlohmann::ordered_json to_json(const LockRunResults& results) {
  const LockRunOptions& o = results.options;
  Json json;
  json["benchmark"] = "lock";
  json["machine"] = machine_to_json(results.host, results.cpus);
  json["build"] = build_to_json(results.host);
  json["array"] = o.array;
  json["stride"] = o.stride;
  json["readers_percent"] = o.readers;
  json["map_by"] = o.map_by;
  json["seed"] = o.seed;
  json["operations"] = o.operations ? Json(*o.operations) : Json();
  json["rounds"] = o.rounds;
  json["seconds"] = o.seconds.value_or(0);
  json["regimes"] = o.regimes;
  json["turn_ms"] = o.turn_ms;
  json["elapsed_s"] = rounded(results.elapsed_s, 0.01);
  json["stopped"] = results.stopped;
  json["verdict"] = verdict(results.noise);
  json["noise"] = noise_to_json(results.noise);
  json["left_out"] = left_out_to_json(results.left_out);
  json["results"] = Json::array();
  for (const LockRow& row : results.rows) json["results"].push_back(row_to_json(row));
  json["conclusions"] = Json::array();
  for (const std::vector<const LockRow*>& group : groups_of(results.rows)) {
    const LockRow& first = *group.front();
    if (first.regime == nullptr) continue;
    Json conclusion{{"regime", first.regime->name},
                    {"pattern", pattern_name(first.pattern)},
                    {"threads", first.threads}};
    conclusion.update(beside_auto_to_json(beside_auto(group)));
    json["conclusions"].push_back(std::move(conclusion));
  }
  return json;
}

std::string to_csv(const LockRunResults& results) {
  const auto split = [](Json& figures, const std::string& name) {  // one column each
    const Json interval = figures[name];
    figures.erase(name);
    figures[name + "_lo"] = interval.is_null() ? Json() : interval.at(0);
    figures[name + "_hi"] = interval.is_null() ? Json() : interval.at(1);
  };
  std::string names;
  std::string lines;
  for (const LockRow& row : results.rows) {
    Json json = row_to_json(row);
    json["latency_ns"].erase("histogram");
    json.erase("rounds_ops_s");
    // Rows without figures have the same columns.
    for (const char* name : {"throughput_ops_s", "to_pthread_mutex", "to_best"}) {
      Json& figures = json[name];
      if (figures.is_null()) figures = {{"ratio", nullptr}, {"ci95", nullptr}};
      split(figures, "ci95");
      if (std::string_view(name) == "throughput_ops_s") split(figures, "mean_ci95");
    }
    const Json flat = json.flatten();
    std::string line;
    std::string head;
    for (const auto& item : flat.items()) {
      std::string name = item.key().substr(1);
      std::replace(name.begin(), name.end(), '/', '_');
      head += (head.empty() ? "" : ",") + name;
      line += (line.empty() ? "" : ",") + csv_field(item.value());
    }
    names = head;
    lines += line + "\n";
  }
  return names + "\n" + lines;
}

std::string to_text(const LockRunResults& results) {
  std::string text =
      fmt::format("{}, {}; array of {}{}\n{}{}\n", results.host.model,
                  counted(results.cpus, "CPUs"), counted(results.options.array, "words"),
                  results.options.readers > 0
                      ? fmt::format("; {} % of the sections only read", results.options.readers)
                      : "",
                  results.noise.noisy ? "noisy: " + results.noise.why : std::string("quiet"),
                  results.options.regimes.empty() ? "" : ", beside what the regimes add");
  std::vector<BesideAuto> settings;
  const std::vector<std::vector<const LockRow*>> groups = groups_of(results.rows);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const LockRow& first = *groups[i].front();
    text += fmt::format("\n{}{}\n",
                        first.regime != nullptr ? fmt::format("{}: ", first.regime->name) : "",
                        title_of(first));
    text += group_to_text(groups[i]);
    if (first.regime == nullptr) continue;
    settings.push_back(beside_auto(groups[i]));
    if (i + 1 < groups.size() && groups[i + 1].front()->regime == first.regime) continue;
    text += beside_auto_to_text(first.regime->name,
                                {.figure = "sections a second",
                                 .does = "does",
                                 .own = "the sections of the best other lock of ours",
                                 .peer = "those of the best peer"},
                                settings);
    settings.clear();
  }
  text +=
      "\nM/s: all sections over all of the time. as fast: so many times as many as\n"
      "pthread_mutex.";
  text += results.options.regimes.empty() ? "\n" : " CPU: of the lock's process, of a section.\n";
  if (std::any_of(results.rows.begin(), results.rows.end(),
                  [](const LockRow& row) { return row.noise.noisy; })) {
    text += "! was disturbed meanwhile: the JSON object says how.\n";
  }
  return text + left_out_to_text(results.left_out);
}

}  // namespace muster::bench
