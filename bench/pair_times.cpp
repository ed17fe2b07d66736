// SPDX-License-Identifier: BSD-3-Clause
#include "bench/pair_times.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "bench/host.hpp"
#include "bench/stats.hpp"
#include "bench/stop.hpp"
#include "sim/on_hardware.hpp"
#include "sim/patterns.hpp"
#include "sim/split_mix.hpp"

namespace muster::bench {
namespace {

/// Of five. A core that was idle takes about a millisecond to reach its speed: the median of the
/// batches leaves the slow first ones out.
constexpr std::int64_t batch_ns = 300'000;
constexpr unsigned rounds_least = 5;
constexpr double seconds_least = 2;

std::int64_t cpu_ns(const rusage& usage) {
  const auto ns = [](const timeval& t) { return (t.tv_sec * 1'000'000 + t.tv_usec) * 1000; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

/// What happens on these CPUs, beside this process, from when it is made.
class Watch {
 public:
  Watch(const PuSet& cpus, std::function<std::int64_t()> clock)
      : cpus_(cpus), clock_(std::move(clock)), before_(cpu_times(cpus)) {
    getrusage(RUSAGE_SELF, &own_);
  }
  double seconds() const { return static_cast<double>(clock_() - begin_ns_) * 1e-9; }
  Noise verdict() const {
    const CpuTimes after = cpu_times(cpus_);
    rusage own{};
    getrusage(RUSAGE_SELF, &own);
    Activity activity;
    activity.wall_ns = clock_() - begin_ns_;
    activity.participant_ns = 2 * activity.wall_ns;
    activity.busy_ns = after.busy_ns - before_.busy_ns;
    activity.steal_ns = after.steal_ns - before_.steal_ns;
    activity.team_cpu_ns = cpu_ns(own) - cpu_ns(own_);
    activity.involuntary = static_cast<std::uint64_t>(own.ru_nivcsw - own_.ru_nivcsw);
    activity.known = before_.known && after.known;
    return judge(activity, cpus_.count());
  }

 private:
  PuSet cpus_;
  std::function<std::int64_t()> clock_;
  std::int64_t begin_ns_ = clock_();
  CpuTimes before_;
  rusage own_{};
};

sim::PairMatrix quantiles(unsigned size, const std::vector<std::vector<double>>& pairs, double q) {
  sim::PairMatrix matrix;
  matrix.size = size;
  matrix.ns.assign(std::size_t{size} * size, std::numeric_limits<double>::quiet_NaN());
  std::size_t pair = 0;
  for (unsigned a = 1; a < size; ++a) {
    for (unsigned b = 0; b < a; ++b, ++pair) {
      const double ns = quantile(pairs[pair], q);
      matrix.ns[std::size_t{a} * size + b] = matrix.ns[std::size_t{b} * size + a] = ns;
      matrix.unmeasured += pairs[pair].empty() ? 1 : 0;
    }
  }
  return matrix;
}

}  // namespace

PairMeter hardware_meter() {
  Shape shape;
  shape.participants = 2;
  return {
      [shape](unsigned cpu, unsigned other) {
        return sim::time_on_hardware<sim::PingPong<Hardware>>(shape, {cpu, other}, batch_ns) / 2;
      },
      now_ns};
}

PairTimes measure_pairs(const PairOptions& options,
                        const std::function<void(const Progress&)>& progress,
                        const PairMeter& meter) {
  const auto size = static_cast<unsigned>(options.cpus.size());
  std::vector<std::pair<unsigned, unsigned>> order;  // rows, the larger first
  for (unsigned a = 1; a < size; ++a) {
    for (unsigned b = 0; b < a; ++b) order.emplace_back(a, b);
  }
  PuSet cpus;
  for (const unsigned cpu : options.cpus) cpus.add(cpu);
  SplitMix64 random(1);
  std::vector<std::vector<double>> times(order.size());
  PairTimes result;
  result.cpus = options.cpus;
  const Watch watch(cpus, meter.now_ns);
  const auto wanted = [&](unsigned round) {
    if (options.rounds > 0) return round < options.rounds;
    return round < rounds_least || watch.seconds() < seconds_least;
  };
  for (unsigned round = 0; !stop_asked() && wanted(round); ++round) {
    for (std::size_t n = order.size(); n > 1; --n)
      std::swap(order[n - 1], order[random.next() % n]);
    std::vector<double> now(order.size(), std::numeric_limits<double>::quiet_NaN());
    std::size_t done = 0;
    for (const auto& [a, b] : order) {
      if (stop_asked()) break;
      now[std::size_t{a} * (a - 1) / 2 + b] = meter.one_way_ns(options.cpus[a], options.cpus[b]);
      ++done;
      const double rounds = round + static_cast<double>(done) / static_cast<double>(order.size());
      const double share =
          options.rounds > 0
              ? rounds / options.rounds
              : std::min(rounds / rounds_least, std::max(watch.seconds() / seconds_least, 0.01));
      progress(
          {share, watch.seconds() * (1 / share - 1),
           fmt::format("CPUs {} and {}, round {}", options.cpus[b], options.cpus[a], round + 1)});
    }
    // A round that was broken off counts only if there is no other.
    if (done < order.size() && round > 0) break;
    for (std::size_t pair = 0; pair < now.size(); ++pair) {
      if (now[pair] > 0) times[pair].push_back(now[pair]);
    }
    result.rounds += done == order.size() ? 1 : 0;
  }
  result.seconds = watch.seconds();
  result.noise = watch.verdict();
  for (auto& pair : times) std::sort(pair.begin(), pair.end());
  result.ns = quantiles(size, times, 0.5);
  result.low_ns = quantiles(size, times, 0.25);
  result.high_ns = quantiles(size, times, 0.75);
  return result;
}

}  // namespace muster::bench
