// SPDX-License-Identifier: BSD-3-Clause
#include "cli/contention.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/report.hpp"
#include "cli/named_machine.hpp"
#include "cli/output.hpp"
#include "cli/sim_common.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"
#ifdef MUSTER_WITH_SIM
#include "sim/pair_matrix.hpp"
#include "sim/remedies.hpp"
#endif

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::size_t mutexes_told = 8;
constexpr std::size_t mutexes_modelled = 3;
constexpr double little = 0.01;          ///< of the threads' time
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

std::string whole(double value) { return fmt::format("{:.0f}", value); }

double threads_ns(const Json& process) {
  return number(process, "elapsed_ns") * std::max(1.0, number(process, "threads"));
}

// ---- by the model ----

#ifdef MUSTER_WITH_SIM

sim::Contention seen_of(const Json& mutex, double process_threads) {
  constexpr double bits = 64;   // that threads are told apart by
  constexpr double enough = 8;  // sections
  const double locks = number(mutex, "locks");
  const double held_ns = number(mutex, "held_ns") / locks;
  const double stayed = number(mutex, "stayed");
  const double moved = number(mutex, "moved");
  sim::Contention seen;
  const double threads = number(mutex, "threads");
  seen.threads = static_cast<unsigned>(threads < bits ? threads : process_threads);
  if (stayed >= enough && moved >= enough) {
    seen.moved_ns =
        std::max(0.0, number(mutex, "moved_ns") / moved - number(mutex, "stayed_ns") / stayed);
  }
  seen.held_ns = std::max(0.0, held_ns - seen.moved_ns * moved / std::max(1.0, moved + stayed));
  const double inside_ns = number(mutex, "waited_ns") + number(mutex, "held_ns");
  seen.apart_ns = std::max(0.0, (number(mutex, "span_ns") * seen.threads - inside_ns) / locks);
  return seen;
}

Json predicted(const Json& mutex, double threads, const sim::MachineModel& machine,
               const sim::SleepCosts& sleep, ProgressLine& line) {
  const sim::Remedies remedies =
      sim::predict_remedies(machine, seen_of(mutex, threads), sleep,
                            shown_on(line, "modelled " + mutex.at("mutex").get<std::string>()));
  Json json{{"machine", machine.name},
            {"about", machine.about},
            {"threads", remedies.threads},
            {"lines", remedies.lines},
            {"measured_sections_s", number(mutex, "locks") * 1e9 / number(mutex, "span_ns")},
            {"modelled_sections_s", remedies.now().sections_s},
            {"ways", Json::array()}};
  for (const sim::Remedy& remedy : remedies.all) {
    json["ways"].push_back({{"lock", remedy.lock},
                            {"near", remedy.near},
                            {"ratio", remedy.sections_s / remedies.now().sections_s}});
  }
  return json;
}

#endif

struct Way {
  const char* lock;
  const char* name;   ///< in the table
  const char* typed;  ///< options of `muster run`; null: the source has to change
};
constexpr Way ways[] = {
    {"mutex-pthread", "pthread_mutex", ""},
    {"mutex-spin-then-park", "--mutex spin-then-park", "--mutex spin-then-park "},
    {"mutex-mcs", "--mutex mcs", "--mutex mcs "},
    {"mutex-cna", "--mutex cna", "--mutex cna "},
    {"cc-synch", "combining: muster::lock, cc-synch", nullptr},
    {"rcl", "a server: muster::lock, rcl", nullptr}};

/// Null where that was not modelled.
const Json* find_way(const Json& predicted, const Way& way, bool near) {
  for (const Json& each : predicted.at("ways")) {
    if (each.at("lock") == way.lock && each.at("near") == near) return &each;
  }
  return nullptr;
}

/// What is best without and with a change of the source, if it helps by a tenth.
std::string advice(const Json& predicted) {
  constexpr double helps = 1.1;
  const Way* best[] = {nullptr, nullptr};
  bool best_near[] = {false, false};
  double most[] = {helps, helps};
  for (const Way& way : ways) {
    for (const bool near : {true, false}) {
      const Json* const its = find_way(predicted, way, near);
      const int kind = way.typed == nullptr ? 1 : 0;
      if (its == nullptr || number(*its, "ratio") < most[kind]) continue;
      best[kind] = &way;
      best_near[kind] = near;
      most[kind] = number(*its, "ratio");
    }
  }
  std::string text;
  if (best[0] != nullptr) {
    text = fmt::format("try muster run {}{}-- PROGRAM", best[0]->typed,
                       best_near[0] ? "" : "--affinity none ");
  }
  const double off =
      number(predicted, "modelled_sections_s") / number(predicted, "measured_sections_s");
  if (!predicted.at("measured_elsewhere").get<bool>() && (off > 2 || off < 0.5)) {
    return text +
           fmt::format(
               "{}the model says {:.2g} times what was measured of the program as it is: "
               "it lacks something of this machine or program, so it is not asked about delegation",
               text.empty() ? "" : "; but ", off);
  }
  if (best[1] != nullptr && most[1] > helps * most[0]) {
    text += fmt::format("{}delegation may gain more: doc/delegation.md", text.empty() ? "" : "; ");
  }
  return text.empty() ? "nothing of these helps by a tenth: do less in the sections" : text;
}

std::string prediction_text(const Json& predicted) {
  if (const auto why = predicted.find("not"); why != predicted.end()) {
    return "    " + wrapped("nothing predicted: " + why->get<std::string>(), 4) + "\n";
  }
  const bool places = find_way(predicted, ways[0], true) != nullptr;
  std::string text =
      "    " +
      wrapped(fmt::format("Predicted by the model ({}: {}; {}, a section moves {} of data): "
                          "times as many sections as now, of which there were {} a second, {} in "
                          "the model",
                          predicted.at("machine").get<std::string>(),
                          predicted.at("about").get<std::string>(),
                          counted(predicted.at("threads").get<int>(), "threads"),
                          counted(predicted.at("lines").get<int>(), "lines"),
                          count(number(predicted, "measured_sections_s")),
                          count(number(predicted, "modelled_sections_s"))),
              4) +
      "\n";
  text += fmt::format("      {:<36}{:>12}{}\n", "", "threads stay", places ? "  placed near" : "");
  for (const Way& way : ways) {
    const Json* const stays = find_way(predicted, way, false);
    if (stays == nullptr) {  // the only one that wants a core more than threads
      text += fmt::format("      {:<36}{:>12}\n", way.name, "no core free");
      continue;
    }
    text += fmt::format("      {:<36}{:>12.2f}", way.name, number(*stays, "ratio"));
    if (const Json* const near = find_way(predicted, way, true); near != nullptr) {
      text += fmt::format("{:>13.2f}", number(*near, "ratio"));
    }
    text += "\n";
  }
  return text + "    " + wrapped(advice(predicted), 4) + "\n";
}

std::string told(const Json& mutex, double elapsed, double threads) {
  const double locks = number(mutex, "locks");
  const double waited = number(mutex, "waited");
  const double waited_ns = number(mutex, "waited_ns");
  const double held_ns = number(mutex, "held_ns");
  std::string text =
      "  " +
      wrapped(
          fmt::format("{}: waited {} in all, {} of {}, {} each, at most {} of {} at "
                      "once; held {} of the time",
                      printable(demangled(mutex.at("mutex").get<std::string>())),
                      bench::format_ns(waited_ns), counted(count(waited), "times"), count(locks),
                      bench::format_ns(waited_ns / waited), mutex.at("most_waiting").get<int>(),
                      counted(mutex.at("threads").get<int>(), "threads"), share(held_ns, elapsed)),
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
                        printable(shortened(demangled(caller.at("where").get<std::string>()))));
  }
  if (waited_ns < little * elapsed * threads) {
    return text + "    little to gain: less than 1 % of the threads' time\n";
  }
  const auto predicted = mutex.find("predicted");
  return predicted == mutex.end() ? text : text + prediction_text(*predicted);
}

}  // namespace

void predict_contention(Json& process, [[maybe_unused]] const std::string& machine) {
  std::vector<Json*> worth;
  for (Json& mutex : process.at("contended")) {
    if (worth.size() == mutexes_modelled) break;
    if (number(mutex, "waited_ns") >= little * threads_ns(process)) worth.push_back(&mutex);
  }
#ifdef MUSTER_WITH_SIM
  if (worth.empty()) return;
  std::string why;
  try {
    const NamedMachine named =
        machine.empty() ? NamedMachine{Topology::this_machine(), {}} : named_machine(machine);
    const sim::MachineModel model =
        named.model ? *named.model
                    : sim::assumed_machine(
                          named.topology,
                          machine.empty() ? sim::synthetic_description(named.topology, "--machine")
                                          : topology_statement(machine, named.topology));
    const sim::SleepCosts sleep = machine.empty() ? sim::measure_sleep() : sim::SleepCosts{};
    ProgressLine line;
    for (Json* const mutex : worth) {
      (*mutex)["predicted"] = predicted(*mutex, number(process, "threads"), model, sleep, line);
      (*mutex)["predicted"]["measured_elsewhere"] = !machine.empty();
    }
    return;
  } catch (const Error& error) {
    why = error.what();
  }
#else
  const std::string why = "this build has no model (package libboost-context-dev)";
#endif
  for (Json* const mutex : worth) {
    if (!mutex->contains("predicted")) (*mutex)["predicted"] = {{"not", why}};
  }
}

std::string format_contention(const Json& process) {
  const double elapsed = number(process, "elapsed_ns");
  const double threads = std::max(1.0, number(process, "threads"));
  const Json& contended = process.at("contended");
  std::string text =
      wrapped(fmt::format(
                  "muster run: {} (process {}): {} took a mutex in {}; {} of {}, {} "
                  "waited for, {} in all: {} of the threads' time",
                  printable(process.at("program").get<std::string>()),
                  process.at("process").get<long>(),
                  counted(whole(number(process, "threads")), "threads"), bench::format_ns(elapsed),
                  counted(count(number(process, "locks")), "locks"),
                  counted(whole(number(process, "mutexes")), "mutexes"),
                  count(number(process, "waited")), bench::format_ns(number(process, "waited_ns")),
                  share(number(process, "waited_ns"), elapsed * threads)),
              2) +
      "\n";
  if (const double missed = number(process, "not_noted"); missed > 0) {
    text += fmt::format("  not noted, of too many mutexes: {}\n", counted(count(missed), "locks"));
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
