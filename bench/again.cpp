// SPDX-License-Identifier: BSD-3-Clause
#include "bench/again.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/report.hpp"

namespace muster::bench {
namespace {

/// Each value of a field once, as they come, with commas between.
std::string listed(const Json& values) {
  std::vector<std::string> words;
  for (const Json& value : values) {
    std::string word = value.is_string() ? value.get<std::string>() : value.dump();
    if (std::find(words.begin(), words.end(), word) == words.end())
      words.push_back(std::move(word));
  }
  return fmt::format("{}", fmt::join(words, ","));
}

std::string listed(const Json& rows, const char* field) {
  Json values = Json::array();
  for (const Json& row : rows) values.push_back(row.at(field));
  return listed(values);
}

/// " --name value", if it is told, as a shell takes it.
std::string option(const char* name, const std::string& value) {
  if (value.empty() || value == "null" || value == "0") return "";
  const bool plain = value.find_first_of(" '\"()$`\\;&|<>*?#") == std::string::npos;
  const char* const quote = plain ? "" : "'";
  return fmt::format(" {} {}{}{}", name, quote, value, quote);
}

std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

/// What a prediction's file tells of how it was made, if it does.
std::string settings_of(const Json& json, const std::vector<std::string>& names) {
  const Json set = json.value("settings", Json::object());
  const std::string named = text_of(set, "machine");
  std::string text = option("--machine", named.empty() ? text_of(json, "machine") : named);
  for (const std::string& name : names) {
    const auto found = set.find(name);
    if (found == set.end()) continue;
    std::string of = "--" + name;
    std::replace(of.begin(), of.end(), '_', '-');
    text += found->is_array() ? option(of.c_str(), listed(*found))
                              : fmt::format(" {} {}", of, found->dump());
  }
  return text;
}

}  // namespace

std::string command_of(const std::string& name, const Json& json) {
  if (name == "doctor") return "muster doctor --json > results/doctor.json";
  const std::string output = " --output results";
  const Json rows = json.value("results", Json::array());
  if (name == "measure") {
    const std::string from = text_of(json, "from");
    return "muster measure" +
           (from.empty() ? option("--cpus", listed(json.at("cpus"))) +
                               option("--rounds", json.at("rounds").dump())
                         : option("--from", from)) +
           output;
  }
  if (name == "barrier") {
    const Json& set = json.at("settings");
    return "muster bench barrier" + option("--algorithms", listed(set.at("algorithms"))) +
           option("--participants", listed(set.at("participants"))) +
           option("--mode", listed(set.at("modes"))) + option("--map-by", text_of(set, "map_by")) +
           option("--wait", listed(set.at("waits"))) +
           option("--regime", listed(set.at("regimes"))) +
           option("--peers", listed(set.at("peers"))) +
           option("--seconds", set.at("seconds").dump()) +
           option("--rounds", set.at("rounds").dump()) + output;
  }
  if (name == "lock") {
    Json locks = Json::array();
    for (const Json& row : rows) {
      if (row.at("kind") != "reference") locks.push_back(row.at("lock"));
    }
    return "muster bench lock" + option("--locks", listed(locks)) +
           option("--threads", listed(rows, "threads")) +
           option("--pattern", listed(rows, "pattern")) +
           option("--array", json.at("array").dump()) +
           option("--map-by", text_of(json, "map_by")) +
           option("--regime", listed(json.at("regimes"))) +
           option("--seconds", json.at("seconds").dump()) +
           option("--rounds", json.at("rounds").dump()) + output;
  }
  if (name == "mpi") {
    const Json& set = json.at("settings");
    const std::string rounds = option("--rounds", set.at("rounds").dump());
    if (set.contains("regimes")) {
      return "muster bench mpi" + option("--ranks", listed(set.at("participants"))) +
             option("--regime", listed(set.at("regimes"))) +
             option("--turn", set.at("turn_ms").dump()) + rounds + output;
    }
    return "muster bench mpi" + option("--ranks", listed(set.at("ranks"))) + rounds +
           option("--seconds", set.at("seconds").dump()) +
           option("--hopeless", set.at("hopeless").dump()) +
           option("--only", text_of(set, "only")) +
           (set.at("own_algorithms") == true ? "" : " --defaults") +
           (set.value("report", false) ? " --report" : "") + output;
  }
  if (name == "sim") {
    return "muster sim barrier" + settings_of(json, {"set", "without", "members", "seeds"}) +
           option("--algorithms", listed(rows, "algorithm")) +
           option("--ranks", listed(rows, "ranks")) + option("--map-by", listed(rows, "map_by")) +
           output;
  }
  if (name == "sim-lock") {
    return "muster sim lock" + settings_of(json, {"set", "without", "seed", "warm_up"}) +
           option("--locks", listed(rows, "lock")) + option("--threads", listed(rows, "threads")) +
           option("--pattern", listed(rows, "pattern")) +
           option("--affinity", listed(rows, "affinity")) +
           option("--window", json.at("window").dump()) + output;
  }
  return "muster sim validate" + settings_of(json, {"set", "without", "members"}) +
         " --measured MEASURED.csv" + output;
}

}  // namespace muster::bench
