// SPDX-License-Identifier: BSD-3-Clause
#include "bench/lock_run.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "bench/measure.hpp"
#include "bench/regime.hpp"
#include "bench/report.hpp"
#include "bench/stop.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"
#include "machine/usable_cpus.hpp"
#include "topology/topology.hpp"

namespace muster::bench {
namespace {

constexpr std::int64_t kNsPerS = 1'000'000'000;
constexpr std::int64_t kStart_ns = 5 * kNsPerS;
constexpr std::int64_t kPatience_ns = 2 * kNsPerS;
constexpr std::int64_t kStall_ns = 20 * kNsPerS;  // without any of a given number of operations
constexpr std::int64_t kSliceMin_ns = 2'000'000;
constexpr unsigned kThreadsMax = 4096;
constexpr double kSecondsDefault = 28;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Each once, in the order in which they came first.
template <class T>
std::vector<T> without_repeats(const std::vector<T>& items) {
  std::vector<T> once;
  for (const T& item : items) {
    if (std::find(once.begin(), once.end(), item) == once.end()) once.push_back(item);
  }
  return once;
}

std::vector<unsigned> threads_of(const LockRunOptions& options, const Regime* regime,
                                 unsigned cpus) {
  const std::vector<unsigned> asked = without_repeats(options.threads);
  if (regime != nullptr) return regime->participants(asked, cpus);
  return asked.empty() ? std::vector<unsigned>{1, 2, 4, 8} : asked;
}

void check_locks(const std::vector<std::string>& names) {
  std::string known = "all, ours, peers";
  for (const LockEntry& entry : lock_entries()) known += ", " + entry.name;
  for (const std::string& name : names) {
    const bool group = name == "all" || name == "ours" || name == "peers";
    const bool one = std::any_of(lock_entries().begin(), lock_entries().end(),
                                 [&](const LockEntry& entry) { return entry.name == name; });
    if (!group && !one) {
      throw Error(Status::unknown_name, fmt::format("no lock \"{}\"; there are: {}", name, known));
    }
  }
}

bool is_asked(const LockRunOptions& options, const LockEntry& entry) {
  const auto& asked = options.locks;
  const bool by_group = contains(asked, "all") ||
                        (contains(asked, "ours") && entry.kind == LockEntry::ours) ||
                        (contains(asked, "peers") && entry.kind == LockEntry::peer);
  return contains(asked, entry.name) || (by_group && (!entry.for_readers || options.readers > 0));
}

/// A lock has a turn of two milliseconds at least.
double least_s(std::size_t turns) { return static_cast<double>(turns) * kSliceMin_ns / 1e9; }

void check_time(const LockRunOptions& o) {
  std::size_t settings = 0;
  const std::vector<const Regime*> regimes =
      o.regimes.empty() ? std::vector<const Regime*>{nullptr} : parse_regimes(o.regimes);
  for (const Regime* regime : regimes) settings += threads_of(o, regime, usable_cpus()).size();
  const auto locks = static_cast<std::size_t>(std::count_if(
      lock_entries().begin(), lock_entries().end(),
      [&](const LockEntry& entry) { return is_asked(o, entry) && entry.package.empty(); }));
  const std::size_t rows = settings * without_repeats(o.patterns).size() * locks;
  if (const double least = least_s(rows * o.rounds); *o.seconds < least) {
    throw Error(Status::invalid,
                fmt::format("--seconds {}: {} in {} take {:.3g} at least", *o.seconds,
                            counted(rows, "rows"), counted(o.rounds, "rounds"), least));
  }
}

/// The array, shared by all teams: they take turns.
class Array {
 public:
  explicit Array(std::uint64_t words) : words_(words) {
    void* const memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
      throw Error(Status::no_memory,
                  fmt::format("no {} MB for the array: make --array smaller", bytes() >> 20));
    }
    data_ = static_cast<std::uint32_t*>(memory);
  }
  ~Array() { munmap(data_, bytes()); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  std::uint32_t* data() const { return data_; }

 private:
  std::size_t bytes() const { return words_ * sizeof(std::uint32_t); }
  std::uint64_t words_;
  std::uint32_t* data_ = nullptr;
};

struct Candidate {
  LockRow row;
  const LockEntry* entry = nullptr;
  std::unique_ptr<LockTeam> team;
  std::vector<LatencySample> latencies;
  std::vector<Turn> turns;
  std::int64_t cpu_ns = 0;
  Activity activity;

  void end(RowStatus status, std::string reason) {
    row.status = status;
    row.reason = std::move(reason);
    team.reset();
  }
};

class Run {
 public:
  Run(const LockRunOptions& options, const std::function<void(const Progress&)>& report)
      : report_(report), topology_(Topology::this_machine()) {
    check(options);
    results_.options = options;
    results_.options.patterns = without_repeats(options.patterns);
    results_.host = this_host();
    results_.cpus = usable_cpus();
    mapping_ = parse_map_by(options.map_by);
    choose();
    choose_regimes();
  }

  LockRunResults run() {
    const Array array(options().array);
    begin_ns_ = clock_ns();
    std::size_t groups = 0;
    for (const Regime* regime : regimes_) groups += threads_in(regime).size();
    const std::size_t rows = groups * options().patterns.size() * chosen_.size();
    turns_ = rows * options().rounds;
    if (!options().seconds) {
      results_.options.seconds = options().regimes.empty()
                                     ? std::max(kSecondsDefault, least_s(turns_))
                                     : options().turn_ms / 1000 * static_cast<double>(turns_);
    }
    share_ns_ = static_cast<std::int64_t>(seconds() * 1e9) /
                static_cast<std::int64_t>(std::max<std::size_t>(1, rows));
    for (const Regime* regime : regimes_) {
      if (regime != nullptr) disturbance_.emplace(*regime, topology_.pus());
      for (const Pattern pattern : options().patterns) {
        for (const unsigned threads : threads_in(regime)) {
          if (!stop_asked()) run_group(array, regime, pattern, threads);
        }
      }
      disturbance_.reset();
    }
    results_.stopped = stop_asked();
    results_.noise = judge(activity_, results_.cpus);
    results_.elapsed_s = static_cast<double>(clock_ns() - begin_ns_) / 1e9;
    return std::move(results_);
  }

 private:
  const LockRunOptions& options() const { return results_.options; }
  double seconds() const { return options().seconds.value_or(0); }
  std::vector<unsigned> threads_in(const Regime* regime) const {
    return threads_of(options(), regime, results_.cpus);
  }

  void choose_regimes() {
    if (options().regimes.empty()) regimes_ = {nullptr};
    const std::vector<const Regime*> asked = parse_regimes(options().regimes);
    check_participants(asked, options().threads, results_.cpus);
    for (const Regime* regime : asked) {
      const std::string why = regime->late_ns != 0 ? "nobody waits for the last one at a lock"
                                                   : why_not(*regime, topology_.pus());
      if (why.empty()) regimes_.push_back(regime);
      const std::string said =
          why.empty() ? regime->why_fewer(options().threads, results_.cpus) : why;
      if (!said.empty()) results_.left_out.push_back({std::string(regime->name), said});
    }
  }

  void choose() {
    for (const LockEntry& entry : lock_entries()) {
      if (!is_asked(options(), entry)) continue;
      if (!entry.package.empty()) {
        results_.left_out.push_back({entry.name, "install " + entry.package + " and build again"});
      } else {
        chosen_.push_back(&entry);
      }
    }
  }

  void run_group(const Array& array, const Regime* regime, Pattern pattern, unsigned threads) {
    LockSetting setting;
    if (disturbance_) setting.cgroup = disturbance_->cgroup();
    setting.threads = threads;
    setting.pattern = pattern;
    setting.stride = options().stride;
    setting.operations = options().operations.value_or(0);
    setting.seed = options().seed;
    setting.readers = options().readers / 100;
    setting.array = array.data();
    setting.words = options().array;
    if (mapping_) setting.bindings = topology_.map_ranks(*mapping_, threads);
    std::vector<Candidate> candidates;
    for (const LockEntry* entry : chosen_) {
      Candidate c;
      c.entry = entry;
      c.row.regime = regime;
      c.row.lock = entry->name;
      c.row.kind = entry->kind;
      c.row.threads = threads;
      c.row.pattern = pattern;
      setting.lock = entry->name;
      c.team = std::make_unique<LockTeam>(*entry, setting);
      const LockTeam::State begun = c.team->await_idle(clock_ns() + kStart_ns);
      if (begun != LockTeam::State::idle) {
        c.end(RowStatus::failed,
              begun == LockTeam::State::failed ? c.team->error() : "its threads did not start");
      }
      candidates.push_back(std::move(c));
    }
    const unsigned rounds = options().rounds;
    unsigned round = 0;
    for (; round < rounds && !stop_asked(); ++round) {
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        // Another one begins each round: nobody always follows the same neighbour.
        Candidate& c = candidates[(i + round) % candidates.size()];
        c.row.rounds_ops_s.resize(round + 1, kNone);
        turn_ = fmt::format("{}{}, {}, round {} of {}, {}", regime_prefix(regime),
                            pattern_name(pattern), counted(threads, "threads"), round + 1, rounds,
                            c.row.lock);
        if (c.team != nullptr) run_slice(c, std::max(kSliceMin_ns, share_ns_ / rounds));
        ++turns_done_;
        tell(0);
      }
    }
    if (round > 0) finish(candidates);
  }

  void run_slice(Candidate& c, std::int64_t slice_ns) {
    const CpuTimes before = cpu_times(topology_.pus());
    const std::uint64_t involuntary = c.team->involuntary_switches();
    const std::int64_t cpu_before = c.team->cpu_ns();
    const std::int64_t hogs_before = disturbance_ ? disturbance_->cpu_ns() : 0;
    const std::int64_t begin_ns = clock_ns();
    c.team->start_slice();
    const LockTeam::State state =
        options().operations ? await_operations(*c.team) : await_end(*c.team, begin_ns + slice_ns);
    if (state == LockTeam::State::failed) return c.end(RowStatus::failed, c.team->error());
    if (state == LockTeam::State::busy) {
      return c.end(RowStatus::did_not_finish,
                   options().operations
                       ? fmt::format("its threads got no further for {} s", kStall_ns / kNsPerS)
                       : fmt::format("its threads did not come to an end within {} ms",
                                     (kPatience_ns + slice_ns) / 1'000'000));
    }
    const CpuTimes after = cpu_times(topology_.pus());
    Activity activity;
    activity.wall_ns = clock_ns() - begin_ns;
    activity.participant_ns = activity.wall_ns * c.row.threads;
    activity.known = before.known && after.known;
    activity.busy_ns = after.busy_ns - before.busy_ns;
    activity.steal_ns = after.steal_ns - before.steal_ns;
    const std::int64_t cpu_ns = c.team->cpu_ns() - cpu_before;
    // The hogs are no others: they belong to the measurement.
    activity.team_cpu_ns = cpu_ns + (disturbance_ ? disturbance_->cpu_ns() - hogs_before : 0);
    const bool has_server = c.row.lock.rfind("rcl", 0) == 0;
    activity.involuntary = c.team->involuntary_switches() - involuntary;
    activity.oversubscribed = c.row.threads + (has_server ? 1 : 0) > results_.cpus ||
                              (c.row.regime != nullptr && c.row.regime->disturbed);
    c.activity.add(activity);
    activity_.add(activity);
    const Turn turn = c.team->slice();
    c.row.rounds_ops_s.back() = 1e9 / turn.mean_ns();
    c.turns.push_back(turn);
    c.cpu_ns += cpu_ns;
    const std::vector<LatencySample> latencies = c.team->latencies();
    c.latencies.insert(c.latencies.end(), latencies.begin(), latencies.end());
  }

  LockTeam::State await_operations(LockTeam& team) {
    const auto all = static_cast<double>(*options().operations);
    return team.await_operations(
        kStall_ns, [&](std::uint64_t done) { tell(static_cast<double>(done) / all); });
  }

  static LockTeam::State await_end(LockTeam& team, std::int64_t end_ns) {
    if (team.await_idle(end_ns) == LockTeam::State::busy) team.end_slice();
    return team.await_idle(end_ns + kPatience_ns);
  }

  void finish(std::vector<Candidate>& candidates) {
    const std::vector<double>* pthread = nullptr;
    const std::vector<double>* best = nullptr;
    double best_median = 0;
    for (Candidate& c : candidates) {
      LockRow& row = c.row;
      row.noise = judge(c.activity, results_.cpus);
      if (c.team == nullptr) continue;
      std::vector<std::vector<double>> blocks;
      for (const double value : row.rounds_ops_s) {
        if (!std::isnan(value)) blocks.push_back({value});
      }
      row.throughput_ops_s = summarize(blocks, options().seed);
      const Interval mean_ns = mean_interval(c.turns, options().seed);
      row.mean_ops_s = 1e9 / mean_of(c.turns);
      row.mean_ci95 = {1e9 / mean_ns.hi, 1e9 / mean_ns.lo};
      row.latency_ns = latency_distribution(std::move(c.latencies));
      row.cache_misses_percent = c.team->cache_misses_percent();
      const std::vector<std::uint64_t> operations = c.team->operations();
      const auto [fewest, most] = std::minmax_element(operations.begin(), operations.end());
      row.fairness = *fewest == 0 ? std::numeric_limits<double>::infinity()
                                  : static_cast<double>(*most) / static_cast<double>(*fewest);
      for (const std::uint64_t count : operations) row.operations += count;
      row.cpu_ns = static_cast<double>(c.cpu_ns) / static_cast<double>(row.operations);
      if (row.lock == "pthread_mutex") pthread = &row.rounds_ops_s;
      // Without waiting, or without a lock, is not the same task.
      const bool compared = row.kind != LockEntry::reference && row.lock != "rcl-post";
      if (compared && row.throughput_ops_s.median > best_median) {
        best_median = row.throughput_ops_s.median;
        best = &row.rounds_ops_s;
      }
    }
    for (Candidate& c : candidates) {
      if (c.team == nullptr) continue;
      if (pthread != nullptr) {
        c.row.to_pthread = paired_ratio(c.row.rounds_ops_s, *pthread, options().seed);
      }
      if (best != nullptr) c.row.to_best = paired_ratio(c.row.rounds_ops_s, *best, options().seed);
    }
    for (Candidate& c : candidates) results_.rows.push_back(std::move(c.row));
  }

  /// `share` of the turn that is on is done: known of operations, which turns have alike.
  void tell(double share) {
    const double done_s = static_cast<double>(clock_ns() - begin_ns_) / 1e9;
    // Turns take what they take: to start a team, to wait for one that comes to no end.
    const double turns = static_cast<double>(turns_done_) + share;
    const double so_far_s = done_s * static_cast<double>(turns_) / turns;
    const double all_s = options().operations ? so_far_s : std::max(seconds(), so_far_s);
    report_({std::min(1.0, done_s / all_s), std::max(0.0, all_s - done_s), turn_});
  }

  const std::function<void(const Progress&)>& report_;
  Topology topology_;
  LockRunResults results_;
  std::optional<Mapping> mapping_;
  std::vector<const LockEntry*> chosen_;
  std::vector<const Regime*> regimes_;      // null: none was asked for
  std::optional<Disturbance> disturbance_;  // in which a group runs
  Activity activity_;
  std::int64_t begin_ns_ = 0;
  std::int64_t share_ns_ = 0;
  std::string turn_;  ///< that is on
  std::size_t turns_ = 0;
  std::size_t turns_done_ = 0;
};

}  // namespace

void check(const LockRunOptions& o) {
  unsigned most = 0;
  for (const unsigned count : threads_of(o, nullptr, 1)) {
    if (count < 1 || count > kThreadsMax) {
      throw Error(Status::invalid, fmt::format("--threads {}: 1 to {}", count, kThreadsMax));
    }
    most = std::max(most, count);
  }
  if (o.array < 1 || o.array >> 32 != 0 || o.stride < 1) {
    throw Error(Status::invalid, "--array: 1 to 2^32 - 1; --stride: 1 or more");
  }
  if (o.operations && *o.operations < most) {
    throw Error(Status::invalid, fmt::format("--operations {}: {} or more, one for each thread",
                                             *o.operations, most));
  }
  if (!(o.readers >= 0 && o.readers <= 100))
    throw Error(Status::invalid, fmt::format("--readers {}: 0 to 100", o.readers));
  if (o.seconds) check_seconds(*o.seconds);
  check_turn(o.turn_ms);
  static_cast<void>(parse_regimes(o.regimes));
  if (!o.regimes.empty() && o.operations) {
    throw Error(Status::invalid, "--operations: with --regime a turn has its time");
  }
  if (o.rounds < 1) throw Error(Status::invalid, "--rounds: 1 or more");
  static_cast<void>(parse_map_by(o.map_by));
  check_locks(o.locks);
  if (o.seconds && !o.operations) check_time(o);
}

Conclusion<LockRow> conclude(const std::vector<const LockRow*>& group) {
  Conclusion<LockRow> result;
  for (const LockRow* row : group) {
    // Without waiting is not the same task.
    if (row->status != RowStatus::ok || row->lock == "rcl-post") continue;
    if (row->lock == "auto") {
      result.take(result.automatic, *row);
    } else if (row->kind != LockEntry::reference) {
      result.take(row->kind == LockEntry::ours ? result.best_own : result.best_peer, *row);
    }
  }
  return result;
}

LockRunResults run_locks(const LockRunOptions& options,
                         const std::function<void(const Progress&)>& report) {
  return Run(options, report).run();
}

}  // namespace muster::bench
