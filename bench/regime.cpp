// SPDX-License-Identifier: BSD-3-Clause
#include "bench/regime.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "bench/child.hpp"
#include "bench/measure.hpp"
#include "machine/cgroup.hpp"
#include "machine/error.hpp"

namespace muster::bench {
namespace {

constexpr std::int64_t kPatience_ns = 10'000'000'000;
constexpr unsigned kPeriod_us = 100'000;  // the kernel's own choice

/// 0, or why not. Files of a control group take a value in one piece.
int write_value(const std::string& path, const std::string& value) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = write(fd, value.data(), value.size()) < 0 ? errno : 0;
  close(fd);
  return error;
}

/// A control group with a quota, and what had to be changed for it.
class Cgroup {
 public:
  /// Empty if it was made; else why not.
  std::string make(const CgroupDirectory& parent, const Regime& regime) {
    directory_ = fmt::format("{}/muster-{}-{}", parent.path, regime.name, getpid());
    if (mkdir(directory_.c_str(), 0755) != 0) return failed("mkdir", errno);
    const std::string quota = fmt::format("{}", regime.quota_percent * kPeriod_us / 100);
    if (parent.version == 1) {
      if (const int error =
              write_value(directory_ + "/cpu.cfs_period_us", fmt::format("{}", kPeriod_us))) {
        return failed("cpu.cfs_period_us", error);
      }
      if (const int error = write_value(directory_ + "/cpu.cfs_quota_us", quota))
        return failed("cpu.cfs_quota_us", error);
      return {};
    }
    if (access((directory_ + "/cpu.max").c_str(), F_OK) != 0) {
      const std::string control = parent.path + "/cgroup.subtree_control";
      if (const int error = write_value(control, "+cpu")) return failed("+cpu", error);
      enabled_ = control;
    }
    if (const int error =
            write_value(directory_ + "/cpu.max", fmt::format("{} {}", quota, kPeriod_us))) {
      return failed("cpu.max", error);
    }
    return {};
  }

  const std::string& directory() const { return directory_; }

  /// Processes that were killed may still be about to leave.
  void remove() {
    const std::int64_t until_ns = clock_ns() + kPatience_ns;
    while (rmdir(directory_.c_str()) != 0 && errno == EBUSY && clock_ns() < until_ns) usleep(1000);
    if (!enabled_.empty()) write_value(enabled_, "-cpu");
    enabled_.clear();
  }

 private:
  std::string failed(const char* what, int error) {
    remove();
    return fmt::format("no control group {}: {}: {}", directory_, what, std::strerror(error));
  }

  std::string directory_;
  std::string enabled_;  // the file where its parent's children got the controller
};

std::string session_is_no_group() {
  const std::string setting = read_small_file("/proc/sys/kernel/sched_autogroup_enabled");
  if (setting.starts_with('1')) return {};
  return setting.empty() ? "this kernel does not group processes by sessions"
                         : "kernel.sched_autogroup_enabled is 0: sessions are no groups here";
}

}  // namespace

struct Disturbance::Shared {
  std::atomic<std::uint32_t> ready;  // hogs that run; 1: the control group was made, or was not
  char directory[4096];
  char why[512];  // it was not made
};

std::vector<unsigned> Regime::participants(const std::vector<unsigned>& asked,
                                           unsigned cpus) const {
  if (asked.empty() && crowded) return {2 * cpus, 4 * cpus};
  if (asked.empty()) return {2, 4, 8};
  std::vector<unsigned> counts = asked;
  if (crowded) std::erase_if(counts, [cpus](unsigned count) { return count <= cpus; });
  return counts;
}

std::string Regime::why_fewer(const std::vector<unsigned>& asked, unsigned cpus) const {
  if (participants(asked, cpus).size() == asked.size() || asked.empty()) return {};
  return fmt::format("wants more participants than the {} CPUs: fewer are left out", cpus);
}

unsigned Regime::cpus(unsigned usable) const {
  return quota_percent == 0 ? usable : std::min(usable, (quota_percent + 99) / 100);
}

void check_participants(const std::vector<const Regime*>& regimes,
                        const std::vector<unsigned>& asked, unsigned cpus) {
  for (const Regime* regime : regimes) {
    if (regime == nullptr || !regime->participants(asked, cpus).empty()) return;
  }
  if (regimes.empty()) return;
  throw Error(Status::invalid, fmt::format("--regime {}: it {}", regimes.front()->name,
                                           regimes.front()->why_fewer(asked, cpus)));
}

const std::vector<Regime>& all_regimes() {
  static const std::vector<Regime> all{
      {.name = "quiet", .about = "nobody else, as far as the bench can help", .disturbed = false},
      {.name = "crowded", .about = "more participants than CPUs", .crowded = true},
      {.name = "hogs", .about = "a busy loop on each CPU, of the same session", .hogs = true},
      {.name = "session",
       .about = "these in a session of their own, where the kernel groups by sessions",
       .hogs = true,
       .apart = true},
      {.name = "quota150", .about = "150 % of a CPU for all participants", .quota_percent = 150},
      {.name = "quota50", .about = "50 % of a CPU for all participants", .quota_percent = 50},
      {.name = "late",
       .about = "the last participant sleeps 2 ms before each episode; locks have no last one",
       .late_ns = 2'000'000},
  };
  return all;
}

std::string regimes_to_text() {
  std::string text;
  for (const Regime& regime : all_regimes()) {
    text += fmt::format("{}  {:<9} {}", text.empty() ? "" : "\n", regime.name, regime.about);
  }
  return text;
}

std::vector<std::string> regime_names() {
  std::vector<std::string> names{"all", "quota"};
  for (const Regime& regime : all_regimes()) names.emplace_back(regime.name);
  return names;
}

std::vector<const Regime*> parse_regimes(const std::vector<std::string>& names) {
  const auto has = [](std::string_view asked, std::string_view name) {
    return asked == "all" || asked == name || (asked == "quota" && name.starts_with("quota"));
  };
  for (const std::string& asked : names) {
    if (std::none_of(all_regimes().begin(), all_regimes().end(),
                     [&](const Regime& regime) { return has(asked, regime.name); })) {
      std::string known = "all, quota (both)";
      for (const Regime& regime : all_regimes()) known += fmt::format(", {}", regime.name);
      throw Error(Status::unknown_name,
                  fmt::format("no regime \"{}\"; there are: {}", asked, known));
    }
  }
  std::vector<const Regime*> chosen;
  for (const Regime& regime : all_regimes()) {
    if (std::any_of(names.begin(), names.end(),
                    [&](const std::string& asked) { return has(asked, regime.name); })) {
      chosen.push_back(&regime);
    }
  }
  return chosen;
}

Disturbance::Disturbance(const Regime& regime, const PuSet& cpus)
    : shared_(1), pids_(std::max(1U, cpus.count())) {
  if (regime.apart) {
    if (const std::string why = session_is_no_group(); !why.empty())
      throw Error(Status::unsupported, why);
  }
  try {
    if (regime.hogs) start_hogs(regime.apart, cpus);
    if (regime.quota_percent != 0) make_cgroup(regime);
  } catch (...) {
    end();
    throw;
  }
}

Disturbance::~Disturbance() { end(); }

void Disturbance::start_hogs(bool apart, const PuSet& cpus) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // the hogs are their leader's children
  const pid_t self = getpid();
  hogs_ = fork();
  if (hogs_ < 0) throw Error(Status::unsupported, "no process for a busy loop");
  if (hogs_ == 0) {
    if (apart) {
      setsid();
    } else {
      setpgid(0, 0);
    }
    die_with(self);
    const pid_t leader = getpid();
    const std::vector<unsigned> pus = cpus.to_vector();
    for (std::size_t i = 0; i < pus.size(); ++i) {
      if (i + 1 < pus.size() && fork() != 0) continue;  // the leader is the last one itself
      if (i + 1 < pus.size()) die_with(leader);
      cpu_set_t mask;
      CPU_ZERO(&mask);
      CPU_SET(pus[i], &mask);
      if (sched_setaffinity(0, sizeof mask, &mask) != 0) _exit(1);
      pids_[i] = getpid();
      shared_[0].ready.fetch_add(1, std::memory_order_release);
      // Not relax(): some hypervisors take the CPU from who pauses a lot.
      for (std::atomic<unsigned> turns{0};;) turns.fetch_add(1, std::memory_order_relaxed);
    }
    _exit(1);
  }
  hog_count_ = cpus.count();
  const std::int64_t until_ns = clock_ns() + kPatience_ns;
  while (shared_[0].ready.load(std::memory_order_acquire) != hog_count_) {
    if (clock_ns() > until_ns) throw Error(Status::unsupported, "the busy loops did not start");
    usleep(1000);
  }
}

/// A process of its own has the control group, and removes it when it is told to or we end: with
/// all signals blocked it outlives a Ctrl-C.
void Disturbance::make_cgroup(const Regime& regime) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t self = getpid();
  keeper_ = fork();
  if (keeper_ == 0) {
    setpgid(0, 0);
    if (!follow_parent(self, SIGTERM)) _exit(1);
    Shared& shared = shared_[0];
    Cgroup cgroup;
    std::string why = "no control group of this process has a limit of CPU time to set";
    for (const CgroupDirectory& parent : cgroup_directories("cpu")) {
      why = cgroup.make(parent, regime);
      if (!why.empty()) continue;
      std::strncpy(shared.directory, cgroup.directory().c_str(), sizeof shared.directory - 1);
      break;
    }
    std::strncpy(shared.why, why.c_str(), sizeof shared.why - 1);
    shared.ready.store(1, std::memory_order_release);
    sigset_t told;
    sigemptyset(&told);
    sigaddset(&told, SIGTERM);
    int signal = 0;
    sigwait(&told, &signal);
    if (why.empty()) cgroup.remove();
    _exit(0);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (keeper_ < 0) throw Error(Status::unsupported, "no process for a control group");
  const std::int64_t until_ns = clock_ns() + kPatience_ns;
  while (shared_[0].ready.load(std::memory_order_acquire) == 0 && clock_ns() < until_ns) {
    usleep(200);
  }
  if (cgroup().empty()) throw Error(Status::unsupported, shared_[0].why);
}

void Disturbance::end() {
  if (hogs_ > 0) end_group(hogs_);
  if (keeper_ > 0) {
    kill(keeper_, SIGTERM);
    while (waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

std::int64_t Disturbance::cpu_ns() const {
  std::int64_t sum = 0;
  for (const pid_t hog : hogs()) {
    clockid_t clock{};
    timespec now{};
    if (clock_getcpuclockid(hog, &clock) != 0 || clock_gettime(clock, &now) != 0) continue;
    sum += now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
  }
  return sum;
}

std::vector<pid_t> Disturbance::hogs() const {
  std::vector<pid_t> pids;
  for (unsigned i = 0; i < hog_count_; ++i) pids.push_back(pids_[i]);
  return pids;
}

std::string Disturbance::cgroup() const { return shared_[0].directory; }

std::string why_not(const Regime& regime, const PuSet& cpus) {
  try {
    const Disturbance trial(regime, cpus);
    return {};
  } catch (const Error& error) {
    if (error.code() != Status::unsupported) throw;
    return error.what();
  }
}

std::string regime_prefix(const Regime* regime) {
  return regime == nullptr ? "" : fmt::format("{}, ", regime->name);
}

void check_turn(double ms) {
  if (!(ms > 0 && ms <= 60'000)) {
    throw Error(Status::invalid, "--turn: more than 0, at most 60000 ms");
  }
}

void join_cgroup(const std::string& directory) {
  if (directory.empty()) return;
  if (const int error = write_value(directory + "/cgroup.procs", "0")) {
    throw Error(Status::system,
                fmt::format("{}/cgroup.procs: {}", directory, std::strerror(error)));
  }
}

}  // namespace muster::bench
