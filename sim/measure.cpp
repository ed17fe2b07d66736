// SPDX-License-Identifier: BSD-3-Clause
#include "sim/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "barrier/base_barriers.hpp"
#include "machine/error.hpp"
#include "sim/on_hardware.hpp"
#include "sim/pair_matrix.hpp"
#include "sim/patterns.hpp"
#include "sim/simplex.hpp"

namespace muster::sim {
namespace {

constexpr unsigned own_count = 64;
constexpr std::int64_t batch_ns = 100'000;

/// Calls `fn.template operator()<B>()` with the pattern of that name over M; false if none has it.
template <class M, class Fn>
bool with_pattern(const std::string& name, Fn&& fn) {
  bool found = false;
  const auto consider = [&]<class B>(const char* its_name) {
    if (name != its_name) return;
    fn.template operator()<B>();
    found = true;
  };
  consider.template operator()<PingPong<M>>("ping-pong");
  consider.template operator()<OneWriter<M>>("one-writer");
  consider.template operator()<OneReader<M>>("one-reader");
  consider.template operator()<ManyStores<M>>("many-stores");
  consider.template operator()<OneCounter<M>>("one-counter");
  consider.template operator()<OwnStores<M>>("own-stores");
  consider.template operator()<OwnLooks<M>>("own-looks");
  return found;
}

Shape shape_of(const MicroBenchmark& benchmark) {
  Shape shape;
  shape.participants = static_cast<unsigned>(benchmark.cores.size());
  shape.radix = std::max(benchmark.count, 1U);
  return shape;
}

double hardware_ns(const Topology& here, const MicroBenchmark& benchmark) {
  std::vector<unsigned> pus;
  for (const unsigned core : benchmark.cores) pus.push_back(here.cores().at(core).pus.front());
  const Shape shape = shape_of(benchmark);
  double ns = 0;
  const auto time = [&]<class B>() { ns = time_on_hardware<B>(shape, pus, batch_ns); };
  if (with_pattern<Hardware>(benchmark.pattern, time)) return ns;
  if (!benchmark.pattern.starts_with("base-")) with_barrier<Hardware>(benchmark.pattern, time);
  for_each_base_barrier<Hardware>([&]<class B>() {
    if (B::traits.name == benchmark.pattern) time.template operator()<B>();
  });
  return ns;
}

/// One turn of the hardware machine's polling loop besides the load.
double relax_ns(unsigned pu) {
  constexpr unsigned turns = 10000;
  double ns = 0;
  on_pus({pu}, [&](unsigned) {
    for (int again = 0; again < 2; ++again) {
      const std::int64_t begin = now_ns();
      for (unsigned n = 0; n < turns; ++n) relax();
      ns = static_cast<double>(now_ns() - begin) / turns;
    }
  });
  return ns;
}

/// For each class of distance that this machine has, bottom up, a few pairs of cores.
struct PairClass {
  std::optional<LevelKind> level;
  std::vector<std::pair<unsigned, unsigned>> pairs;
};
std::vector<PairClass> pair_classes(const Topology& shape) {
  constexpr std::size_t pairs_max = 3;
  std::vector<PairClass> classes;
  const std::vector<const Level*> levels = distance_levels(shape);
  for (const Level* level : levels) classes.push_back({level->kind, {}});
  classes.push_back({std::nullopt, {}});
  const auto count = static_cast<unsigned>(shape.cores().size());
  for (unsigned a = 0; a < count; ++a) {
    for (unsigned b = a + 1; b < count; ++b) {
      const unsigned pu_a = shape.cores()[a].pus.front();
      const unsigned pu_b = shape.cores()[b].pus.front();
      std::size_t l = 0;
      while (l < levels.size() && !(is_unit(levels[l]->unit_of(pu_a)) &&
                                    levels[l]->unit_of(pu_a) == levels[l]->unit_of(pu_b))) {
        ++l;
      }
      if (classes[l].pairs.size() < pairs_max) classes[l].pairs.emplace_back(a, b);
    }
  }
  std::erase_if(classes, [](const PairClass& c) { return c.pairs.empty(); });
  classes.back().level.reset();
  return classes;
}

std::string class_name(const PairClass& c) {
  return c.level ? std::string(level_name(*c.level)) : "MACHINE";
}

std::vector<MicroBenchmark> micro_benchmarks(const std::vector<PairClass>& classes,
                                             unsigned cores) {
  std::vector<MicroBenchmark> all;
  for (const PairClass& c : classes) {
    for (const auto& [a, b] : c.pairs) {
      all.push_back({"ping-pong",
                     fmt::format("a flag's round trip, cores {} and {} ({})", a, b, class_name(c)),
                     {a, b},
                     1});
    }
  }
  std::vector<unsigned> teams{2};
  for (unsigned n = 4; n < cores; n *= 2) teams.push_back(n);
  if (cores > 2) teams.push_back(cores);
  for (const unsigned n : teams) {
    std::vector<unsigned> team(n);
    for (unsigned rank = 0; rank < n; ++rank) team[rank] = rank;
    all.push_back({"one-writer", fmt::format("one writer, {} readers", n - 1), team, 1});
    for (const unsigned flags : {4U, 16U}) {
      all.push_back({"one-reader", fmt::format("one reader, {} flags of {} writers", flags, n - 1),
                     team, flags});
      all.push_back({"many-stores", fmt::format("{} stores to flags of {} readers", flags, n - 1),
                     team, flags});
    }
    for (const unsigned additions : {4U, 16U, 64U}) {
      if (n > 2 && additions != 16) continue;  // two tell how long an owner keeps its line
      all.push_back({"one-counter", fmt::format("{} cores, {} additions each", n, additions), team,
                     additions});
    }
  }
  return all;
}

/// What one core does alone: these are parameters themselves.
std::vector<MicroBenchmark> own_benchmarks() {
  return {{"own-looks", "a look at what is there", {0}, own_count},
          {"own-stores", "a store to an own line", {0}, own_count},
          {"one-counter", "an addition to an own line", {0}, own_count}};
}

bool has_ll_sc() {
#if defined(__x86_64__) || defined(__i386__) || defined(__ARM_FEATURE_ATOMICS)
  return false;
#else
  return true;
#endif
}

void set_measured(MachineModel& machine, std::string_view key, double value,
                  const std::string& how) {
  machine.set(key, value, "measured: " + how);
  machine.uncertainty.erase(std::string(key));
}

/// The kernel's word on a cache of CPU 0: KiB and ways, 0 where it says nothing.
std::pair<double, double> cache_of(int level) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    const auto read = [&](const char* what) {
      std::ifstream file(folder + what);
      std::string text;
      file >> text;
      return text;
    };
    if (read("level") != std::to_string(level) || read("type") == "Instruction") continue;
    const std::string size = read("size");
    const std::string ways = read("ways_of_associativity");
    if (size.empty() || size.back() != 'K' || ways.empty()) continue;
    return {std::atof(size.c_str()), std::atof(ways.c_str())};
  }
  return {0, 0};
}

double log_rms(const std::vector<MicroResult>& results, bool MicroResult::*part) {
  double sum = 0;
  double count = 0;
  for (const MicroResult& result : results) {
    if (!(result.*part)) continue;
    const double ratio = std::log(result.modelled_ns / result.measured_ns);
    sum += ratio * ratio;
    count += 1;
  }
  return std::sqrt(sum / std::max(1.0, count));
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Each latency such that the round trips of its class come out: nothing else delays them.
void set_latencies(MachineModel& machine, const std::vector<PairClass>& classes,
                   const std::vector<MicroResult>& results) {
  StackPool pool;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    std::vector<MicroResult> own;
    for (const MicroResult& result : results) {
      if (result.what.pattern != "ping-pong") continue;
      for (const auto& [a, b] : classes[c].pairs) {
        if (result.what.cores == std::vector<unsigned>{a, b}) own.push_back(result);
      }
    }
    LatencyClass& latency = machine.latencies[c];
    for (int turn = 0; turn < 12; ++turn) {
      std::vector<double> ratios;
      for (const MicroResult& result : own) {
        ratios.push_back(result.measured_ns / model_ns(machine, result.what, pool));
      }
      latency.ns = std::clamp(latency.ns * median_of(ratios), 0.5, 1e5);
    }
    const std::string key = "latency-" + latency.name();
    machine.provenance[key] = fmt::format(
        "derived: such that the model's round trips are the {} measured ones", own.size());
    machine.uncertainty.erase(key);
  }
}

/// Waits for cells one after another miss the same way as a polled set does.
void set_run_ahead(MachineModel& machine) {
  machine.set("run-ahead", machine.value("poll-overlap"), "derived: as poll-overlap");
}

/// Fits what else the benchmarks of several cores depend on, the latencies along with it.
void fit_to(MachineModel& machine, const std::vector<PairClass>& classes,
            std::vector<MicroResult>& results, unsigned cores) {
  std::vector<std::string> free;
  for (const char* key : {"agent-occupancy", "poll-overlap", "line-data"}) free.emplace_back(key);
  if (cores > 2) free.emplace_back("read-occupancy");
  machine.set("line-data", machine.latencies.front().ns / 4, "");
  SimplexOptions how;
  for (const std::string& key : free) {
    how.start.push_back(std::log(machine.value(key)));
    how.low.push_back(std::log(std::max(parameter_info(key).min, 0.1)));
    how.high.push_back(std::log(std::min(parameter_info(key).max, 200.0)));
  }
  how.evaluations = 150 * static_cast<unsigned>(free.size());
  how.starts = 2;
  const auto machine_at = [&](const Point& point) {
    MachineModel at = machine;
    for (std::size_t n = 0; n < free.size(); ++n) at.set(free[n], std::exp(point[n]), "");
    set_run_ahead(at);
    set_latencies(at, classes, results);
    return at;
  };
  StackPool pool;
  const auto model_all = [&](const MachineModel& at) {
    for (MicroResult& result : results) {
      if (result.fitted) result.modelled_ns = model_ns(at, result.what, pool);
    }
    return log_rms(results, &MicroResult::fitted);
  };
  const Minimum best =
      minimise([&](const Point& point) { return model_all(machine_at(point)); }, how);
  machine = machine_at(best.at);
  for (const std::string& key : free) {
    machine.provenance[key] =
        fmt::format("fitted: to the micro-benchmarks, rms of the log ratios {:.3f}", best.value);
    machine.uncertainty.erase(key);
  }
}

}  // namespace

double model_ns(const MachineModel& machine, const MicroBenchmark& benchmark, StackPool& pool) {
  BarrierSetup setup;
  setup.geometry = geometry_of(machine, benchmark.cores);
  setup.parameters = machine.parameters;
  setup.parameters.call_ns = 0;  // as on hardware: nothing but the pattern
  setup.mechanisms = machine.mechanisms;
  setup.shape = shape_of(benchmark);
  BarrierOutcome outcome;
  const auto run = [&]<class B>() { outcome = run_barrier_as<B>(setup, pool); };
  if (!with_pattern<Modelled>(benchmark.pattern, run)) {
    outcome = run_barrier(benchmark.pattern, setup, pool);
  }
  return outcome.latency_ns;
}

std::string kind_of(const MicroResult& result) {
  if (result.barrier) return "barriers";
  return result.what.cores.size() == 1 ? "alone" : result.what.pattern;
}

std::vector<Closure> closures_of(const std::vector<MicroResult>& results) {
  std::vector<Closure> closures;
  for (const MicroResult& result : results) {
    const std::string kind = kind_of(result);
    auto closure = std::find_if(closures.begin(), closures.end(),
                                [&](const Closure& known) { return known.kind == kind; });
    if (closure == closures.end()) {
      Closure next;
      next.kind = kind;
      next.tolerance = result.barrier ? prediction_tolerance : closure_tolerance;
      next.prediction = result.barrier;
      closure = closures.insert(closures.end(), next);
    }
    const double error = result.error();
    ++closure->all;
    if (std::abs(error) <= closure->tolerance) ++closure->good;
    if (closure->worst_label.empty() || std::abs(error) > std::abs(closure->worst)) {
      closure->worst = error;
      closure->worst_label = result.what.label;
    }
  }
  return closures;
}

bool all_close(const std::vector<Closure>& closures) {
  return std::all_of(closures.begin(), closures.end(),
                     [](const Closure& c) { return c.prediction || c.closes(); });
}

std::string verdict(const Closure& closure) {
  const char* const word = closure.prediction ? closure.closes() ? "holds" : "does not hold"
                           : closure.closes() ? "closes"
                                              : "does not close";
  return fmt::format("{:<12} {:<14} {} of {} within {:.0f} %, the worst {:+.1f} % ({})",
                     closure.kind, word, closure.good, closure.all, 100 * closure.tolerance,
                     100 * closure.worst, closure.worst_label);
}

Measured measure_machine(const MeasureOptions& options) {
  const Topology here = Topology::this_machine();
  const auto cores = static_cast<unsigned>(here.cores().size());
  if (cores < 2) {
    throw Error(Status::unsupported,
                "this process may use one core only: there is no distance to measure");
  }
  MachineSketch sketch;
  sketch.name = options.name;
  sketch.about = fmt::format("Measured on {} cores by `muster machine measure`", cores);
  sketch.topology =
      options.topology.empty() ? synthetic_description(here, "--topology") : options.topology;
  sketch.ll_sc = has_ll_sc();
  sketch.latency_source = "measured: see `fitted`";
  const std::vector<PairClass> classes = pair_classes(here);
  for (const PairClass& c : classes) sketch.latencies.push_back({c.level, 30});
  Measured measured;
  measured.machine = machine_like(load_machine("kunpeng920-2s"), sketch);
  MachineModel& machine = measured.machine;
  // So few polled flags do not tell one from the other.
  machine.set("set-fill", 0, "assumed: poll-overlap stands for it");
  machine.set("poll-overlap", 3.5, "assumed: where its fit begins");
  if (machine.shape->cores().size() != cores) {
    throw Error(Status::invalid, fmt::format("the topology has {} cores, this process may use {}",
                                             machine.shape->cores().size(), cores));
  }

  const unsigned team = std::min(cores, options.cores_max);
  std::vector<MicroBenchmark> all = own_benchmarks();
  const std::size_t own = all.size();
  for (MicroBenchmark& benchmark : micro_benchmarks(classes, team)) all.push_back(benchmark);
  const std::size_t micro = all.size();
  if (options.barriers) {
    for (const std::string& name : modelled_barriers()) all.push_back({name, name, {0, 1}, 2});
  }

  // Round by round, with the round trip of two flags before and after each: virtual machines have
  // faster and slower hours, and only rounds of one kind are comparable.
  const MicroBenchmark& reference = all[own];
  std::vector<std::vector<double>> samples(all.size());
  std::vector<double> turns;
  std::vector<double> speed;
  for (unsigned round = 0; round < options.rounds; ++round) {
    if (options.progress)
      options.progress(fmt::format("round {} of {}", round + 1, options.rounds));
    const double before = hardware_ns(here, reference);
    for (std::size_t n = 0; n < all.size(); ++n) {
      samples[n].push_back(hardware_ns(here, all[n]));
    }
    turns.push_back(relax_ns(here.cores().front().pus.front()));
    const double after = hardware_ns(here, reference);
    const bool steady = std::max(before, after) < 1.25 * std::min(before, after);
    speed.push_back(steady ? (before + after) / 2 : -1);
  }
  std::vector<double> steady;
  for (const double ns : speed) {
    if (ns > 0) steady.push_back(ns);
  }
  if (steady.empty()) {
    throw Error(Status::system,
                "this machine changed its speed in every round: measure again when it is quiet");
  }
  const double usual = median_of(steady);
  const auto median_when_usual = [&](const std::vector<double>& values) {
    std::vector<double> kept;
    for (std::size_t round = 0; round < values.size(); ++round) {
      if (std::abs(speed[round] / usual - 1) <= 0.2) kept.push_back(values[round]);
    }
    measured.rounds_kept = static_cast<unsigned>(kept.size());
    return median_of(kept);
  };
  measured.rounds = options.rounds;
  for (std::size_t n = 0; n < all.size(); ++n) {
    const bool fitted = n >= own && n < micro;
    measured.results.push_back({all[n], median_when_usual(samples[n]), 0, fitted, n >= micro});
  }
  measured.ping_pong_ns = measured.results[own].measured_ns / 2;

  const auto per_operation = [&](std::size_t n) {
    return measured.results[n].measured_ns / own_count;
  };
  set_measured(machine, "hit", per_operation(0), "a look at what is in the core's own cache");
  set_measured(machine, "store-gap", per_operation(1), "stores to an own line");
  set_measured(machine, "rmw-local", per_operation(2), "additions to an own line");
  set_measured(machine, "poll-turn", median_when_usual(turns), "a turn of the polling loop");
  set_measured(machine, "call", 0, "a loop around the barrier, and nothing else");
  set_measured(machine, "message", 0, "a message is a flag here, without an MPI around it");
  machine.mechanisms = machine.mechanisms.without(Mechanism::message_slots);
  machine.provenance["without-message-slots"] = "published: this program's messages are flags";
  for (const auto& [level, size, ways] : {std::tuple(2, "private-cache", "private-ways"),
                                          std::tuple(3, "shared-cache", "shared-ways")}) {
    const auto [kib, count] = cache_of(level);
    if (kib <= 0 || count <= 0) continue;
    machine.set(size, kib, "published: the kernel, /sys/devices/system/cpu");
    machine.set(ways, count, "published: the kernel, /sys/devices/system/cpu");
  }
  machine.provenance["topology"] = "measured: by hwloc";
  machine.provenance["rmw"] = "published: the instructions this program was compiled to";
  if (options.progress) options.progress("fitting");
  machine.set("owner-hold", 1, "assumed: a request has to travel");
  set_run_ahead(machine);
  set_latencies(machine, classes, measured.results);
  fit_to(machine, classes, measured.results, team);
  StackPool pool;
  for (MicroResult& result : measured.results) {
    result.modelled_ns = model_ns(machine, result.what, pool);
  }
  const double rms =
      log_rms(measured.results, options.barriers ? &MicroResult::barrier : &MicroResult::fitted);
  machine.error = std::max(0.05, 1.28 * rms);
  machine.provenance["error"] =
      options.barriers ? "measured: 1.28 rms of the log ratios of barriers of two ranks"
                       : "measured: 1.28 rms of the log ratios of the micro-benchmarks";
  return measured;
}

}  // namespace muster::sim
