// SPDX-License-Identifier: BSD-3-Clause
// Machine description files: reading, writing, finding.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>

#include "machine/error.hpp"
#include "sim/machine_model.hpp"
#include "topology/text_file.hpp"

namespace muster::sim {
namespace {

constexpr double latency_ns_min = 0.1;
constexpr double latency_ns_max = 1e5;
constexpr std::string_view first_line = "muster-machine 1";
constexpr std::array<std::string_view, 5> kinds = {"measured", "published", "fitted", "derived",
                                                   "assumed"};

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = trim(text); !text.empty(); text = trim(text)) {
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

class Parser {
 public:
  Parser(const std::string& source, std::string folder)
      : source_(source), folder_(std::move(folder)) {}

  MachineModel parse(const std::string& text) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      ++line_;
      const std::string_view content = trim(std::string_view(line));
      if (content.empty() || content.front() == '#') continue;
      if (!begun_) {
        if (content != first_line) fail("the first line has to be \"{}\"", first_line);
        begun_ = true;
      } else {
        statement(content);
      }
    }
    ++line_;
    if (!begun_) fail("empty: the first line has to be \"{}\"", first_line);
    check_complete();
    return std::move(machine_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(Status::invalid, fmt::format("{}:{}: ", source_, line_) +
                                     fmt::format(format, std::forward<Args>(args)...));
  }

  void statement(std::string_view content) {
    const std::size_t bar = content.find('|');
    const std::string_view left = trim(content.substr(0, bar));
    const std::string_view why =
        bar == std::string_view::npos ? std::string_view{} : trim(content.substr(bar + 1));
    const std::vector<std::string_view> words = words_of(left);
    if (words.empty()) fail("nothing before the \"|\"");
    const std::string_view key = words[0];
    const std::string_view rest = trim(left.substr(key.size()));
    const bool repeats = key == "latency" || key == "sample" || key == "without";
    if (!repeats && !seen_.emplace(key).second) fail("\"{}\" stands here a second time", key);
    if (key == "name" || key == "about" || key == "sample") {
      if (bar != std::string_view::npos) fail("\"{}\" takes no source", key);
      if (rest.empty()) fail("\"{}\" needs a value", key);
      if (key == "name") name(rest);
      if (key == "about") machine_.about = printable(rest);  // as it is shown
      if (key == "sample") sample(words);
      return;
    }
    check_source(key, why);
    if (key == "topology") {
      topology(rest);
    } else if (key == "domain") {
      domain(rest);
    } else if (key == "rmw") {
      rmw(rest);
    } else if (key == "latency") {
      latency(words);
    } else if (key == "without") {
      without(rest);
    } else if (key == "error") {
      machine_.error = share(words);
    } else if (key == "message-error") {
      machine_.message_error = share(words);
    } else {
      parameter(words);
    }
    std::string full_key(key);
    if (key == "latency") full_key += "-" + machine_.latencies.back().name();
    if (key == "without") full_key += "-" + std::string(rest);
    machine_.provenance[full_key] = why;
  }

  void check_source(std::string_view key, std::string_view why) const {
    const std::string_view kind = trim(why.substr(0, why.find(':')));
    if (why.find(':') == std::string_view::npos ||
        std::find(kinds.begin(), kinds.end(), kind) == kinds.end() ||
        trim(why.substr(why.find(':') + 1)).empty()) {
      fail("\"{}\" needs a source: \"| KIND: TEXT\", KIND one of {}", key, fmt::join(kinds, ", "));
    }
  }

  void name(std::string_view text) {
    machine_.name = text;
    try {
      check_machine_name(machine_.name);
    } catch (const Error& error) {
      fail("{}", error.what());
    }
  }

  void topology(std::string_view spec) {
    machine_.topology = spec;
    try {
      constexpr std::string_view file = "file ";
      if (spec.starts_with(file)) {
        // Absolute: the machine may be written into another folder.
        const std::string path =
            std::filesystem::absolute(folder_ / trim(spec.substr(file.size()))).lexically_normal();
        machine_.topology = std::string(file) + path;
        machine_.shape = Topology::from_file(path);
      } else {
        machine_.shape = Topology::from_synthetic(machine_.topology);
      }
    } catch (const Error& error) {
      fail("{}", error.what());
    }
  }

  /// Empty for MACHINE.
  std::optional<LevelKind> level(std::string_view name) const {
    if (!machine_.shape) fail("\"topology\" has to come first");
    if (name == "MACHINE") return std::nullopt;
    try {
      const LevelKind kind = parse_level(name);
      if (machine_.shape->level(kind) == nullptr) {
        fail("the topology has no level {}", level_name(kind));
      }
      return kind;
    } catch (const Error& error) {
      if (error.code() == Status::invalid) throw;
      fail("{}, MACHINE", error.what());
    }
  }

  void domain(std::string_view name) {
    machine_.domain = level(name);
    domain_seen_ = true;
  }

  void rmw(std::string_view how) {
    if (how == "ownership") {
      machine_.mechanisms = machine_.mechanisms.without(Mechanism::ll_sc);
    } else if (how != "ll-sc") {
      fail("\"rmw\" is ll-sc or ownership, not \"{}\"", how);
    }
  }

  void without(std::string_view name) {
    try {
      machine_.mechanisms = machine_.mechanisms.without(parse_mechanism(name));
    } catch (const Error& error) {
      fail("{}", error.what());
    }
  }

  void latency(const std::vector<std::string_view>& words) {
    if (words.size() < 3) fail("a latency is written \"latency LEVEL NUMBER ns\"");
    if (!machine_.latencies.empty() && !machine_.latencies.back().level) {
      fail("MACHINE is the last latency: they go bottom up");
    }
    const std::optional<LevelKind> kind = level(words[1]);
    if (kind && !machine_.latencies.empty()) {
      const LevelKind below = *machine_.latencies.back().level;
      if (machine_.shape->level(*kind)->cores_per_unit_max() <
          machine_.shape->level(below)->cores_per_unit_max()) {
        fail("{} is inside of {}: latencies go bottom up", words[1], level_name(below));
      }
    }
    for (const LatencyClass& known : machine_.latencies) {
      if (known.level == kind) fail("\"latency {}\" stands here a second time", words[1]);
    }
    const double ns = number(words, 2, "ns", latency_ns_min, latency_ns_max);
    machine_.latencies.push_back({kind, ns});
    uncertainty("latency-" + machine_.latencies.back().name(), words, 4);
  }

  void parameter(const std::vector<std::string_view>& words) {
    const ParameterInfo* info = nullptr;
    try {
      info = &parameter_info(words[0]);
    } catch (const Error& error) {
      fail(
          "{}; besides: name, about, topology, domain, rmw, latency, without, error, "
          "message-error, sample",
          error.what());
    }
    const double value = number(words, 1, info->unit, info->min, info->max);
    if (const std::string fault = machine_.fault(words[0], value); !fault.empty())
      fail("{}", fault);
    machine_.parameters.*info->value = value;
    uncertainty(std::string(info->name), words, info->unit.empty() ? 2 : 3);
  }

  void uncertainty(const std::string& key, const std::vector<std::string_view>& words,
                   std::size_t at) {
    if (words.size() == at) return;
    if (words.size() != at + 3 || words[at] != "+-" || words[at + 2] != "%") {
      fail("after the value comes nothing, or \"+- NUMBER %\"");
    }
    machine_.uncertainty[key] = number(words, at + 1, "%", 0, 1000) / 100;
  }

  /// "call=900 read-occupancy=12 latency-MACHINE=180"
  void sample(const std::vector<std::string_view>& words) {
    Sample sample;
    for (std::size_t n = 1; n < words.size(); ++n) {
      const std::size_t equals = words[n].find('=');
      if (equals == std::string_view::npos) fail("\"{}\" is no KEY=NUMBER", words[n]);
      const std::string key(words[n].substr(0, equals));
      std::pair<double, double> range;
      try {
        range = machine_.range(key);
      } catch (const Error& error) {
        fail("{}", error.what());
      }
      sample.emplace_back(key,
                          parse_number(words[n].substr(equals + 1), range.first, range.second));
    }
    machine_.samples.push_back(std::move(sample));
  }

  double share(const std::vector<std::string_view>& words) const {
    if (words.size() > 3) fail("\"{}\" has a number and its unit, and no more", words[0]);
    return number(words, 1, "%", 0, 1000) / 100;
  }

  double number(const std::vector<std::string_view>& words, std::size_t at, std::string_view unit,
                double min, double max) const {
    if (words.size() <= at) fail("\"{}\" needs a number", words[0]);
    const double value = parse_number(words[at], min, max);
    if (!unit.empty() && (words.size() <= at + 1 || words[at + 1] != unit)) {
      fail("the unit of \"{}\" is {}, after a space", words[0], unit);
    }
    return value;
  }

  double parse_number(std::string_view text, double min, double max) const {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
      fail("\"{}\" is no number", text);
    }
    if (!(value >= min && value <= max)) fail("{} is not within {} to {}", text, min, max);
    return value;
  }

  void check_complete() const {
    std::vector<std::string_view> missing;
    if (machine_.name.empty()) missing.emplace_back("name");
    if (!machine_.shape) missing.emplace_back("topology");
    if (!domain_seen_) missing.emplace_back("domain");
    if (seen_.count("rmw") == 0) missing.emplace_back("rmw");
    if (machine_.latencies.empty() || machine_.latencies.back().level) {
      missing.emplace_back("latency MACHINE");
    }
    for (const ParameterInfo& info : parameter_table()) {
      if (!info.optional && seen_.count(info.name) == 0) missing.push_back(info.name);
    }
    if (!missing.empty()) fail("the file ends without: {}", fmt::join(missing, ", "));
    try {
      static_cast<void>(geometry_of(machine_, {0}));
    } catch (const Error& error) {
      fail("{}", error.what());
    }
  }

  std::string source_;
  std::filesystem::path folder_;
  int line_ = 0;
  bool begun_ = false;
  bool domain_seen_ = false;
  std::set<std::string, std::less<>> seen_;
  MachineModel machine_;
};

}  // namespace

void check_machine_name(const std::string& name) {
  const auto good = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view(".-_+").find(static_cast<char>(c)) < std::string_view::npos;
  };
  if (!name.empty() && std::all_of(name.begin(), name.end(), good)) return;
  throw Error(Status::invalid,
              "a machine's name is made of letters, digits and \".-_+\", not \"" + name + "\"");
}

MachineModel parse_machine(const std::string& text, const std::string& source,
                           const std::string& folder) {
  return Parser(source, folder).parse(text);
}

std::string format_machine(const MachineModel& machine) {
  std::string text(first_line);
  text += fmt::format("\nname {}\n", machine.name);
  if (!machine.about.empty()) text += fmt::format("about {}\n", machine.about);
  const auto line = [&](const std::string& left, const std::string& key) {
    const auto why = machine.provenance.find(key);
    text += fmt::format("{:<40} | {}\n", left,
                        why != machine.provenance.end() ? why->second : "assumed: not said");
  };
  const auto plus_minus = [&](const std::string& key) {
    const auto found = machine.uncertainty.find(key);
    return found == machine.uncertainty.end() ? std::string()
                                              : fmt::format(" +- {:.4g} %", found->second * 100);
  };
  line("topology " + machine.topology, "topology");
  line("domain " + (machine.domain ? std::string(level_name(*machine.domain)) : "MACHINE"),
       "domain");
  line(machine.mechanisms.has(Mechanism::ll_sc) ? "rmw ll-sc" : "rmw ownership", "rmw");
  for (const LatencyClass& latency : machine.latencies) {
    const std::string key = "latency-" + latency.name();
    line(fmt::format("latency {} {:.6g} ns{}", latency.name(), latency.ns, plus_minus(key)), key);
  }
  for (const ParameterInfo& info : parameter_table()) {
    const std::string key(info.name);
    if (info.optional && machine.provenance.count(key) == 0) continue;
    line(fmt::format("{} {:.6g}{}{}{}", info.name, machine.parameters.*info.value,
                     info.unit.empty() ? "" : " ", info.unit, plus_minus(key)),
         key);
  }
  for (int m = 0; m < mechanism_count; ++m) {
    const auto mechanism = static_cast<Mechanism>(m);
    if (mechanism == Mechanism::ll_sc || machine.mechanisms.has(mechanism)) continue;
    const std::string name(mechanism_name(mechanism));
    line("without " + name, "without-" + name);
  }
  if (machine.error > 0) line(fmt::format("error {:.4g} %", machine.error * 100), "error");
  if (machine.message_error > 0) {
    line(fmt::format("message-error {:.4g} %", machine.message_error * 100), "message-error");
  }
  for (const Sample& sample : machine.samples) {
    text += "sample";
    for (const auto& [key, value] : sample) text += fmt::format(" {}={:.6g}", key, value);
    text += '\n';
  }
  return text;
}

namespace {

bool is_latency(std::string_view key) { return key.starts_with("latency-"); }

/// Of a key that is_latency().
auto& latency_of(auto& machine, std::string_view key) {
  std::vector<std::string> known;
  for (auto& latency : machine.latencies) {
    known.push_back("latency-" + latency.name());
    if (key == known.back()) return latency;
  }
  throw Error(Status::unknown_name,
              fmt::format("no parameter \"{}\"; this machine's latencies are: {}", key,
                          fmt::join(known, ", ")));
}

bool is_whole(std::string_view key) { return !is_latency(key) && parameter_info(key).whole; }

}  // namespace

double MachineModel::value(std::string_view key) const {
  return is_latency(key) ? latency_of(*this, key).ns : parameters.*parameter_info(key).value;
}

std::pair<double, double> MachineModel::range(std::string_view key) const {
  if (is_latency(key)) {
    static_cast<void>(latency_of(*this, key));
    return {latency_ns_min, latency_ns_max};
  }
  const ParameterInfo& info = parameter_info(key);
  return {info.min, info.max};
}

std::string MachineModel::fault(std::string_view key, double value) const {
  const auto [least, largest] = range(key);
  if (!(value >= least && value <= largest)) {
    return fmt::format("{} is within {} to {}, not {}", key, least, largest, value);
  }
  return is_whole(key) && value != std::floor(value)
             ? fmt::format("{} is a whole number, not {}", key, value)
             : "";
}

void MachineModel::set(std::string_view key, double value, std::string why) {
  if (!why.empty()) provenance[std::string(key)] = std::move(why);
  const auto [least, largest] = range(key);
  value = std::clamp(value, least, largest);
  if (is_whole(key)) value = std::round(value);
  (is_latency(key) ? latency_of(*this, key).ns : parameters.*parameter_info(key).value) = value;
}

void MachineModel::fix(std::string_view key, double value, std::string why) {
  set(key, value, std::move(why));
  uncertainty.erase(std::string(key));
  for (Sample& sample : samples)
    std::erase_if(sample, [&](const auto& o) { return o.first == key; });
  std::erase_if(samples, [](const Sample& sample) { return sample.empty(); });
}

MachineModel load_machine(const std::string& name_or_file) {
  std::string known;
  for (const auto& [name, text] : shipped_machines()) {
    if (name == name_or_file) return parse_machine(std::string(text), std::string(name), "");
    known.append(known.empty() ? "" : ", ").append(name);
  }
  if (name_or_file.find('/') == std::string::npos && !name_or_file.ends_with(".machine")) {
    throw Error(Status::unknown_name, "no machine \"" + name_or_file + "\"; there are: " + known +
                                          "; a file is named by a path or ends in .machine");
  }
  return parse_machine(read_text_file(name_or_file, "machine file"), name_or_file,
                       std::filesystem::path(name_or_file).parent_path().string());
}

}  // namespace muster::sim
