// SPDX-License-Identifier: BSD-3-Clause
#include "bench/html_mpi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "bench/html.hpp"
#include "bench/report.hpp"
#include "bench/stats.hpp"

namespace muster::bench {

std::string html_of_mpi(const Json& json) {
  struct Bar {
    std::string name;
    double us;
    bool ours;
  };
  std::vector<std::pair<std::string, std::vector<Bar>>> groups;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const Json& row : json.at("results")) {
    std::vector<double> rounds;
    const bool turns = row.contains("round_means_ns");
    for (const Json& value : row.at(turns ? "round_means_ns" : "latency_us")) {
      if (!value.is_null()) rounds.push_back(value.get<double>() / (turns ? 1000 : 1));
    }
    if (rounds.empty()) continue;
    std::string where = fmt::format("{}, {} ranks", cell(row, "mpi"), cell(row, "ranks"));
    if (!cell(row, "regime").empty()) where += ", " + cell(row, "regime");
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.first == where; });
    auto& bars = found != groups.end() ? found->second : groups.emplace_back(where, 0).second;
    bars.push_back({cell(row, "barrier"), median(rounds), row.at("ours").get<bool>()});
    least = std::min(least, bars.back().us);
    most = std::max(most, bars.back().us);
  }
  std::string text =
      "<h2 id=mpi>MPI_Barrier</h2>\n<p class=faint>Bars are logarithmic: each "
      "tenfold time is as much longer. Bold and blue: Muster's.</p>\n";
  text += "<div class=wide><table class=charts>";
  for (auto& [where, bars] : groups) {
    std::sort(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) { return a.us < b.us; });
    text += "<tr><th colspan=3>" + where + "</th></tr>\n";
    for (const Bar& bar : bars) {
      text += fmt::format(
          "<tr{}><td>{}</td><td class=n>{}</td><td class=chart><span class=bar "
          "style=\"width:{:.1f}%\"></span></td></tr>\n",
          bar.ours ? " class=ours" : "", bar.name, format_ns(1000 * bar.us),
          100 * std::log(10 * bar.us / least) / std::log(10 * most / least));
    }
  }
  return text + "</table></div>\n";
}

std::string html_of_waits(const std::vector<Json>& jobs) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& job : jobs) {
    for (const Json& group : job.at("communicators")) {
      const auto spent_s = group.at("spent_s").get<double>();
      const auto barriers = group.at("barriers").get<double>();
      const auto part = [&](const char* name) {
        if (!group.contains(name)) return std::string("not known");
        const auto seconds = group.at(name).get<double>();
        return fmt::format("{} ({:.0f} %)", format_ns(1e9 * seconds),
                           spent_s > 0 ? 100 * seconds / spent_s : 0);
      };
      std::string last;
      double most = 0;
      const Json by_rank = group.value("by_rank", Json::array());
      for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
        const auto times = by_rank[rank].at("came_last").get<double>();
        if (times <= most) continue;
        most = times;
        last = fmt::format("rank {}, {:.0f} %", rank, 100 * times / barriers);
      }
      rows.push_back({cell(group, "name"), cell(group, "ranks"), cell(group, "barriers"),
                      cell(group, "served_by"), format_ns(1e9 * spent_s),
                      part("waiting_for_the_last_s"), part("in_the_barrier_s"), last});
    }
  }
  return "<h2 id=waits>Whose fault a wait is</h2>\n<p class=faint>Of a rank, in the mean: its time "
         "in barriers, split into waiting for who comes last and the barrier itself.</p>\n" +
         table({"communicator", "#ranks", "#barriers", "served by", "#in barriers",
                "#waiting for the last", "#the barrier itself", "last most often"},
               rows);
}

}  // namespace muster::bench
