// SPDX-License-Identifier: BSD-3-Clause
#include "bench/html_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/again.hpp"
#include "bench/html.hpp"
#include "bench/html_waits.hpp"
#include "bench/report.hpp"
#include "bench/summary.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"
#include "topology/picture.hpp"

namespace muster::bench {
namespace {

std::string picture(const ReportSource& source, const std::string& name, const std::string& about) {
  const auto found = source.pictures.find(name);
  if (found != source.pictures.end()) return image(found->second, about);
  return fmt::format(
      "<p class=faint>No {}.svg: the command draws it where python3-matplotlib is installed and "
      "there "
      "is something to draw.</p>\n",
      name);
}

const Json* result(const ReportSource& source, const std::string& name) {
  const auto found = source.results.find(name);
  return found == source.results.end() ? nullptr : &found->second;
}

std::string ns_cell(const Json& object, const char* name) {
  const Json& value = object.at(name);
  return value.is_null() ? "-" : format_ns(value.get<double>());
}

// ---- what is told ----

std::string origins(const ReportSource& source) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, json] : source.results) {
    const Json machine = json.value("machine", Json());
    const Json build = json.value("build", Json());
    const Json noise = json.value("noise", Json());
    std::string where = machine.is_object() ? cell(machine, "model") : cell(json, "machine");
    if (where.empty()) where = cell(json, "from");
    if (machine.is_object())
      where +=
          fmt::format(", {}, {}", counted(cell(machine, "cpus"), "CPUs"), cell(machine, "kernel"));
    std::string quiet = noise.is_object() ? cell(noise, "verdict") : "";
    if (noise.is_object() && !cell(noise, "why").empty()) quiet += ": " + cell(noise, "why");
    if (where.empty() && !build.is_object()) continue;  // doctor's
    rows.push_back({name + ".json", where, build.is_object() ? cell(build, "commit") : "", quiet});
  }
  return "<h2 id=machine>The machine, and when it was quiet</h2>\n" +
         table({"file", "machine", "commit", "noise"}, rows);
}

std::string lead(const ReportSource& source) {
  ResultSummary summary;
  for (const char* const name : {"barrier", "lock", "mpi", "sim", "sim-lock"}) {
    if (const Json* const json = result(source, name))
      add_results(summary, *json, source.folder + "/" + name + ".json");
  }
  if (summary.findings.empty()) return "";
  std::string text;
  for (const std::string& sentence : sentences(summary))
    text += "<p class=lead>" + escaped(sentence) + "</p>\n";
  return text + "<pre>" + escaped(findings_to_text(summary)) + "</pre>\n";
}

std::string doctor(const Json& json) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& finding : json.at("findings")) {
    const std::string remedy = cell(finding, "remedy");
    rows.push_back({cell(finding, "check"), cell(finding, "verdict"),
                    cell(finding, "found") + (remedy.empty() ? "" : "<br>\u2192 " + remedy)});
  }
  return "<h2 id=doctor>What costs here, and what helps</h2>\n" +
         table({"check", "verdict", "found"}, rows);
}

std::string group_sizes(const Json& level) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  std::size_t most = 0;
  for (const Json& group : level.at("groups")) {
    least = std::min(least, group.size());
    most = std::max(most, group.size());
  }
  return least == most ? fmt::format("{} of {}", level.at("groups").size(), most)
                       : fmt::format("{} of {}-{}", level.at("groups").size(), least, most);
}

std::string distances(const ReportSource& source, const Json& json) {
  const auto lines = [](const Json& levels, const char* first, const char* last) {
    std::vector<std::vector<std::string>> rows;
    for (std::size_t n = 0; n < levels.size(); ++n) {
      const Json& level = levels[n];
      std::string name =
          level.contains("name") ? cell(level, "name") : fmt::format("level {}", n + 1);
      std::string alike = level.contains("hwloc") ? cell(level, "hwloc") : "";
      if (!alike.empty() && level.at("agreement").get<double>() < 1)
        alike += fmt::format(", {:.0f} %", 100 * level.at("agreement").get<double>());
      if (n + 1 == levels.size()) name = "all";
      rows.push_back({name, group_sizes(level), cell(level, "pairs"), ns_cell(level, "median_ns"),
                      ns_cell(level, "p10_ns"), ns_cell(level, "p90_ns"), alike});
    }
    return table({first, "groups", "#pairs", "#median", "#10 %", "#90 %", last}, rows);
  };
  std::string text = "<h2 id=distances>How far each two CPUs are apart</h2>\n" +
                     picture(source, "measure", "heat map of latencies between CPUs") +
                     lines(json.at("levels"), "in the times", "as hwloc's");
  if (json.at("hwloc").size() > 1) text += lines(json.at("hwloc"), "by hwloc", "");
  std::string caches;
  for (const Json& cache : json.at("caches")) {
    caches +=
        fmt::format("{}{} x {} {} KiB", caches.empty() ? "Caches: " : ", ", cell(cache, "count"),
                    cell(cache, "level"), cache.at("bytes").get<std::uint64_t>() >> 10);
  }
  if (!caches.empty()) text += "<p>" + caches + ".</p>\n";
  const Json& nodes = json.at("numa").at("nodes");
  if (nodes.size() < 2) return text;
  std::vector<std::string> header{"NUMA distance"};
  std::vector<std::vector<std::string>> rows;
  for (std::size_t a = 0; a < nodes.size(); ++a) {
    header.push_back("#" + nodes[a].dump());
    rows.push_back({nodes[a].dump()});
    for (std::size_t b = 0; b < nodes.size(); ++b)
      rows.back().push_back(json.at("numa").at("distances").at(a * nodes.size() + b).dump());
  }
  return text + table(header, rows);
}

/// Barriers that were measured and predicted in the same setting.
std::string beside(const ReportSource& source) {
  const Json* const validated = result(source, "validate");
  const Json* const predicted = result(source, "sim");
  const Json* const measured = result(source, "barrier");
  std::string text = "<h2 id=predicted>Predicted beside measured</h2>\n";
  if (validated != nullptr)
    text += picture(source, "validate", "predicted intervals and measured latencies");
  if (predicted == nullptr) return validated != nullptr ? text : "";
  std::vector<std::vector<std::string>> rows;
  std::set<std::string> counts;
  for (const Json& row : measured != nullptr ? measured->at("results") : Json::array()) {
    if (row.at("implementation") != "muster" || row.at("status") != "ok") continue;
    counts.insert(row.at("participants").dump());
    for (const Json& other : predicted->at("results")) {
      if (other.at("algorithm") != row.at("algorithm") ||
          other.at("ranks") != row.at("participants") || other.at("map_by") != row.at("map_by"))
        continue;
      const double mean = row.at("latency_ns").at("mean").get<double>();
      const double model = 1000 * other.at("latency_us").get<double>();
      rows.push_back(
          {cell(row, "algorithm"), cell(row, "participants"), cell(row, "mode"), format_ns(mean),
           format_ns(model),
           fmt::format("{} - {}", format_ns(1000 * other.at("latency_us_low").get<double>()),
                       format_ns(1000 * other.at("latency_us_high").get<double>())),
           fmt::format("{:+.0f} %", 100 * (model / mean - 1))});
    }
  }
  if (!rows.empty()) {
    return text +
           fmt::format("<p>Predicted for {}, measured on {}.</p>\n", cell(*predicted, "machine"),
                       cell(measured->at("machine"), "model")) +
           table({"barrier", "#ranks", "mode", "#measured", "#predicted", "#80 % in", "#off by"},
                 rows);
  }
  if (measured == nullptr) return validated != nullptr ? text : "";
  return text +
         fmt::format(
             "<p>No setting is in both sim.json and barrier.json. With a description of this "
             "machine: <code>muster sim barrier --machine this.machine --ranks {} --output "
             "{}</code></p>\n",
             fmt::join(counts, ","), escaped(source.folder));
}

// ---- how to do it again ----

std::string again(const ReportSource& source) {
  std::set<std::string> commits;
  std::string commands;
  for (const std::string& name : reported_results()) {
    const Json* const json = result(source, name);
    if (json == nullptr) continue;
    const Json build = json->value("build", Json());
    if (build.is_object() && !cell(build, "commit").empty()) commits.insert(cell(build, "commit"));
    commands += command_of(name, *json) + "\n";
  }
  return fmt::format(
      "<h2 id=again>How to do it again</h2>\n{}<pre class=again>{}muster report results\n</pre>\n",
      commits.empty() ? "" : fmt::format("<p>Built of commit {}.</p>\n", fmt::join(commits, ", ")),
      escaped(commands));
}

std::string page(const ReportSource& source) {
  const auto section = [&](const char* name, const char* title, const char* about) {
    if (result(source, name) == nullptr) return std::string();
    return fmt::format("<h2 id={}>{}</h2>\n", name, title) + picture(source, name, about);
  };
  std::string body = lead(source) + origins(source);
  if (const Json* const json = result(source, "doctor")) body += doctor(*json);
  if (const Json* const json = result(source, "measure")) body += distances(source, *json);
  std::string groups;
  for (const auto& [name, svg] : source.pictures) {
    const auto& known = reported_results();
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    groups += "<h3>" + escaped(name) + "</h3>\n" + image(svg, name);
  }
  if (!groups.empty()) body += "<h2 id=groups>Groups, and other pictures</h2>\n" + groups;
  body += section("barrier", "Barriers", "latency of barriers by participants");
  body += section("mpi", "MPI_Barrier", "MPI_Barrier under each MPI, with and without Muster");
  if (!source.waits.empty()) body += html_of_waits(source.waits);
  body += section("lock", "Critical sections", "throughput and latency of locks by threads");
  body += section("sim", "Barriers, predicted", "predicted latency of barriers");
  body += section("sim-lock", "Critical sections, predicted", "predicted throughput of locks");
  body += beside(source) + again(source);
  return html_page("Muster: " + source.folder, body);
}

}  // namespace

const std::vector<std::string>& reported_results() {
  static const std::vector<std::string> names{"measure", "doctor", "barrier",  "lock",
                                              "mpi",     "sim",    "sim-lock", "validate"};
  return names;
}

std::string html_report(const ReportSource& source) {
  try {
    return page(source);
  } catch (const nlohmann::json::exception&) {
    throw Error(Status::invalid,
                "a file in " + source.folder +
                    " is not what this version of its command writes: something is missing");
  }
}

}  // namespace muster::bench
