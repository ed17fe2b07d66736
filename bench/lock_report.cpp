// SPDX-License-Identifier: BSD-3-Clause
#include "bench/lock_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/report.hpp"

namespace muster::bench {
namespace {

Json row_to_json(const LockRow& row) {
  const bool ok = row.status == RowStatus::ok;
  const auto if_ok = [&](double value, double unit) { return ok ? rounded(value, unit) : Json(); };
  const Summary& t = row.throughput_ops_s;
  const Summary& l = row.latency_ns;
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
  json["latency_ns"] = {{"median", if_ok(l.median, 1)},
                        {"min", if_ok(l.min, 1)},
                        {"p99", if_ok(l.p99, 1)},
                        {"samples", l.samples}};
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

std::string ops(double value) { return fmt::format("{:.3g} M/s", value / 1e6); }

std::string group_to_text(std::vector<const LockRow*> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const LockRow* a, const LockRow* b) {
    const bool a_ok = a->status == RowStatus::ok;
    const bool b_ok = b->status == RowStatus::ok;
    if (a_ok != b_ok) return a_ok;
    return a_ok && a->throughput_ops_s.median > b->throughput_ops_s.median;
  });
  std::string text =
      fmt::format("{:<16} {:>10}  {:^23} {:>9} {:>9} {:>9} {:>8} {:>10}\n", "lock", "median",
                  "95 % interval", "latency", "p99", "fairness", "misses", "to pthread");
  for (const LockRow* row : rows) {
    if (row->status != RowStatus::ok) {
      text += fmt::format("{:<16} {}: {}\n", row->lock, row_status_name(row->status), row->reason);
      continue;
    }
    const Summary& t = row->throughput_ops_s;
    text +=
        fmt::format("{:<16} {:>10}  {:>10} - {:<10} {:>9} {:>9} {:>9} {:>8} {:>10}{}\n", row->lock,
                    ops(t.median), ops(t.ci95.lo), ops(t.ci95.hi),
                    format_ns(row->latency_ns.median), format_ns(row->latency_ns.p99),
                    std::isfinite(row->fairness) ? fmt::format("{:.3g}", row->fairness) : "starved",
                    std::isfinite(row->cache_misses_percent)
                        ? fmt::format("{:.2f} %", row->cache_misses_percent)
                        : "n/a",
                    row->to_pthread.rounds > 0 ? fmt::format("{:.2f}x", row->to_pthread.ratio) : "",
                    row->noise.noisy ? " noisy" : "");
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
      fmt::format("{}, {} CPUs; array of {} words; {}\n", results.host.model, results.cpus,
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
    text += fmt::format("\n{} threads, {}\n", first.threads, pattern_name(first.pattern));
    text += group_to_text(group);
  }
  return text + left_out_to_text(results.left_out);
}

}  // namespace muster::bench
