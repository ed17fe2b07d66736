// SPDX-License-Identifier: BSD-3-Clause
#include "bench/lock_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/report.hpp"

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
  json["throughput_ops_s"] = {
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

std::string ns_or_dash(double value) { return std::isnan(value) ? "-" : format_ns(value); }

std::string group_to_text(std::vector<const LockRow*> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const LockRow* a, const LockRow* b) {
    const bool a_ok = a->status == RowStatus::ok;
    const bool b_ok = b->status == RowStatus::ok;
    if (a_ok != b_ok) return a_ok;
    return a_ok && a->throughput_ops_s.median > b->throughput_ops_s.median;
  });
  std::string text = fmt::format(" {:<14}{:>7}{:>16}{:>8}{:>8}{:>8}{:>9}{:>9}\n", "lock", "M/s",
                                 "95 % interval", "latency", "p99", "p99.9", "fairness", "as fast");
  for (const LockRow* row : rows) {
    if (row->status != RowStatus::ok) {
      text += fmt::format(" {:<14} {}: {}\n", row->lock, row_status_name(row->status), row->reason);
      continue;
    }
    const Summary& t = row->throughput_ops_s;
    const LatencyDistribution& l = row->latency_ns;
    text += fmt::format(
        "{}{:<14}{:>7}{:>16}{:>8}{:>8}{:>8}{:>9}{:>9}\n", row->noise.noisy ? "!" : " ", row->lock,
        millions(t.median), millions(t.ci95.lo) + " - " + millions(t.ci95.hi), ns_or_dash(l.median),
        ns_or_dash(l.p99), ns_or_dash(l.p999),
        std::isfinite(row->fairness) ? fmt::format("{:.3g}", row->fairness) : "starved",
        row->to_pthread.rounds > 0 ? format_times(row->to_pthread.ratio) : "");
  }
  return text;
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
  json["map_by"] = o.map_by;
  json["seed"] = o.seed;
  json["operations"] = o.operations ? Json(*o.operations) : Json();
  json["rounds"] = o.rounds;
  json["seconds"] = o.seconds;
  json["elapsed_s"] = rounded(results.elapsed_s, 0.01);
  json["verdict"] = verdict(results.noise);
  json["noise"] = noise_to_json(results.noise);
  json["left_out"] = left_out_to_json(results.left_out);
  json["results"] = Json::array();
  for (const LockRow& row : results.rows) json["results"].push_back(row_to_json(row));
  return json;
}

std::string to_csv(const LockRunResults& results) {
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
      const Json ci95 = figures["ci95"];
      figures.erase("ci95");
      figures["ci95_lo"] = ci95.is_null() ? Json() : ci95.at(0);
      figures["ci95_hi"] = ci95.is_null() ? Json() : ci95.at(1);
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
      fmt::format("{}, {} CPUs; array of {} words\n{}\n", results.host.model, results.cpus,
                  results.options.array,
                  results.noise.noisy ? "noisy: " + results.noise.why : std::string("quiet"));
  for (std::size_t i = 0; i < results.rows.size();) {
    std::vector<const LockRow*> group;
    const LockRow& first = results.rows[i];
    for (; i < results.rows.size() && results.rows[i].threads == first.threads &&
           results.rows[i].pattern == first.pattern;
         ++i) {
      group.push_back(&results.rows[i]);
    }
    text += fmt::format("\n{} thread{}, {}\n", first.threads, first.threads == 1 ? "" : "s",
                        pattern_name(first.pattern));
    text += group_to_text(group);
  }
  text += "\nas fast: so many times as many sections a second as pthread_mutex.\n";
  if (std::any_of(results.rows.begin(), results.rows.end(),
                  [](const LockRow& row) { return row.noise.noisy; })) {
    text += "! was disturbed meanwhile: the JSON object says how.\n";
  }
  return text + left_out_to_text(results.left_out);
}

}  // namespace muster::bench
