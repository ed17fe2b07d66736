// SPDX-License-Identifier: BSD-3-Clause
#include "bench/barrier_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "barrier/registry.hpp"
#include "bench/candidate.hpp"
#include "bench/noise.hpp"
#include "bench/regime.hpp"
#include "bench/stop.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"
#include "machine/usable_cpus.hpp"
#include "topology/topology.hpp"
#include "wait/policy.hpp"

namespace muster::bench {
namespace {

constexpr std::int64_t kNsPerS = 1'000'000'000;
constexpr std::int64_t kSliceWanted_ns = 40'000'000;
constexpr std::int64_t kSliceMin_ns = 1'000'000;
constexpr unsigned kTurns = 7;
/// Who is disturbed may come to the end of an episode late, and of each turn.
constexpr std::int64_t kTurnOvertime_ns = 3 * kNsPerS;
constexpr std::int64_t kBatch_ns = 50'000;
constexpr std::int64_t kLongBatch_ns = 500'000;
constexpr std::int64_t kStart_ns = 5 * kNsPerS;
/// A launcher and its ranks share their CPUs with the disturbance.
constexpr std::int64_t kLaunch_ns = 60 * kNsPerS;
constexpr double kLaunchExpected_s = 1.5;  // with its end
/// How much longer than its share one may take before it is given up, once; and all together, as a
/// part of the whole time and at least. Otherwise a busy moment would pass for a hang.
constexpr std::int64_t kOvertime_ns = kNsPerS / 2;
constexpr std::int64_t kOvertimeLast_ns = kNsPerS / 20;  // when there is no more
constexpr std::int64_t kOvertimePart = 4;
constexpr std::int64_t kOvertimeMin_ns = 2 * kNsPerS;
constexpr unsigned kParticipantsMax = 4096;
constexpr std::size_t kPingPongSamplesMin = 20;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::int64_t ns_of(double seconds) {
  return static_cast<std::int64_t>(seconds * static_cast<double>(kNsPerS));
}

std::int64_t overtime_of(double seconds) {
  return std::max(kOvertimeMin_ns, ns_of(seconds) / kOvertimePart);
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string names_of(Other::Kind kind) {
  std::string names;
  for (const Other& other : others()) {
    if (other.kind == kind) names += fmt::format("{}{}", names.empty() ? "" : ", ", other.name);
  }
  return names;
}

class Run {
 public:
  Run(const RunOptions& options, const std::function<void(const Progress&)>& report)
      : report_(report), topology_(Topology::this_machine()) {
    results_.options = options;
    results_.host = this_host();
    results_.cpus = usable_cpus();
    const Topology imposed =
        Topology::from_spec_or_environment(options.topology, Topology::Cpus::of_host);
    results_.topology = imposed.source();
    results_.topology_imposed = !imposed.is_this_machine();
    RunOptions& o = results_.options;
    if (o.participants.empty() && o.regimes.empty()) {
      o.participants = default_participants(results_.cpus);
    }
    if (o.algorithms.empty()) o.algorithms = {o.regimes.empty() ? "all" : "auto"};
    if (o.waits.empty()) {
      o.waits = {"auto"};
      if (!o.regimes.empty()) {
        o.waits.insert(o.waits.end(),
                       {"spin", "yield", "sleep", "spin-yield", "spin-yield-sleep", "yield-sleep"});
      }
    }
    check_options();
    choose_algorithms();
    choose_peers();
    make_groups();
    for (const Group& group : groups_) candidates_left_ += group.candidates.size();
    if (const double least_s = least_s_for_all(); o.seconds && *o.seconds < least_s) {
      throw Error(Status::invalid, fmt::format("--seconds {}: {} in {} take {:.3g} at least",
                                               *o.seconds, counted(candidates_left_, "barriers"),
                                               counted(least_rounds(), "rounds"), least_s));
    }
  }

  RunResults run() {
    leave_out_regimes();
    candidates_left_ = 0;
    for (Group& group : groups_) candidates_left_ += group.candidates.size();
    const double seconds = seconds_for_all();
    const std::int64_t begin_ns = clock_ns();
    deadline_ns_ = begin_ns + ns_of(seconds);
    begin_ns_ = begin_ns;
    overtime_ns_ = overtime_of(seconds);
    results_.options.seconds = seconds;
    for (Group& group : groups_) {
      if (group.candidates.empty()) continue;  // nobody was asked for
      // What launching takes is known when it is over.
      if (!options().mpi.empty()) deadline_ns_ = clock_ns() + ns_of(seconds_for_all());
      if (group.regime != nullptr) disturbance_.emplace(*group.regime, topology_.pus());
      const bool any = run_group(group) > 0;
      candidates_left_ -= group.candidates.size();
      if (any) finish_group(group);
      disturbance_.reset();
      results_.stopped = stop_asked();
      if (results_.stopped) break;
    }
    results_.noise = judge(activity_, results_.cpus);
    results_.elapsed_s = static_cast<double>(clock_ns() - begin_ns) / 1e9;
    for (const Row& row : results_.rows) {
      if (row.implementation == "ping-pong" && !row.noise.noisy &&
          row.latency_ns.samples >= kPingPongSamplesMin && results_.ping_pong_ns == 0) {
        results_.ping_pong_ns = row.latency_ns.median;
      }
    }
    return std::move(results_);
  }

 private:
  const RunOptions& options() const { return results_.options; }

  void check_options() {
    const RunOptions& o = options();
    for (const unsigned count : o.participants) {
      if (count < 1 || count > kParticipantsMax) {
        throw Error(Status::invalid, fmt::format("--participants {}: 1 to {} are possible", count,
                                                 kParticipantsMax));
      }
    }
    mapping_ = parse_map_by(o.map_by);
    for (const std::string& wait : o.waits) static_cast<void>(WaitPolicy::by_name(wait, 1, 1));
    regimes_ = {nullptr};
    if (!o.regimes.empty()) regimes_ = parse_regimes(o.regimes);
    check_participants(regimes_, o.participants, results_.cpus);
    check_turn(o.turn_ms);
    if (o.via != "c" && o.via != "template" && o.via != "both") {
      throw Error(Status::unknown_name,
                  fmt::format("no way \"{}\" to call; there are: c, template, both", o.via));
    }
    if (o.seconds) check_seconds(*o.seconds);
  }

  double seconds_for_all() const {
    if (options().seconds) return *options().seconds;
    if (options().regimes.empty()) return std::max(kSecondsDefault, least_s_for_all());
    const double launch_s = options().mpi.empty() ? 0 : kLaunchExpected_s;
    return (turns_s() + launch_s) * static_cast<double>(candidates_left_);
  }

  unsigned least_rounds() const { return std::max(options().rounds, 5U); }
  double least_s_for_all() const {
    return 1e-9 * static_cast<double>(candidates_left_ * least_rounds() * kSliceMin_ns);
  }

  double turns_s() const { return options().turn_ms / 1000 * rounds_of_turns(); }

  unsigned rounds_of_turns() const { return options().rounds != 0 ? options().rounds : kTurns; }

  /// Before time is shared out: what this machine cannot make has no part in it.
  void leave_out_regimes() {
    for (const Regime* regime : regimes_) {
      if (regime == nullptr) continue;
      const std::string why = why_not(*regime, topology_.pus());
      const std::string said =
          why.empty() ? regime->why_fewer(options().participants, results_.cpus) : why;
      if (!said.empty()) results_.left_out.push_back({std::string(regime->name), said});
      if (why.empty()) continue;
      std::erase_if(groups_, [&](const Group& group) { return group.regime == regime; });
    }
  }

  void choose_algorithms() {
    for (const std::string& name : options().algorithms) {
      if (name == "none") continue;
      if (is_over_messages(name)) {
        add_algorithm(name);
        continue;
      }
      if (name != "all") {
        static_cast<void>(parse_level_mask(parse_algorithm(name).levels));
        add_algorithm(name);
        continue;
      }
      add_algorithm("auto");
      for (const std::string_view registered : barrier_names())
        add_algorithm(std::string(registered));
    }
  }

  void add_algorithm(const std::string& name) {
    if (!contains(algorithms_, name)) algorithms_.push_back(name);
  }

  void choose_peers() {
    const std::vector<std::string>& asked = options().peers;
    for (const std::string& name : asked) {
      if (name == "all" || name == "none" || name == "ck") continue;
      const Other* const other = find_other(name, Other::peer);
      if (other == nullptr) {
        throw Error(Status::unknown_name,
                    fmt::format("no peer \"{}\"; there are: all, none, ck (its five), {}", name,
                                names_of(Other::peer)));
      }
      if (const std::string why = why_missing(*other); !why.empty()) {
        throw Error(Status::unsupported, fmt::format("{}: {}", name, why));
      }
    }
    for (const Other& other : others()) {
      const bool is_ck = other.name.rfind("ck-", 0) == 0;
      const bool wanted =
          (other.kind == Other::reference && options().regimes.empty()) ||
          (other.kind == Other::hidden && contains(options().hidden, other.name)) ||
          (other.kind == Other::peer && (contains(asked, "all") || contains(asked, other.name) ||
                                         (is_ck && contains(asked, "ck"))));
      if (!wanted) continue;
      if (const std::string why = why_missing(other); !why.empty()) {
        results_.left_out.push_back({std::string(other.name), why});
      } else {
        others_.push_back(&other);
      }
    }
    for (const std::string& name : options().hidden) {
      if (find_other(name, Other::hidden) == nullptr) {
        throw Error(Status::unknown_name, fmt::format("no test contestant \"{}\"", name));
      }
    }
  }

  static const Other* find_other(std::string_view name, Other::Kind kind) {
    for (const Other& other : others()) {
      if (other.kind == kind && other.name == name) return &other;
    }
    return nullptr;
  }

  void make_groups() {
    // The ping-pong is recorded beside every result.
    const std::vector<unsigned>& asked = options().participants;
    const bool only_ping_pong =
        options().regimes.empty() && std::find(asked.begin(), asked.end(), 2U) == asked.end();
    if (only_ping_pong && !options().modes.empty()) {
      groups_.push_back({nullptr, options().modes.front(), 2, {}});
      add_candidate(groups_.back(), find_other("ping-pong", Other::reference), {});
    }
    std::set<std::tuple<const Regime*, Mode, unsigned>> seen;
    for (const Regime* regime : regimes_) {
      std::vector<unsigned> counts = asked;
      if (regime != nullptr) {
        if (asked.empty() && !options().mpi.empty() && !regime->crowded) counts = {2, 4};
        counts = regime->participants(counts, results_.cpus);
      }
      for (const Mode mode : options().modes) {
        for (const unsigned count : counts) {
          if (!seen.insert({regime, mode, count}).second) continue;
          if (options().mpi.empty()) {
            add_group({regime, mode, count, {}});
          } else {
            add_mpi_groups(regime, count);
          }
        }
      }
    }
  }

  void add_mpi_groups(const Regime* regime, unsigned ranks) {
    const MpiInstallation* mpi = nullptr;
    for (const MpiContender& contender : options().mpi) {
      if (contender.mpi != mpi) groups_.push_back({regime, Mode::processes, ranks, {}});
      mpi = contender.mpi;
      add_candidate(groups_.back(), nullptr, {contender.name, "auto", false});
      Candidate& c = groups_.back().candidates.back();
      c.contender = &contender;
      c.spec.launcher = mpi_command(contender, ranks);
      c.spec.bindings.clear();  // that is the launcher's
      c.row.ours = contender.ours;
      c.row.mpi = mpi->name;
      c.row.implementation = contender.name;
      c.row.map_by = ranks_are_bound(ranks) ? "core" : "none";
    }
  }

  void add_group(Group group) {
    for (const std::string& algorithm : algorithms_) {
      for (const std::string& wait : options().waits) {
        const bool has_c = !is_over_messages(algorithm);
        if (has_c && options().via != "template")
          add_candidate(group, nullptr, {algorithm, wait, false});
        if (!has_c || options().via != "c") add_candidate(group, nullptr, {algorithm, wait, true});
      }
    }
    for (const Other* other : others_) {
      if (other->only_participants != 0 && other->only_participants != group.participants) continue;
      if (group.mode == Mode::threads ? other->threads : other->processes) {
        add_candidate(group, other, {});
      } else {
        leave_out_once(*other, group.mode);
      }
    }
    groups_.push_back(std::move(group));
  }

  void leave_out_once(const Other& other, Mode mode) {
    for (const LeftOut& item : results_.left_out) {
      if (item.name == other.name) return;
    }
    results_.left_out.push_back(
        {std::string(other.name), fmt::format("does not run in {}", mode_name(mode))});
  }

  /// What one of ours is asked to be.
  struct Ours {
    std::string algorithm;
    std::string wait;
    bool through_template = false;
  };

  void add_candidate(Group& group, const Other* other, const Ours& ours) {
    Candidate c;
    Row& row = c.row;
    row.ours = other == nullptr;
    row.kind = other == nullptr ? Other::peer : other->kind;
    row.implementation = row.ours ? "muster" : std::string(other->name);
    row.algorithm = row.ours ? ours.algorithm : algorithm_of(*other);
    row.via = !row.ours                          ? ""
              : is_over_messages(ours.algorithm) ? "messages"
              : ours.through_template            ? "template"
                                                 : "c";
    row.regime = group.regime;
    row.participants = group.participants;
    row.mode = group.mode;
    row.map_by = options().map_by;
    row.wait_asked = ours.wait;
    row.wait = row.ours ? ours.wait : "its own";

    c.spec.other = other;
    if (mapping_) c.spec.bindings = topology_.map_ranks(*mapping_, group.participants);
    Setting& setting = c.spec.setting;
    setting.participants = group.participants;
    setting.mode = group.mode;
    setting.algorithm = ours.algorithm;
    setting.wait = ours.wait;
    setting.through_template = ours.through_template;
    setting.oversubscribed = is_oversubscribed(group);
    c.spec.by_turns = group.regime != nullptr;
    c.spec.late_ns = group.regime != nullptr ? group.regime->late_ns : 0;
    // Where participants take turns, who comes last to a single episode finds all others there:
    // only many in a row say how long one takes.
    c.spec.batch_ns = setting.oversubscribed ? kLongBatch_ns : kBatch_ns;
    if (results_.topology_imposed) {
      setting.topology = options().topology;
      if (mapping_) setting.map_by = options().map_by;
    } else {
      for (const PuSet& pus : c.spec.bindings) setting.bindings.push_back(pus.to_string());
    }
    group.candidates.push_back(std::move(c));
  }

  static std::string algorithm_of(const Other& other) {
    return std::string(other.name.rfind("ck-", 0) == 0 ? other.name.substr(3) : other.name);
  }

  bool is_oversubscribed(const Group& group) const {
    return group.participants > results_.cpus ||
           (group.regime != nullptr && group.regime->disturbed);
  }

  void tell(const Group& group, const std::string& what) {
    const double total = static_cast<double>(deadline_ns_ - begin_ns_);
    const double done = static_cast<double>(clock_ns() - begin_ns_);
    const double left = std::max(0.0, total - done);
    report_({std::min(1.0, done / total), left / 1e9,
             fmt::format("{}{}, {}", regime_prefix(group.regime),
                         group.candidates.front().row.where(), what)});
  }

  /// How many rounds are whole.
  std::int64_t run_group(Group& group) {
    tell(group, "starting");
    const auto n = static_cast<std::int64_t>(group.candidates.size());
    const auto candidates_left = static_cast<std::int64_t>(candidates_left_);
    const std::int64_t now_ns = clock_ns();
    // No group starts in the time of others.
    const std::int64_t end_ns = now_ns + (deadline_ns_ - now_ns) * n / candidates_left;
    for (Candidate& c : group.candidates) {
      if (stop_asked()) return 0;
      if (clock_ns() >= end_ns && c.contender == nullptr) {
        ++results_.without_time;
        c.end(RowStatus::did_not_finish, "no time was left for it: raise --seconds");
      } else {
        start(c);
      }
    }
    // Starting takes time, too: what is left is shared out anew for each group.
    const std::int64_t left_ns = std::max<std::int64_t>(0, deadline_ns_ - clock_ns());
    const std::int64_t share_ns =
        options().mpi.empty() ? std::max(least_rounds() * kSliceMin_ns, left_ns / candidates_left)
                              : ns_of(turns_s());
    const std::int64_t rounds = options().rounds != 0 ? std::int64_t{options().rounds}
                                : group.regime != nullptr
                                    ? kTurns
                                    : std::clamp<std::int64_t>(share_ns / kSliceWanted_ns, 5, 20);
    std::int64_t round = 0;
    for (; round < rounds && !stop_asked(); ++round) {
      for (std::int64_t i = 0; i < n; ++i) {
        // Another one begins each round: nobody always follows the same neighbour.
        Candidate& c = group.candidates[static_cast<std::size_t>((i + round) % n)];
        c.row.round_medians_ns.resize(static_cast<std::size_t>(round) + 1, kNone);
        c.row.round_means_ns.resize(static_cast<std::size_t>(round) + 1, kNone);
        if (c.team == nullptr) continue;
        const std::int64_t slice_ns = share_ns / rounds;
        // Whoever took too long before pauses, unless it has nothing to show yet.
        if (c.used_ns > slice_ns * round + slice_ns / 2 && !c.turns.empty()) continue;
        run_slice(c, slice_ns, share_ns);
        tell(group, fmt::format("round {} of {}, {}", round + 1, rounds, c.name()));
      }
    }
    if (round > 0) results_.rounds = static_cast<unsigned>(round);
    return round;
  }

  void start(Candidate& c) {
    const std::int64_t share_ns = std::max<std::int64_t>(0, deadline_ns_ - clock_ns()) /
                                  static_cast<std::int64_t>(candidates_left_);
    c.spec.batch_ns = std::max(c.spec.batch_ns, share_ns / (c.spec.samples_max / 2));
    if (disturbance_) c.spec.cgroup = disturbance_->cgroup();
    try {
      c.team = std::make_unique<Team>(c.spec);
    } catch (const Error& error) {
      c.end(RowStatus::failed, error.what());
      return;
    }
    const std::int64_t patience_ns = c.contender != nullptr ? kLaunch_ns : kStart_ns;
    switch (c.team->await_idle(clock_ns() + patience_ns)) {
      case Team::State::idle:
        break;
      case Team::State::busy:
        c.end(RowStatus::failed, "its participants did not start");
        return;
      case Team::State::declined:
        c.end(RowStatus::declined, c.team->error());
        return;
      case Team::State::failed:
        c.end(RowStatus::failed, c.team->error());
        return;
    }
    if (c.row.ours && c.contender == nullptr) {
      const std::string note = c.team->note();
      c.row.serves = note.substr(0, note.find('\n'));
      c.row.wait = note.substr(note.find('\n') + 1);
    }
  }

  void run_slice(Candidate& c, std::int64_t slice_ns, std::int64_t share_ns) {
    const CpuTimes cpu_before = cpu_times(topology_.pus());
    const std::uint64_t involuntary_before = c.team->involuntary_switches();
    const std::int64_t team_cpu_before = c.team->cpu_ns();
    const std::int64_t hogs_before = disturbance_ ? disturbance_->cpu_ns() : 0;
    const Turn timed_before = c.team->timed();
    const std::int64_t begin_ns = clock_ns();
    // An episode may last as long as all that is left of this one's time, and of the overtime,
    // which is added to the run: the others still get all of theirs.
    const std::int64_t patience_ns = std::max(slice_ns, share_ns - c.used_ns);
    const std::int64_t extra_ns = c.spec.by_turns
                                      ? kTurnOvertime_ns
                                      : std::clamp(overtime_ns_, kOvertimeLast_ns, kOvertime_ns);
    c.team->start_slice(slice_ns);
    if (c.spec.by_turns && c.team->await_idle(begin_ns + slice_ns) == Team::State::busy) {
      c.team->end_turn();
    }
    const Team::State state = c.team->await_idle(begin_ns + patience_ns + extra_ns);
    const std::int64_t took_ns = clock_ns() - begin_ns;
    const std::int64_t over_ns = std::clamp<std::int64_t>(
        took_ns - patience_ns, 0,
        c.spec.by_turns ? extra_ns : std::max<std::int64_t>(0, overtime_ns_));
    if (!c.spec.by_turns) overtime_ns_ -= over_ns;
    deadline_ns_ += over_ns;
    c.used_ns += took_ns;
    if (state == Team::State::busy) {
      c.end(RowStatus::did_not_finish,
            fmt::format("an episode did not end within {} ms", took_ns / 1'000'000));
      return;
    }
    if (state != Team::State::idle) {
      c.end(state == Team::State::declined ? RowStatus::declined : RowStatus::failed,
            c.team->error());
      return;
    }
    const CpuTimes cpu_after = cpu_times(topology_.pus());
    Activity activity;
    activity.wall_ns = took_ns;
    activity.participant_ns = took_ns * c.row.participants;
    activity.known = cpu_before.known && cpu_after.known;
    activity.busy_ns = cpu_after.busy_ns - cpu_before.busy_ns;
    activity.steal_ns = cpu_after.steal_ns - cpu_before.steal_ns;
    const std::int64_t team_cpu_ns = c.team->cpu_ns() - team_cpu_before;
    activity.team_cpu_ns = team_cpu_ns;
    // The hogs are no others: they belong to the measurement.
    if (disturbance_) activity.team_cpu_ns += disturbance_->cpu_ns() - hogs_before;
    activity.involuntary = c.team->involuntary_switches() - involuntary_before;
    activity.oversubscribed = c.spec.setting.oversubscribed;
    c.activity.add(activity);
    activity_.add(activity);

    const Turn timed_after = c.team->timed();
    const Turn turn{timed_after.ns - timed_before.ns, timed_after.episodes - timed_before.episodes};
    if (turn.episodes > 0) {
      c.turns.push_back(turn);
      c.row.round_means_ns.back() = turn.mean_ns();
    }
    c.cpu_ns += team_cpu_ns;
    const std::vector<LatencySample> singles = c.team->singles();
    c.singles.insert(c.singles.end(), singles.begin(), singles.end());
    std::vector<double> samples = c.team->take_samples();
    if (!samples.empty()) {
      c.row.round_medians_ns.back() = median(samples);
      c.blocks.push_back(std::move(samples));
    }
    const std::vector<double> skews = c.team->exit_skews();
    c.skews.insert(c.skews.end(), skews.begin(), skews.end());
  }

  void finish_group(Group& group) {
    for (Candidate& c : group.candidates) {
      if (c.team != nullptr) {
        c.row.episodes = c.team->episodes();
        c.team->quit();
      }
    }
    std::vector<Row> rows;
    for (Candidate& c : group.candidates) {
      Row& row = c.row;
      if (c.team != nullptr && c.contender != nullptr) {
        c.team->finish();
        const std::string why = why_not_ours(*c.contender, c.team->output());
        if (!why.empty()) c.end(RowStatus::failed, why);
      }
      c.team.reset();
      row.noise = judge(c.activity, results_.cpus);
      row.seconds = static_cast<double>(c.used_ns) / static_cast<double>(kNsPerS);
      if (row.status == RowStatus::ok)
        c.fill_row(options().seed + results_.rows.size() + rows.size());
      rows.push_back(std::move(row));
    }
    rank_rows(rows);
    for (Row& row : rows) results_.rows.push_back(std::move(row));
    group.candidates.clear();
  }

  const std::function<void(const Progress&)>& report_;
  Topology topology_;
  RunResults results_;
  std::optional<Mapping> mapping_;
  std::vector<std::string> algorithms_;
  std::vector<const Other*> others_;
  std::vector<const Regime*> regimes_;  // null: none was asked for
  std::vector<Group> groups_;
  std::optional<Disturbance> disturbance_;  // in which a group runs
  Activity activity_;
  std::size_t candidates_left_ = 0;
  std::int64_t begin_ns_ = 0;
  std::int64_t deadline_ns_ = 0;
  std::int64_t overtime_ns_ = 0;
};

}  // namespace

double longest_s(double seconds) {
  return seconds +
         static_cast<double>(overtime_of(seconds) + kStart_ns) / static_cast<double>(kNsPerS);
}

void check(const RunOptions& options) {
  static_cast<void>(Run(options, [](const Progress&) {}));  // to be made, it looks at all of them
}

RunResults run_barriers(const RunOptions& options,
                        const std::function<void(const Progress&)>& report) {
  return Run(options, report).run();
}

}  // namespace muster::bench
