// SPDX-License-Identifier: BSD-3-Clause
#include "bench/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace muster::bench {

std::string_view row_status_name(RowStatus status) {
  switch (status) {
    case RowStatus::ok:
      return "ok";
    case RowStatus::did_not_finish:
      return "did not finish";
    case RowStatus::declined:
      return "declined";
    case RowStatus::failed:
      return "failed";
  }
  return "";
}

Json rounded(double value, double unit) {
  if (!std::isfinite(value)) return nullptr;
  // By division, so that 0.07 does not become 0.07000000000000001.
  return unit < 1 ? std::round(value / unit) / std::round(1 / unit)
                  : std::round(value / unit) * unit;
}

Json machine_to_json(const Host& host, unsigned cpus) {
  return {{"model", host.model},
          {"architecture", host.architecture},
          {"cpus", cpus},
          {"kernel", host.kernel}};
}

Json build_to_json(const Host& host) {
  return {{"commit", host.commit.empty() ? Json(nullptr) : Json(host.commit)},
          {"compiler", host.compiler}};
}

const char* verdict(const Noise& noise) { return noise.noisy ? "noisy" : "quiet"; }

Json noise_to_json(const Noise& noise) {
  const auto share = [&](double value) {
    return noise.shares_known ? rounded(value, 1e-4) : Json(nullptr);
  };
  return {{"verdict", verdict(noise)},
          {"why", noise.why},
          {"involuntary_switches_per_s", rounded(noise.involuntary_per_s, 0.5)},
          {"steal_share", share(noise.steal_share)},
          {"others_share", share(noise.others_share)}};
}

Json ratio_to_json(const PairedRatio& ratio) {
  if (ratio.rounds == 0) return nullptr;
  return {{"ratio", rounded(ratio.ratio, 1e-4)},
          {"ci95", Json::array({rounded(ratio.ci95.lo, 1e-4), rounded(ratio.ci95.hi, 1e-4)})}};
}

Json left_out_to_json(const std::vector<LeftOut>& items) {
  Json json = Json::array();
  for (const LeftOut& item : items) {
    json.push_back({{"implementation", item.name}, {"reason", item.why}});
  }
  return json;
}

std::string left_out_to_text(const std::vector<LeftOut>& items) {
  std::map<std::string, std::string> by_reason;
  for (const LeftOut& item : items) {
    std::string& names = by_reason[item.why];
    names += (names.empty() ? "" : ", ") + item.name;
  }
  std::string text;
  for (const auto& [why, names] : by_reason) text += fmt::format("left out: {}: {}\n", names, why);
  return text;
}

std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string format_times(double ratio) {
  if (!(ratio > 0)) return "-";
  if (ratio < 0.095) return "1/" + format_times(1 / ratio);
  if (ratio < 1.095) return fmt::format("{:.2f}", ratio);
  if (ratio < 9.95) return fmt::format("{:.1f}", ratio);
  const double unit = std::pow(10, std::floor(std::log10(ratio)) - 1);
  return fmt::format("{:.0f}", std::round(ratio / unit) * unit);
}

std::string ns_or_dash(double value) { return std::isnan(value) ? "-" : format_ns(value); }

std::string beside_auto_to_text(std::string_view regime, const BesideWords& words,
                                const std::vector<BesideAuto>& settings) {
  std::string text =
      fmt::format("\n{}: {}, and as a multiple of {}\n", regime, words.figure, "the best other's");
  text += fmt::format(" {:<21}{:>10} {:<23} {}\n", "", "auto", "of ours", "of the peers");
  const auto beside = [](double ratio, const std::string& name) {
    return ratio > 0 ? fmt::format("{} ({})", format_times(ratio), name) : "-";
  };
  double own = 0;
  double peer = 0;
  unsigned both = 0;
  for (const BesideAuto& s : settings) {
    text +=
        fmt::format(" {:<21}{:>10} {:<23} {}\n", s.where, s.automatic.empty() ? "-" : s.automatic,
                    beside(s.to_own, s.own), beside(s.to_peer, s.peer));
    if (!(s.to_own > 0 && s.to_peer > 0)) continue;
    own += std::log(s.to_own);
    peer += std::log(s.to_peer);
    ++both;
  }
  if (both == 0) return text;
  return text +
         fmt::format("In {}, auto {} {} times {},\nand {} times {} (geometric means of {}).\n",
                     regime, words.does, format_times(std::exp(own / both)), words.own,
                     format_times(std::exp(peer / both)), words.peer, both);
}

Json beside_auto_to_json(const BesideAuto& s) {
  const auto ratio = [](double value) { return value > 0 ? rounded(value, 1e-4) : Json(); };
  const auto name = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"best_own", name(s.own)},
          {"auto_to_best_own", ratio(s.to_own)},
          {"best_peer", name(s.peer)},
          {"auto_to_best_peer", ratio(s.to_peer)}};
}

std::string format_ns(double value) {
  const char* unit = "ns";
  for (const char* larger : {"us", "ms", "s"}) {
    if (value < 999.5) break;
    value /= 1000;
    unit = larger;
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, unit);
}

}  // namespace muster::bench
