// SPDX-License-Identifier: BSD-3-Clause
#include "bench/html_waits.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/html.hpp"
#include "bench/report.hpp"

namespace muster::bench {

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
        last = fmt::format("its rank {}, {:.0f} %", rank, 100 * times / barriers);
      }
      rows.push_back({cell(group, "called"), cell(group, "ranks"), cell(group, "barriers"),
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
