// SPDX-License-Identifier: BSD-3-Clause
#include "cli/contention.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/report.hpp"
#include "cli/output.hpp"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::size_t mutexes_told = 8;
constexpr std::size_t callers_told = 5;  ///< that held it longest
constexpr std::size_t name_columns = 40;

double number(const Json& of, const char* name) { return of.at(name).get<double>(); }

std::string share(double part, double whole) {
  return fmt::format("{:.{}f} %", whole > 0 ? 100 * part / whole : 0,
                     part > 0 && part < 0.1 * whole ? 1 : 0);
}

/// "_ZN5Cache3getEv+0x12 (app)" as "Cache::get()+0x12 (app)".
std::string demangled(const std::string& place) {
  if (!place.starts_with("_Z")) return place;  // not "f", which would be a float
  const std::size_t end = place.find_first_of("+ ");
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(place.substr(0, end).c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0) return place;
  return name.get() + (end == std::string::npos ? "" : place.substr(end));
}

std::string shortened(const std::string& text) {
  return text.size() <= name_columns ? text : text.substr(0, name_columns - 3) + "...";
}

/// "812", "12.3 k", "4.56 M"
std::string count(double value) {
  const char* unit = "";
  for (const char* larger : {" k", " M", " G"}) {
    if (value < (*unit == '\0' ? 9999.5 : 999.5)) break;
    value /= 1000;
    unit = larger;
  }
  const int decimals = *unit == '\0' || value >= 99.95 ? 0 : value < 9.995 ? 2 : 1;
  return fmt::format("{:.{}f}{}", value, decimals, unit);
}

/// By what sections take and what is waited: what there is to gain, and by what.
std::string advice(double waited_ns, double section_ns, double threads_ns) {
  constexpr double little = 0.01;
  constexpr double long_section_ns = 10'000;
  if (waited_ns < little * threads_ns) return "little to gain: less than 1 % of the threads' time";
  if (section_ns >= long_section_ns) {
    return "long sections: do less in them; what the mutex is matters little";
  }
  return "short sections: try --mutex cna; on several NUMA nodes delegation";
}

std::string told(const Json& mutex, double elapsed, double threads) {
  const double locks = number(mutex, "locks");
  const double waited = number(mutex, "waited");
  const double waited_ns = number(mutex, "waited_ns");
  const double held_ns = number(mutex, "held_ns");
  std::string text =
      "  " +
      wrapped(fmt::format("{}: waited {} in all, {} times of {}, {} each, at most {} "
                          "of {} threads at once; held {} of the time",
                          demangled(mutex.at("mutex").get<std::string>()),
                          bench::format_ns(waited_ns), count(waited), count(locks),
                          bench::format_ns(waited_ns / waited), mutex.at("most_waiting").get<int>(),
                          mutex.at("threads").get<int>(), share(held_ns, elapsed)),
              4) +
      "\n";
  text += fmt::format("    {:>8} {:>8} {:>7} {:>10}  {}\n", "locks", "waited", "held", "a section",
                      "taken by");
  std::vector<Json> callers = mutex.at("callers");
  std::stable_sort(callers.begin(), callers.end(), [](const Json& a, const Json& b) {
    return number(a, "held_ns") > number(b, "held_ns");
  });
  callers.resize(std::min(callers.size(), callers_told));
  for (const Json& caller : callers) {
    const double its = number(caller, "locks");
    text += fmt::format("    {:>8} {:>8} {:>7} {:>10}  {}\n", count(its),
                        bench::format_ns(number(caller, "waited_ns")),
                        share(number(caller, "held_ns"), elapsed),
                        bench::format_ns(number(caller, "held_ns") / its),
                        shortened(demangled(caller.at("where").get<std::string>())));
  }
  return text + "    " + advice(waited_ns, held_ns / locks, elapsed * threads) + "\n";
}

}  // namespace

std::string format_contention(const Json& process) {
  const double elapsed = number(process, "elapsed_ns");
  const double threads = std::max(1.0, number(process, "threads"));
  const Json& contended = process.at("contended");
  std::string text =
      wrapped(fmt::format("muster run: {} (process {}): {:.0f} thread{} in {}; {} locks of {:.0f} "
                          "mutexes, {} waited for, {} in all: {} of the threads' time",
                          process.at("program").get<std::string>(),
                          process.at("process").get<long>(), threads, threads == 1 ? "" : "s",
                          bench::format_ns(elapsed), count(number(process, "locks")),
                          number(process, "mutexes"), count(number(process, "waited")),
                          bench::format_ns(number(process, "waited_ns")),
                          share(number(process, "waited_ns"), elapsed * threads)),
              2) +
      "\n";
  if (const double missed = number(process, "not_noted"); missed > 0) {
    text += fmt::format("  not noted, of too many mutexes: {} locks\n", count(missed));
  }
  for (std::size_t i = 0; i < std::min(contended.size(), mutexes_told); ++i) {
    text += told(contended[i], elapsed, threads);
  }
  if (contended.size() > mutexes_told) {
    text += fmt::format("  and {} more (--json has them)\n", contended.size() - mutexes_told);
  }
  return text;
}

}  // namespace muster
