// SPDX-License-Identifier: BSD-3-Clause
// What `muster check` does: every execution that C++'s memory model allows, of every barrier.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check/report.hpp"
#include "check/suite/barriers.hpp"
#include "check/suite/locks.hpp"
#include "check/suite/mutation.hpp"
#include "check/suite/mutexes.hpp"
#include "check/suite/sleeping.hpp"
#include "check/suite/station.hpp"
#include "cli/check.hpp"
#include "cli/output.hpp"
#include "machine/error.hpp"
#include "machine/in_parallel.hpp"

namespace muster {
namespace {

using check::Tuning;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr const char* lifetime_name = "lifetime";
constexpr const char* by_hand_name = "by hand";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// How much of the work is done, by its weight. Told by all threads, shown by one.
class Progress {
 public:
  explicit Progress(double work) : work_(work) {}

  void add(double work, std::uint64_t executions = 0) {
    done_ += work;
    executions_ += executions;
  }
  void show(const std::string& what) {
    const std::uint64_t executions = executions_;
    line_.show(done_ / work_,
               executions == 0 ? what : fmt::format("{}, {} executions", what, executions));
  }
  void clear() { line_.clear(); }

 private:
  ProgressLine line_;
  const double work_;
  std::atomic<double> done_{0};
  std::atomic<std::uint64_t> executions_{0};
};

/// One program to explore.
struct Job {
  std::string algorithm;
  unsigned participants;
  unsigned episodes;
  std::string groups;
  std::string variant;
  bool hangs_allowed_after_choice = false;
  double work = 1;  ///< about how many executions
  std::function<check::Program(Tuning&)> make;
  bool by_hand = false;  ///< a mutant; `algorithm` is its name

  std::string command() const {
    if (by_hand)
      return fmt::format("muster check --mutant '{}' --variant '{}'", algorithm, variant);
    std::string text = "muster check --algorithms " + algorithm;
    if (participants == 0) return text + " --variant " + variant;  // the variant says it all
    text += fmt::format(" --participants {} --episodes {} --variant {}", participants, episodes,
                        variant);
    return groups.empty() ? text : text + " --groups '" + groups + "'";
  }
};

/// Updates of one counter come in any order; flags leave no choice.
double expected_executions(const check::Scenario& scenario) {
  const Traits& traits = check::checked_traits(scenario.algorithm.name);
  if (traits.champion != Champion::last_to_arrive) return 1;
  if (scenario.variant == check::Variant::timed) return 2000;
  const double orders = std::tgamma(scenario.participants + 1);
  return std::pow(orders, scenario.variant == check::Variant::reuse ? 4 : scenario.episodes);
}

struct Chosen {
  std::vector<Algorithm> barriers;
  std::vector<std::string> locks;
  std::vector<std::string> mutexes;
  bool sleep = false;     ///< wait/sleep.hpp
  bool lifetime = false;  ///< machine/lifetime.hpp
  bool by_hand = false;   ///< the mutants that no order expresses
};

Chosen choose(const CheckOptions& options) {
  Chosen chosen;
  for (const std::string& name : options.algorithms) {
    if (name == "all") {
      chosen = {check::checked_algorithms(),
                check::checked_locks(),
                check::checked_mutexes(),
                true,
                true,
                true};
    } else if (name.starts_with(lock_prefix)) {
      chosen.locks.push_back(name.substr(std::string(lock_prefix).size()));
    } else if (name.starts_with(mutex_prefix)) {
      chosen.mutexes.push_back(name.substr(std::string(mutex_prefix).size()));
    } else if (name == sleep_name) {
      chosen.sleep = true;
    } else if (name == lifetime_name && options.mutate) {
      chosen.lifetime = true;
    } else {
      const Algorithm named = check::parse_checked_algorithm(name);
      if (named.name == "auto") {
        throw Error(Status::invalid, "auto picks one of the others: name it, or say all");
      }
      // A name alone stands for each radix and recipe that is checked of it.
      const std::size_t before = chosen.barriers.size();
      for (const Algorithm& algorithm : check::checked_algorithms()) {
        if (name == algorithm.name) chosen.barriers.push_back(algorithm);
      }
      if (chosen.barriers.size() == before) chosen.barriers.push_back(named);
    }
  }
  return chosen;
}

/// "2x1" for two clients with a section each, "1x2-server", ...
template <class V>
std::string variant_text(unsigned clients, unsigned sections, V variant) {
  std::string text = fmt::format("{}x{}", clients, sections);
  return variant == V::plain ? text : text + "-" + check::variant_name(variant);
}

/// All mutants that are written by hand.
std::vector<check::HandWritten> mutants_by_hand() {
  std::vector<check::HandWritten> all = check::hand_written_mutants();
  for (const auto& more : {check::hand_written_mutexes(), check::hand_written_locks(),
                           check::hand_written_stations()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// The programs of one of them.
std::vector<Job> make_mutant_jobs(const CheckOptions& options) {
  std::vector<Job> jobs;
  std::string names;
  for (const check::HandWritten& mutant : mutants_by_hand()) {
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", mutant.name);
    if (options.mutant != mutant.name) continue;
    for (const check::Rehearsed& program : mutant.programs) {
      if (!options.variant.empty() && options.variant != program.name) continue;
      jobs.push_back({mutant.name, 0, 0, "", program.name, false, 1, program.make, true});
    }
    if (jobs.empty()) {
      std::vector<std::string> known;
      for (const check::Rehearsed& program : mutant.programs) known.push_back(program.name);
      throw Error(Status::unknown_name, fmt::format("this mutant has no variant \"{}\"; it has {}",
                                                    options.variant, fmt::join(known, ", ")));
    }
    return jobs;
  }
  throw Error(Status::unknown_name,
              fmt::format("no mutant \"{}\"; there are: {}", options.mutant, names));
}

/// Those of --groups, which all that is chosen has to have.
GroupTree groups_for(const Chosen& chosen, const CheckOptions& options) {
  if (options.groups.empty()) return {};
  for (const Algorithm& algorithm : chosen.barriers) {
    if (algorithm.uses_groups()) continue;
    throw Error(Status::invalid, "--groups is for the topo family, not " + algorithm.name);
  }
  if (chosen.barriers.empty() || chosen.sleep || !chosen.locks.empty() || !chosen.mutexes.empty())
    throw Error(Status::invalid, "--groups is for the topo family, and for barriers only");
  GroupTree groups = check::parse_groups(options.groups);
  for (const unsigned participants : options.participants) {
    if (participants == groups.participants) continue;
    throw Error(Status::invalid, fmt::format("--groups {} is of {} participants, not of {}",
                                             options.groups, groups.participants, participants));
  }
  return groups;
}

std::vector<Job> make_jobs(const CheckOptions& options) {
  if (!options.mutant.empty()) return make_mutant_jobs(options);
  const Chosen chosen = choose(options);
  std::vector<Job> jobs;
  std::set<std::string> variants;
  const auto add = [&](Job job) {
    variants.insert(job.variant);
    if (options.variant.empty() || options.variant == job.variant) jobs.push_back(std::move(job));
  };
  const GroupTree groups = groups_for(chosen, options);
  for (const Algorithm& algorithm : chosen.barriers) {
    const auto scenarios = check::scenarios_of(algorithm, options.participants, options.episodes,
                                               options.groups.empty() ? nullptr : &groups);
    for (const check::Scenario& scenario : scenarios) {
      add({algorithm.text(), scenario.participants, scenario.episodes,
           check::format_groups(scenario.groups), check::variant_name(scenario.variant),
           scenario.variant == check::Variant::gives_up, expected_executions(scenario),
           [scenario](Tuning& tuning) { return check::make_barrier_program(scenario, tuning); }});
    }
  }
  for (const std::string& lock : chosen.locks) {
    for (const check::LockScenario& scenario :
         check::lock_scenarios(lock, !options.variant.empty())) {
      add({lock_prefix + lock, 0, scenario.sections, "",
           variant_text(scenario.clients, scenario.sections, scenario.variant), false, 1000,
           [scenario](Tuning& tuning) { return check::make_lock_program(scenario, tuning); }});
    }
  }
  for (const std::string& mutex : chosen.mutexes) {
    for (const check::MutexScenario& scenario : check::mutex_scenarios(mutex)) {
      add({mutex_prefix + mutex, 0, scenario.sections, "",
           variant_text(scenario.participants, scenario.sections, scenario.variant), false, 1000,
           [scenario](Tuning& tuning) { return check::make_mutex_program(scenario, tuning); }});
    }
  }
  for (const check::SleepProgram& program : check::sleep_programs()) {
    const std::string name = program.name;
    if (!chosen.sleep) break;
    add({sleep_name, 0, 1, "", name, false, 1000,
         [name](Tuning& tuning) { return check::make_sleep_program(name, tuning); }});
  }
  if (jobs.empty()) {
    throw Error(Status::unknown_name, fmt::format("no variant \"{}\" of these; there are: {}",
                                                  options.variant, fmt::join(variants, ", ")));
  }
  return jobs;
}

/// What --weaken names: "FILE:LINE=ORDER", as the table of --mutate has it.
struct Weakening {
  std::string site;
  check::Ordering order;
};

std::optional<Weakening> parse_weakening(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t equals = text.find('=');
  for (const check::Ordering order :
       {check::Ordering::relaxed, check::Ordering::acquire, check::Ordering::release,
        check::Ordering::acq_rel, check::Ordering::seq_cst}) {
    if (equals == std::string::npos || text.substr(equals + 1) != check::ordering_name(order))
      continue;
    const std::string file = text.substr(0, text.find(':'));
    if (!check::is_checked_source(file)) {  // else all programs would be searched for it
      throw Error(Status::invalid,
                  fmt::format("--weaken: no barrier or lock has \"{}\"; the table of --mutate "
                              "names files such as src/barrier/mcs.hpp",
                              file));
    }
    return Weakening{text.substr(0, equals), order};
  }
  throw Error(
      Status::invalid,
      fmt::format("--weaken takes FILE:LINE=ORDER, with relaxed, acquire, release, "
                  "acq_rel or seq_cst, from the table of --mutate; \"{}\" is not of that form",
                  text));
}

/// The first of these accesses that can be weakened so.
const check::OrderedAccess* find_access(const Tuning& tuning, const Weakening& wanted) {
  for (const check::OrderedAccess& access : tuning.accesses()) {
    const std::vector<check::Ordering> weaker = check::weakenings(access.order);
    if (check::format_site(access.site) == wanted.site &&
        std::find(weaker.begin(), weaker.end(), wanted.order) != weaker.end()) {
      return &access;
    }
  }
  return nullptr;
}

/// False where the program has no such access: then `example` is one that it has.
bool apply_weakening(const Weakening& wanted, Tuning& tuning, const check::Program& program,
                     std::string& example) {
  check::Options how;  // explores until the access has been met
  how.on_progress = [&](std::uint64_t) { return find_access(tuning, wanted) == nullptr; };
  static_cast<void>(check::Explorer(program, how).explore());
  if (const check::OrderedAccess* const access = find_access(tuning, wanted)) {
    tuning.weaken(access->site, wanted.order);
    return true;
  }
  for (const check::OrderedAccess& access : tuning.accesses()) {
    for (const check::Ordering weaker : check::weakenings(access.order)) {
      example = check::format_site(access.site) + "=" + check::ordering_name(weaker);
    }
  }
  return false;
}

struct Row {
  Job job;
  check::Result result;
  double seconds = 0;
  std::string trace;
  std::string replay;
};

/// `example`: without a result, since the program lacks what is to be weakened; one that it has.
struct Ran {
  std::optional<Row> row{};
  std::string example{};
};

Ran run_job(const Job& job, const std::optional<Weakening>& weakening, Progress& progress) {
  Row row{job, {}, 0, "", job.command()};
  Tuning tuning;
  const check::Program program = job.make(tuning);
  row.job.participants = program.threads;
  if (weakening) {
    std::string example;
    if (!apply_weakening(*weakening, tuning, program, example)) {
      progress.add(job.work);
      return {.example = example};
    }
    row.replay +=
        fmt::format(" --weaken {}={}", weakening->site, check::ordering_name(weakening->order));
  }
  std::uint64_t told = 0;
  double left = job.work;
  const auto tell = [&](std::uint64_t executions) {
    const auto more = std::min(left, static_cast<double>(executions - told));
    left -= more;
    progress.add(more, executions - std::exchange(told, executions));
    return true;
  };
  check::Options how;
  how.hangs_allowed_after_choice = job.hangs_allowed_after_choice;
  how.on_progress = tell;
  const auto start = Clock::now();
  row.result = check::Explorer(program, how).explore();
  row.seconds = seconds_since(start);
  if (row.result.violation) row.trace = check::format_violation(program, *row.result.violation);
  tell(row.result.executions);
  progress.add(left);
  return {.row = std::move(row)};
}

bool holds(const Row& row) { return row.result.verdict == check::Verdict::holds; }

Json to_json(const Row& row) {
  Json json = {
      {"algorithm", row.job.algorithm}, {"participants", row.job.participants},
      {"episodes", row.job.episodes},   {"groups", row.job.groups},
      {"variant", row.job.variant},     {"executions", row.result.executions},
      {"blocked", row.result.blocked},  {"verdict", check::verdict_name(row.result.verdict)},
      {"seconds", row.seconds}};
  if (!holds(row)) {
    json["trace"] = row.trace;
    json["replay"] = row.replay;
  }
  return json;
}

void run_programs(const CheckOptions& options) {
  const std::optional<Weakening> weakening = parse_weakening(options.weaken);
  const std::vector<Job> jobs = make_jobs(options);
  double work = 0;
  for (const Job& job : jobs) work += job.work;
  Progress progress(work);
  Json json = Json::object();
  json["results"] = Json::array();
  std::size_t failures = 0;
  std::size_t ran = 0;
  std::string example;
  std::string shown;
  const auto take = [&](Ran done) {
    if (!done.example.empty()) example = done.example;
    if (!done.row) return;
    const Row& row = *done.row;
    const Job& job = row.job;
    if (ran == 0 && !options.json) {
      progress.clear();
      fmt::print("  {:>2} {:>2} {:<32} {:>10} {:>8} {:<8} {:>8}\n", "P", "E", "groups, variant",
                 "executions", "blocked", "verdict", "seconds");
    }
    ++ran;
    failures += holds(row) ? 0 : 1;
    if (options.json) return json["results"].push_back(to_json(row));
    progress.clear();
    if (job.algorithm != shown) fmt::print("{}\n", shown = job.algorithm);
    fmt::print("  {:>2} {:>2} {:<32} {:>10} {:>8} {:<8} {:>8.3f}\n", job.participants, job.episodes,
               job.groups + (job.groups.empty() ? "" : " ") + job.variant, row.result.executions,
               row.result.blocked, check::verdict_name(row.result.verdict), row.seconds);
    if (!holds(row)) fmt::print("\n{}again: {}\n\n", row.trace, row.replay);
    std::fflush(stdout);  // what is told is not lost, whatever ends this
  };
  in_parallel(
      jobs.size(), [&](std::size_t i) { return run_job(jobs[i], weakening, progress); }, take,
      [&](std::size_t i) { progress.show(jobs[i].algorithm); });
  progress.clear();
  if (ran == 0) {
    throw Error(Status::invalid,
                fmt::format("none of these programs has what --weaken names, \"{}\"; the table of "
                            "--mutate has them all, such as {}",
                            options.weaken, example));
  }
  if (options.json) fmt::print("{}", format_json(json));
  if (failures > 0) {
    throw Error(Status::broken, fmt::format("programs that do not hold: {} of {}", failures, ran));
  }
}

struct Gate {
  std::string algorithm;
  std::vector<check::Rehearsed> programs;
  std::string only{};    ///< accesses of this file
  bool by_hand = false;  ///< the programs are a mutant
  std::vector<check::Mutation> mutations{};
};

std::vector<Gate> make_gates(const CheckOptions& options) {
  const Chosen chosen = choose(options);
  std::map<std::string, std::vector<Algorithm>> by_name;  // both radices are one algorithm
  std::vector<std::string> names;
  for (const Algorithm& algorithm : chosen.barriers) {
    if (by_name[algorithm.name].empty()) names.push_back(algorithm.name);
    by_name[algorithm.name].push_back(algorithm);
  }
  std::vector<Gate> gates;
  for (const std::string& name : names) {
    gates.push_back(
        {name, check::mutation_programs(by_name[name], options.participants, options.episodes)});
  }
  for (const std::string& lock : chosen.locks) {
    gates.push_back({lock_prefix + lock, check::mutation_programs_of_lock(lock), "src/"});
  }
  if (!chosen.mutexes.empty()) {  // which share most of their text
    gates.push_back({"mutex", check::mutation_programs_of_mutexes(), "src/"});
  }
  if (chosen.sleep) {
    gates.push_back({sleep_name, check::mutation_programs_of_sleep(), check::sleep_source});
  }
  if (chosen.lifetime) {
    gates.push_back(
        {lifetime_name, check::mutation_programs_of_lifetime(), check::lifetime_source});
  }
  if (chosen.by_hand) {
    for (const check::HandWritten& mutant : mutants_by_hand()) {
      gates.push_back({mutant.name, mutant.programs, "", true});
    }
  }
  return gates;
}

bool is_by_hand(const check::Mutation& mutation) { return mutation.access.site.file == nullptr; }

Json to_json(const check::Mutation& mutation) {
  Json json;
  if (is_by_hand(mutation)) {
    json = {{"algorithm", by_hand_name}, {"mutant", mutation.algorithm}};
  } else {
    json = {{"algorithm", mutation.algorithm},
            {"site", check::format_site(mutation.access.site)},
            {"access", mutation.access.what},
            {"order", check::ordering_name(mutation.access.order)},
            {"weakened", check::ordering_name(mutation.weaker)}};
  }
  json["fate"] = check::fate_name(mutation.fate);
  if (!mutation.caught_by.empty()) {
    json["verdict"] = check::verdict_name(mutation.verdict);
    json["caught_by"] = mutation.caught_by;
  }
  if (const check::Marker* marker = check::marker_of(mutation.access.site)) {
    json["stronger"] = marker->reason;
  }
  return json;
}

std::string to_text(const check::Mutation& mutation) {
  std::string why;
  if (mutation.fate == check::Fate::caught) {
    why = fmt::format("{} ({})", mutation.caught_by, check::verdict_name(mutation.verdict));
  } else if (const check::Marker* const marker = check::marker_of(mutation.access.site)) {
    why = marker->reason;
  }
  const std::string what =
      is_by_hand(mutation)
          ? fmt::format("{}: {}", by_hand_name, mutation.algorithm)
          : fmt::format("{}: {} at {}, {} -> {}", mutation.algorithm, mutation.access.what,
                        check::format_site(mutation.access.site),
                        check::ordering_name(mutation.access.order),
                        check::ordering_name(mutation.weaker));
  return wrapped(fmt::format("{}\n{}{}{}", what, check::fate_name(mutation.fate),
                             why.empty() ? "" : ": ", why),
                 2);
}

void run_mutate(const CheckOptions& options) {
  std::vector<Gate> gates = make_gates(options);
  Progress finding(static_cast<double>(gates.size()));
  std::vector<std::pair<Gate*, std::size_t>> mutants;
  const auto find = [&](std::size_t i) {
    Gate& gate = gates[i];
    gate.mutations = gate.by_hand ? std::vector{check::hand_written_mutation(gate.algorithm)}
                                  : check::find_mutations(gate.algorithm, gate.programs, gate.only);
    finding.add(1);
    return &gate;
  };
  in_parallel(
      gates.size(), find,
      [&](Gate* gate) {
        for (std::size_t n = 0; n < gate->mutations.size(); ++n) mutants.emplace_back(gate, n);
      },
      [&](std::size_t i) { finding.show("before anything is weakened: " + gates[i].algorithm); });
  finding.clear();

  Progress progress(static_cast<double>(mutants.size()));
  Json json = Json::object();
  json["results"] = Json::array();
  std::map<check::Fate, std::size_t> fates;
  const auto run = [&](std::size_t i) {
    const auto& [gate, n] = mutants[i];
    gate->mutations[n] = check::run_mutation(gate->mutations[n], gate->programs);
    progress.add(1);
    return i;
  };
  const auto take = [&](std::size_t i) {
    const auto& [gate, n] = mutants[i];
    if (n + 1 < gate->mutations.size()) return;
    check::judge_markers(gate->mutations);
    progress.clear();
    for (const check::Mutation& mutation : gate->mutations) {
      ++fates[mutation.fate];
      if (options.json) {
        json["results"].push_back(to_json(mutation));
      } else {
        fmt::print("{}\n", to_text(mutation));
      }
    }
    std::fflush(stdout);
  };
  in_parallel(mutants.size(), run, take,
              [&](std::size_t i) { progress.show(mutants[i].first->algorithm); });
  progress.clear();
  const std::size_t caught = fates[check::Fate::caught];
  const std::size_t stronger = fates[check::Fate::stronger];
  const std::size_t escaped = fates[check::Fate::not_caught] + fates[check::Fate::marked_in_vain];
  if (options.json) {
    fmt::print("{}", format_json(json));
  } else {
    fmt::print("{} mutants: {} caught, {} stronger on purpose, {} unaccounted for\n",
               caught + stronger + escaped, caught, stronger, escaped);
  }
  if (escaped > 0) {
    throw Error(Status::broken,
                fmt::format("{} of {} mutants went unnoticed or are marked in vain: weaken the "
                            "orders in the source, or mark them with // stronger: <reason>",
                            escaped, caught + stronger + escaped));
  }
}

}  // namespace

void run_check(const CheckOptions& options) {
  options.mutate ? run_mutate(options) : run_programs(options);
}

}  // namespace muster
