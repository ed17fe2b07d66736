// SPDX-License-Identifier: BSD-3-Clause
#include "sim/measurements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include "topology/text_file.hpp"

namespace muster::sim {
namespace {

std::vector<std::string> split(std::string line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) {
    const std::size_t begin = field.find_first_not_of(" \t\"");
    const std::size_t end = field.find_last_not_of(" \t\"");
    fields.push_back(begin == std::string::npos ? "" : field.substr(begin, end - begin + 1));
  }
  return fields;
}

template <class Number>
bool parse(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::vector<Measurement> parse_measurements(const std::string& text, const std::string& source) {
  std::vector<Measurement> all;
  std::map<std::string, std::size_t> column;
  int number = 0;
  const auto fail = [&](const std::string& what) {
    throw Error(Status::invalid, fmt::format("{}:{}: {}", source, number, what));
  };
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos || line.front() == '#') continue;
    const std::vector<std::string> fields = split(line);
    if (column.empty()) {
      for (std::size_t n = 0; n < fields.size(); ++n) column[fields[n]] = n;
      for (const char* needed : {"algorithm", "ranks", "latency_us"}) {
        if (column.count(needed) == 0) fail(fmt::format("the header has no column {}", needed));
      }
      continue;
    }
    const auto field = [&](const std::string& name) {
      const std::size_t at = column.at(name);
      if (at >= fields.size()) fail(fmt::format("{} is missing", name));
      return fields[at];
    };
    Measurement m{};
    m.query.algorithm = field("algorithm");
    if (m.query.algorithm.starts_with("shm-")) m.query.algorithm.erase(0, 4);
    if (!parse(field("ranks"), m.query.ranks) || m.query.ranks < 1) {
      fail(fmt::format("ranks \"{}\" is no count", field("ranks")));
    }
    if (!parse(field("latency_us"), m.latency_us) || !(m.latency_us > 0) ||
        std::isinf(m.latency_us)) {
      fail(fmt::format("latency_us \"{}\" is no positive number", field("latency_us")));
    }
    try {
      if (column.count("map_by") != 0) m.query.map_by = parse_mapping(field("map_by"));
      static_cast<void>(parse_modelled(m.query.algorithm));
    } catch (const Error& error) {
      fail(error.what());
    }
    all.push_back(m);
  }
  if (all.empty()) fail("no measurements");
  return all;
}

std::vector<Measurement> load_measurements(const std::string& file) {
  return parse_measurements(read_text_file(file, "measurements"), file);
}

std::vector<Measurement> load_measurements(const std::vector<std::string>& files) {
  std::vector<Measurement> all;
  for (const std::string& file : files) {
    const std::vector<Measurement> more = load_measurements(file);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::vector<double> log_ratios(const std::vector<double>& modelled,
                               const std::vector<Measurement>& measured) {
  std::vector<double> ratios;
  for (std::size_t n = 0; n < measured.size(); ++n) {
    ratios.push_back(std::log(modelled[n] / measured[n].latency_us));
  }
  return ratios;
}

double rms_of(const std::vector<double>& modelled, const std::vector<Measurement>& measured) {
  double sum = 0;
  for (const double ratio : log_ratios(modelled, measured)) sum += ratio * ratio;
  return std::sqrt(sum / static_cast<double>(measured.size()));
}

std::vector<double> relative_errors(const std::vector<double>& modelled,
                                    const std::vector<Measurement>& measured) {
  std::vector<double> errors;
  for (std::size_t n = 0; n < measured.size(); ++n) {
    errors.push_back(std::abs(modelled[n] / measured[n].latency_us - 1));
  }
  return errors;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace muster::sim
