// SPDX-License-Identifier: BSD-3-Clause
#include "bench/team.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/child.hpp"
#include "bench/regime.hpp"
#include "machine/error.hpp"
#include "machine/run_threads.hpp"

namespace muster::bench {
namespace {

constexpr std::int64_t kPatienceAtEnd_ns = 300'000'000;
constexpr std::int64_t kLauncherPatience_ns = 20'000'000'000;  // its ranks may be disturbed
/// How often a waiting coordinator looks whether the team still lives.
constexpr std::int64_t kLook_ns = 20'000'000;

[[noreturn]] void throw_system(const char* call) {
  throw Error(Status::system, fmt::format("{}: {}", call, std::strerror(errno)));
}

void report_failure(Control& control, const std::string& why, bool declined) {
  std::uint32_t nobody = 0;
  static_assert(sizeof control.error > 1);
  if (!control.reporting.compare_exchange_strong(nobody, 1)) return;  // the first is the cause
  std::strncpy(control.error, why.c_str(), sizeof control.error - 1);
  control.declined.store(declined ? 1 : 0, std::memory_order_relaxed);
  control.failed.store(1, std::memory_order_release);
  wake_all(control.idle);
}

bool is_declined(const Error& error) {
  return error.code() == Status::declined || error.code() == Status::unsupported;
}

/// Runs `work` and says why it failed, if it does. 0 or 1, for an exit code.
template <class Work>
int guarded(Control& control, Work&& work) {
  try {
    work();
    return 0;
  } catch (const Error& error) {
    report_failure(control, error.what(), is_declined(error));
  } catch (const std::exception& error) {
    report_failure(control, error.what(), false);
  }
  return 1;
}

void participate(Contestant& contestant, Control& control, unsigned rank) {
  if (!bind_self(control, rank)) {
    throw Error(Status::system, fmt::format("rank {} could not be bound to its CPUs: {}", rank,
                                            std::strerror(errno)));
  }
  Participant participant(control, rank);
  contestant.serve(participant, rank);
}

void be_threads(Contestant& contestant, Control& control) {
  run_threads(control.participants, [&](unsigned rank) {
    // The others may wait for this one for ever: all end.
    if (guarded(control, [&] { participate(contestant, control, rank); }) != 0) _exit(1);
  });
}

void be_processes(Contestant& contestant, Control& control) {
  const pid_t root = getpid();
  for (unsigned rank = 0; rank < control.participants; ++rank) {
    const pid_t child = fork();
    if (child < 0) throw too_few(rank, control.participants, "processes", std::strerror(errno));
    if (child == 0) {
      die_with(root);
      _exit(guarded(control, [&] { participate(contestant, control, rank); }));
    }
  }
  int status = 0;
  while (waitpid(-1, &status, 0) > 0) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    if (WIFSIGNALED(status)) {
      report_failure(control,
                     fmt::format("a participant was killed by {}", strsignal(WTERMSIG(status))),
                     false);
    }
    _exit(1);  // the coordinator kills the rest
  }
}

void set_openmp_environment(const Setting& setting) {
  for (const char* name : {"OMP_PLACES", "OMP_THREAD_LIMIT", "OMP_NUM_THREADS", "GOMP_CPU_AFFINITY",
                           "KMP_AFFINITY", "KMP_HW_SUBSET"}) {
    unsetenv(name);
  }
  setenv("OMP_PROC_BIND", "false", 1);
  setenv("OMP_DYNAMIC", "false", 1);
  if (!setting.oversubscribed) setenv("OMP_WAIT_POLICY", "active", 0);  // the user's, if set
}

}  // namespace

std::string find_worker(std::string_view name) {
  std::vector<std::string> places;
  if (const char* const set = secure_getenv("MUSTER_BENCH_WORKERS");
      set != nullptr && *set != '\0') {
    places.emplace_back(set);
  } else {
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
    const std::string program(self, length > 0 ? static_cast<std::size_t>(length) : 0);
    const std::string here = program.substr(0, program.rfind('/'));
    places = {here, here + "/bench", here + "/../bench", here + "/../../bench",
              here + "/../libexec/muster"};
  }
  for (const std::string& place : places) {
    std::string path = fmt::format("{}/{}", place, name);
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

std::string why_missing(const Other& other) {
  if (!other.package.empty()) {
    return fmt::format("not in this build: install {} and build again", other.package);
  }
  if (!other.worker.empty() && find_worker(other.worker).empty()) {
    return fmt::format("its program {} is not where muster is (or set MUSTER_BENCH_WORKERS)",
                       other.worker);
  }
  return {};
}

Team::Team(const TeamSpec& spec) {
  const unsigned participants = spec.setting.participants;
  std::uint32_t words = 0;
  for (const PuSet& pus : spec.bindings) {
    if (!pus.empty()) words = std::max(words, pus.to_vector().back() / 64 + 1);
  }
  const std::size_t bytes = Control::bytes_for(participants, words, spec.samples_max);
  fd_ = memfd_create("muster-bench", MFD_CLOEXEC);
  if (!spec.launcher.empty()) output_ = memfd_create("muster-bench-output", MFD_CLOEXEC);
  if (fd_ < 0 || (!spec.launcher.empty() && output_ < 0)) throw_system("memfd_create");
  if (const int error = posix_fallocate(fd_, 0, static_cast<off_t>(bytes)); error != 0) {
    close_files();
    throw Error(Status::no_memory,
                fmt::format("no {} bytes to measure in: {}", bytes, std::strerror(error)));
  }
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) {
    close_files();
    throw_system("mmap");
  }
  control_ = static_cast<Control*>(memory);
  control_->magic = Control::kMagic;
  control_->participants = participants;
  control_->mask_words = words;
  control_->samples_capacity = spec.samples_max;
  control_->bytes = bytes;
  control_->batch_ns = spec.batch_ns;
  control_->by_turns = spec.by_turns ? 1 : 0;
  control_->late_ns = spec.late_ns;
  for (unsigned rank = 0; rank < spec.bindings.size(); ++rank) {
    for (const unsigned pu : spec.bindings[rank].to_vector()) {
      control_->mask(rank)[pu / 64] |= std::uint64_t{1} << pu % 64;
    }
  }

  // What a team's processes leave behind when their root is killed becomes ours to reap.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::fflush(nullptr);
  const pid_t coordinator = getpid();
  root_ = fork();
  if (root_ == 0) {
    setpgid(0, 0);
    if (!follow_parent(coordinator, spec.launcher.empty() ? SIGKILL : SIGTERM)) _exit(1);
    be_root(spec, coordinator);
  }
  if (root_ < 0) {
    const int fork_error = errno;
    munmap(control_, bytes);
    close_files();
    errno = fork_error;
    throw_system("fork");
  }
  setpgid(root_, root_);  // whoever is first
}

void Team::be_root(const TeamSpec& spec, pid_t coordinator) {
  Control& control = *control_;
  const int code = guarded(control, [&] {
    join_cgroup(spec.cgroup);
    if (!spec.launcher.empty()) {
      std::vector<std::string> words = spec.launcher;
      // No launcher passes a descriptor on.
      words.push_back(fmt::format("/proc/{}/fd/{}", coordinator, fd_));
      become(words, output_, output_);
      throw_system(words.front().c_str());
    }
    if (spec.other != nullptr && !spec.other->worker.empty()) {
      const std::string path = find_worker(spec.other->worker);
      const std::string number = fmt::format("{}", fd_);
      set_openmp_environment(spec.setting);
      fcntl(fd_, F_SETFD, 0);
      execl(path.c_str(), path.c_str(), number.c_str(), static_cast<char*>(nullptr));
      throw_system(path.c_str());
    }
    const std::unique_ptr<Contestant> contestant =
        spec.other != nullptr ? spec.other->make(spec.setting) : make_muster(spec.setting);
    std::strncpy(control.note, contestant->note().c_str(), sizeof control.note - 1);
    if (spec.setting.mode == Mode::threads) {
      be_threads(*contestant, control);
    } else {
      be_processes(*contestant, control);
    }
  });
  _exit(code);  // not exit(): what is buffered is the coordinator's
}

Team::~Team() {
  finish();
  munmap(control_, control_->bytes);
  close_files();
}

void Team::close_files() {
  close(fd_);
  if (output_ >= 0) close(output_);
}

void Team::finish() {
  const bool launcher = output_ >= 0;
  // Everything that is idle leaves by itself.
  if (quitting_) await_end(launcher ? kLauncherPatience_ns : kPatienceAtEnd_ns);
  if (launcher && !root_is_gone()) {
    kill(root_, SIGTERM);
    await_end(kLauncherPatience_ns);
  }
  kill_all();
}

void Team::await_end(std::int64_t patience_ns) {
  const std::int64_t until_ns = clock_ns() + patience_ns;
  while (!root_is_gone() && clock_ns() < until_ns) usleep(500);
}

void Team::kill_all() {
  if (reaped_) return;
  end_group(root_);
  reaped_ = true;
}

bool Team::root_is_gone() {
  if (reaped_) return true;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(root_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid != root_) {
    return false;
  }
  if (!quitting_ || info.si_code != CLD_EXITED || info.si_status != 0) {
    report_failure(*control_,
                   info.si_code == CLD_EXITED
                       ? fmt::format("it ended with exit code {}", info.si_status)
                       : fmt::format("killed by {}", strsignal(info.si_status)),
                   false);
  }
  kill_all();
  return true;
}

Team::State Team::await_idle(std::int64_t until_ns) {
  for (;;) {
    const std::uint32_t idle = control_->idle.load(std::memory_order_acquire);
    if (control_->failed.load(std::memory_order_acquire) != 0 || root_is_gone()) {
      return control_->declined.load(std::memory_order_relaxed) != 0 ? State::declined
                                                                     : State::failed;
    }
    if (idle == control_->participants) return State::idle;
    const std::int64_t left_ns = until_ns - clock_ns();
    if (left_ns <= 0) return State::busy;
    sleep_on(control_->idle, idle, std::min(left_ns, kLook_ns));
  }
}

void Team::start_slice(std::int64_t slice_ns) {
  control_->slice_ns = slice_ns;
  control_->over.store(0, std::memory_order_relaxed);
  control_->last_episode.store(0, std::memory_order_relaxed);
  control_->idle.store(0, std::memory_order_relaxed);
  control_->go.store(++slice_, std::memory_order_release);
  wake_all(control_->go);
}

void Team::end_turn() { control_->over.store(1, std::memory_order_relaxed); }

void Team::quit() {
  quitting_ = true;
  control_->go.store(kQuit, std::memory_order_release);
  wake_all(control_->go);
}

std::string Team::error() const { return control_->error; }
std::string Team::note() const { return control_->note; }

std::string Team::output() const {
  std::string text;
  char part[4096];
  for (ssize_t got = 0; (got = pread(output_, part, sizeof part, std::ssize(text))) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
  }
  return text;
}

std::uint64_t Team::episodes() const { return control_->episodes.load(std::memory_order_relaxed); }

std::vector<double> Team::take_samples() {
  const float* const samples = control_->samples();
  std::vector<double> taken(samples + samples_taken_, samples + control_->samples_count);
  samples_taken_ = control_->samples_count;
  return taken;
}

std::vector<LatencySample> Team::singles() const {
  std::vector<LatencySample> all;
  add_samples(control_->singles, all);
  return all;
}

Turn Team::timed() const {
  return {static_cast<double>(control_->timed_ns), static_cast<double>(control_->timed_episodes)};
}

std::vector<double> Team::exit_skews() const {
  std::vector<double> skews;
  for (std::uint32_t i = 0; i < control_->skew_episodes; ++i) {
    std::int64_t first = control_->report(0).exits_ns[i];
    std::int64_t last = first;
    for (unsigned rank = 1; rank < control_->participants; ++rank) {
      first = std::min(first, control_->report(rank).exits_ns[i]);
      last = std::max(last, control_->report(rank).exits_ns[i]);
    }
    skews.push_back(static_cast<double>(last - first));
  }
  return skews;
}

std::uint64_t Team::involuntary_switches() const {
  std::uint64_t sum = 0;
  for (unsigned r = 0; r < control_->participants; ++r)
    sum += control_->report(r).involuntary_switches;
  return sum;
}

std::int64_t Team::cpu_ns() const {
  std::int64_t sum = 0;
  for (unsigned r = 0; r < control_->participants; ++r) sum += control_->report(r).cpu_ns;
  return sum;
}

}  // namespace muster::bench
