// SPDX-License-Identifier: BSD-3-Clause
#include "bench/doctor.hpp"

#include <fmt/format.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "bench/child.hpp"
#include "bench/host.hpp"
#include "bench/measure.hpp"
#include "machine/cgroup.hpp"
#include "machine/format.hpp"
#include "machine/run_threads.hpp"
#include "machine/usable_cpus.hpp"
#include "topology/topology.hpp"
#include "wait/relax.hpp"

namespace muster::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t ms = 1'000'000;

Diagnosis finding(Verdict verdict, std::string found, std::string remedy = {},
                  std::vector<std::pair<std::string, double>> measured = {}) {
  return {.check = {},
          .verdict = verdict,
          .found = std::move(found),
          .remedy = std::move(remedy),
          .measured = std::move(measured)};
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

void bind_to(unsigned pu) {
  std::vector<cpu_set_t> set(pu / CPU_SETSIZE + 1);
  const std::size_t bytes = set.size() * sizeof(cpu_set_t);
  CPU_SET_S(pu, bytes, set.data());
  static_cast<void>(sched_setaffinity(0, bytes, set.data()));
}

/// That this thread has had: what others take of its CPU does not count.
std::int64_t own_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

/// Each of `pus` has a thread that calls body(number), all at once.
template <class Body>
void on_each(const std::vector<unsigned>& pus, const Body& body) {
  std::atomic<unsigned> ready{0};
  run_threads(static_cast<unsigned>(pus.size()), [&](unsigned number) {
    bind_to(pus[number]);
    ready.fetch_add(1);
    while (ready.load() < pus.size()) std::this_thread::yield();
    body(number);
  });
}

// ---- others ----

/// CPU time of each process so far, in ticks, with its name.
std::map<pid_t, std::pair<std::int64_t, std::string>> times_of_processes() {
  std::map<pid_t, std::pair<std::int64_t, std::string>> all;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc", none)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string text = read_small_file(entry.path().string() + "/stat");
    const std::size_t open = text.find('(');
    const std::size_t close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;
    std::istringstream rest(text.substr(close + 1));
    std::string skipped;
    for (int field = 3; field < 14; ++field) rest >> skipped;
    std::int64_t user = 0;
    std::int64_t system = 0;
    if (rest >> user >> system) {
      all[std::stoi(name)] = {user + system, text.substr(open + 1, close - open - 1)};
    }
  }
  return all;
}

Neighbours neighbours_on(const PuSet& cpus) {
  constexpr std::int64_t period_ns = 500 * ms;
  const auto processes = times_of_processes();
  const CpuTimes before = cpu_times(cpus);
  usleep(period_ns / 1000);
  const CpuTimes after = cpu_times(cpus);
  Neighbours found;
  found.known = before.known;
  const double all_ns = static_cast<double>(period_ns) * cpus.count();
  // Not more than all, which ticks may make of it.
  found.busy = std::min(static_cast<double>(after.busy_ns - before.busy_ns) / all_ns, 1.0);
  found.steal = static_cast<double>(after.steal_ns - before.steal_ns) / all_ns;
  std::int64_t most = 0;
  for (const auto& [pid, its] : times_of_processes()) {
    const auto earlier = processes.find(pid);
    if (pid == getpid() || earlier == processes.end()) continue;
    if (its.first - earlier->second.first <= most) continue;
    most = its.first - earlier->second.first;
    found.busiest = fmt::format("{} (process {})", its.second, pid);
  }
  return found;
}

Diagnosis look_for_neighbours(const Instruments& by) {
  constexpr double enough = 0.05;
  const PuSet cpus = by.topology().pus();
  const auto [known, busy, steal, busiest] = by.neighbours(cpus);
  if (!known) return finding(Verdict::unknown, "/proc/stat does not tell");
  const std::vector<std::pair<std::string, double>> measured{{"busy_share", busy},
                                                             {"steal_share", steal}};
  const std::string text =
      fmt::format("Other programs took {} of {} in half a second{}; the hypervisor took {}.",
                  percent(busy), counted(cpus.count(), "CPUs"),
                  busiest.empty() ? "" : ", most of it " + busiest, percent(steal));
  if (busy < enough && steal < enough) return finding(Verdict::fine, text, {}, measured);
  return finding(
      Verdict::costs, text,
      steal < enough
          ? "End them, or keep them off these CPUs (taskset, cpuset). muster bench barrier "
            "--regime hogs shows what they cost."
          : "Ask the host's administrator for CPUs that are not shared. Measure again later: "
            "rounds "
            "beside such a neighbour say little.",
      measured);
}

// ---- CPUs ----

Diagnosis look_at_affinity(const Instruments& by) {
  const unsigned usable = by.usable_cpus();
  const unsigned online = by.online_cpus();
  const std::vector<std::pair<std::string, double>> measured{{"usable_cpus", usable},
                                                             {"online_cpus", online}};
  const std::string text = fmt::format("{} of {} may be used.", usable, counted(online, "CPUs"));
  if (usable >= online) return finding(Verdict::fine, text, {}, measured);
  return finding(Verdict::costs, text,
                 "More participants than that share CPUs, and each episode switches between them. "
                 "Start the program without taskset, or widen its cpuset (containers: "
                 "--cpuset-cpus; Slurm: --cpus-per-task).",
                 measured);
}

Diagnosis look_at_quota(const Instruments& by) {
  constexpr std::int64_t period_ns = 300 * ms;
  const std::vector<unsigned> cpus = by.topology().pus().to_vector();
  const std::optional<double> quota = by.quota();
  if (!quota || *quota >= static_cast<double>(cpus.size())) {
    return finding(Verdict::fine, "No control group limits the time on them.");
  }
  std::atomic<std::int64_t> longest_ns{0};
  std::atomic<double> got{0};
  on_each(cpus, [&](unsigned) {
    const std::int64_t begin = clock_ns();
    const std::int64_t ran_ns = own_cpu_ns();
    std::int64_t longest = 0;
    std::int64_t last = begin;
    for (std::int64_t now = begin; last < begin + period_ns; last = now) {
      now = clock_ns();
      longest = std::max(longest, now - last);
    }
    got.fetch_add(static_cast<double>(own_cpu_ns() - ran_ns) / static_cast<double>(last - begin));
    for (std::int64_t seen = longest_ns.load();
         seen < longest && !longest_ns.compare_exchange_weak(seen, longest);) {
    }
  });
  const double longest_ms = static_cast<double>(longest_ns.load()) / static_cast<double>(ms);
  return finding(
      Verdict::costs,
      fmt::format("A control group grants the time of {:.2f} CPUs, {} may be used. {} "
                  "got {:.2f} in 0.3 s, stopped for up to {:.0f} ms.",
                  *quota, cpus.size(), counted(cpus.size(), "busy threads"), got.load(),
                  longest_ms),
      fmt::format("Have at most {}, or raise the limit (cpu.max; containers: --cpus).",
                  counted(std::max(1U, static_cast<unsigned>(*quota)), "threads")),
      {{"quota_cpus", *quota}, {"granted_cpus", got.load()}, {"longest_pause_ms", longest_ms}});
}

/// Turns of a loop that no memory slows down, in a period of its own time. It has a multiplication
/// in each cycle: with less to do, two siblings would have room for both.
std::uint64_t turns_in(std::int64_t period_ns) {
  std::uint64_t turns = 0;
  std::uint64_t a = 1, b = 2, c = 3, d = 4;
  for (const std::int64_t end = own_cpu_ns() + period_ns; own_cpu_ns() < end; ++turns) {
    for (int i = 0; i < 2500; ++i) {
      a *= 0x9e3779b97f4a7c15U;
      b *= 0x9e3779b97f4a7c15U;
      c *= 0x9e3779b97f4a7c15U;
      d *= 0x9e3779b97f4a7c15U;
      asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    }
  }
  return turns;
}

double work_share_beside(unsigned cpu, unsigned other) {
  constexpr std::int64_t period_ns = 50 * ms;
  std::atomic<std::uint64_t> alone{0};
  std::atomic<std::uint64_t> together{0};
  on_each({cpu}, [&](unsigned) { alone = turns_in(period_ns); });
  on_each({cpu, other}, [&](unsigned number) {
    const std::uint64_t turns = turns_in(period_ns);
    if (number == 0) together = turns;
  });
  return static_cast<double>(together.load()) /
         static_cast<double>(std::max<std::uint64_t>(alone, 1));
}

Diagnosis look_for_siblings(const Instruments& by) {
  const Topology topology = by.topology();
  const auto core = std::find_if(topology.cores().begin(), topology.cores().end(),
                                 [](const Core& one) { return one.pus.size() > 1; });
  if (core == topology.cores().end()) {
    return finding(Verdict::fine, "Each CPU is a core, as far as the machine tells.");
  }
  constexpr double whole = 0.9;
  const double share = by.work_share(core->pus[0], core->pus[1]);
  const std::vector<std::pair<std::string, double>> measured{{"work_beside_sibling_share", share}};
  const std::string text = fmt::format(
      "{} are {}. CPU {} does {} of its work while its sibling {} is busy.",
      counted(topology.pus().count(), "CPUs"), counted(topology.cores().size(), "cores"),
      core->pus[0], percent(share), core->pus[1]);
  // A virtual machine may say so of CPUs that are none.
  if (share > whole) return finding(Verdict::fine, text, {}, measured);
  return finding(
      Verdict::costs, text,
      fmt::format("Have one participant a core, at most {}: map_by core, mpirun --bind-to core, "
                  "OMP_PLACES=cores. A spinning sibling slows down who works.",
                  topology.cores().size()),
      measured);
}

// ---- the kernel ----

/// Two processes hand a word to each other by yields on one CPU: ns a turn; 0: that failed. In
/// sessions of their own, or in this one.
double turn_ns(bool apart, unsigned cpu) {
  struct Shared {
    std::atomic<std::uint32_t> there;
    std::atomic<std::uint32_t> turn;
    std::atomic<std::int64_t> began_ns;  ///< to make processes, and sessions, is no turn
    std::atomic<std::int64_t> ended_ns;
  };
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  auto* const shared = new (memory) Shared{};
  constexpr std::uint32_t turns = 400;
  constexpr std::int64_t most_ns = 150 * ms;
  const auto play = [&](std::uint32_t parity) {
    shared->there.fetch_add(1);
    const std::int64_t patience = clock_ns() + most_ns;
    while (shared->there.load() < 2 && clock_ns() < patience) sched_yield();
    const std::int64_t begin = clock_ns();
    if (parity == 0) shared->began_ns.store(begin);
    for (std::uint32_t turn = parity; turn < turns; turn += 2) {
      while (shared->turn.load(std::memory_order_acquire) != turn) {
        if (clock_ns() > begin + most_ns) return;
        sched_yield();
      }
      shared->ended_ns.store(clock_ns());
      shared->turn.store(turn + 1, std::memory_order_release);
    }
  };
  const pid_t self = getpid();
  const auto start = [&](std::uint32_t parity) {
    const pid_t child = fork();
    if (child != 0) return child;
    die_with(self);
    if (apart) setsid();
    bind_to(cpu);
    play(parity);
    _exit(0);
  };
  const pid_t first = start(0);
  const pid_t second = start(1);
  for (const pid_t child : {first, second}) {
    while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  const std::uint32_t made = shared->turn.load();
  const std::int64_t took_ns = made < turns ? most_ns : shared->ended_ns - shared->began_ns;
  const double each = static_cast<double>(took_ns) / std::max(made, 1U);
  munmap(memory, sizeof(Shared));
  return first > 0 && second > 0 ? each : 0;
}

Diagnosis look_at_sessions(const Instruments& by) {
  constexpr double times = 4;
  const unsigned cpu = by.topology().pus().first();
  const double together = by.turn_ns(false, cpu);
  const double apart = by.turn_ns(true, cpu);
  if (together == 0 || apart == 0) return finding(Verdict::unknown, "No process could be made.");
  const std::string text = fmt::format(
      "On one CPU, two processes hand over to each other in {:.1f} us in one session, in {:.1f} us "
      "in two.",
      together / 1000, apart / 1000);
  const std::vector<std::pair<std::string, double>> measured{{"one_session_ns", together},
                                                             {"two_sessions_ns", apart}};
  if (apart < times * together) return finding(Verdict::fine, text, {}, measured);
  return finding(Verdict::costs, text,
                 "The kernel schedules sessions as groups: who yields does not let the other one "
                 "run. It matters where processes of several sessions share CPUs, as MPICH's ranks "
                 "do. kernel.sched_autogroup_enabled=0 (sysctl) ends it; Muster sleeps instead.",
                 measured);
}

Diagnosis look_at_membarrier(const Instruments& by) {
  const long commands = by.membarrier();
  constexpr long wanted =
      MEMBARRIER_CMD_PRIVATE_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
  if (commands >= 0 && (commands & wanted) == wanted) {
    return finding(Verdict::fine, "membarrier(2) works: sleepers cost storers one load.");
  }
  return finding(
      Verdict::costs,
      fmt::format("membarrier(2) {}: sleepers look every millisecond, since a wake-up can be lost.",
                  commands < 0
                      ? fmt::format("is refused ({})", std::strerror(static_cast<int>(-commands)))
                      : std::string("lacks its expedited commands")),
      "Allow it in the container's seccomp profile (Docker's default does), or use a kernel from "
      "4.16 on with CONFIG_MEMBARRIER.");
}

// ---- what the machine looks like ----

/// Half of a flag's way there and back [ns]: the median of some batches.
double one_way_ns(unsigned from, unsigned to) {
  struct alignas(256) Flag {
    std::atomic<std::uint32_t> value{0};
  };
  constexpr std::uint32_t turns = 1000;
  constexpr unsigned batches = 9;
  Flag there;
  Flag back;
  std::vector<double> each;
  on_each({from, to}, [&](unsigned number) {
    std::uint32_t turn = 0;
    for (unsigned batch = 0; batch < batches; ++batch) {
      const std::int64_t start = clock_ns();
      for (const std::uint32_t last = turn + turns; turn < last;) {
        ++turn;
        Flag& mine = number == 0 ? there : back;
        const Flag& other = number == 0 ? back : there;
        if (number == 0) mine.value.store(turn, std::memory_order_release);
        while (other.value.load(std::memory_order_acquire) != turn) relax();
        if (number == 1) mine.value.store(turn, std::memory_order_release);
      }
      if (number == 0) each.push_back(static_cast<double>(clock_ns() - start) / turns / 2);
    }
  });
  std::nth_element(each.begin(), each.begin() + batches / 2, each.end());
  return each[batches / 2];
}

constexpr const char* imposing[] = {"MUSTER_TOPOLOGY", "HWLOC_XMLFILE", "HWLOC_SYNTHETIC",
                                    "HWLOC_FSROOT"};

/// Not another machine's, even if it is imposed on this one.
Topology topology_here() {
  std::vector<std::pair<const char*, std::string>> set;
  for (const char* const name : imposing) {
    const char* const value = secure_getenv(name);
    if (value == nullptr) continue;
    set.emplace_back(name, value);
    unsetenv(name);
  }
  Topology here = Topology::this_machine();
  for (const auto& [name, value] : set) setenv(name, value.c_str(), 1);
  return here;
}

/// The variable that has another machine's topology imposed on this one; empty if there is none.
std::string imposed_by() {
  for (const char* const name : imposing) {
    const char* const value = secure_getenv(name);
    if (value != nullptr && value[0] != '\0') return name;
  }
  return {};
}

Diagnosis look_at_topology(const Instruments& by) {
  constexpr std::size_t cores_most = 8;
  constexpr double apart = 1.7;
  if (const std::string variable = imposed_by(); !variable.empty()) {
    return finding(Verdict::costs,
                   fmt::format("{} imposes another machine's topology: participants are grouped as "
                               "on that one.",
                               variable),
                   fmt::format("unset {}, but where this is wanted.", variable));
  }
  const Topology topology = by.topology();
  const std::string cpuinfo = by.read("/proc/cpuinfo");
  const bool is_virtual = cpuinfo.find(" hypervisor") != std::string::npos;
  const char* const machine = is_virtual ? "A virtual machine" : "A machine";
  if (topology.cores().size() < 3) {
    return finding(Verdict::fine, fmt::format("{} of {}: nothing to group.", machine,
                                              counted(topology.cores().size(), "cores")));
  }
  // A level of one unit groups nothing: a virtual machine's only NUMA node.
  std::vector<std::string_view> levels;
  for (const Level& level : topology.levels()) {
    if (level.units.size() > 1 && level.cores_per_unit_max() > 1) {
      levels.push_back(level_name(level.kind));
    }
  }
  if (!levels.empty()) {
    return finding(Verdict::fine,
                   fmt::format("{} that tells its levels: {}.", machine, fmt::join(levels, ", ")));
  }
  // Some of the cores, evenly apart: what lies far apart has numbers far apart.
  std::vector<unsigned> pus;
  const std::size_t cores = topology.cores().size();
  for (std::size_t i = 0; i < std::min(cores, cores_most); ++i) {
    pus.push_back(topology.cores()[i * cores / std::min(cores, cores_most)].pus.front());
  }
  double least = 1e9;
  double most = 0;
  for (std::size_t a = 0; a < pus.size(); ++a) {
    for (std::size_t b = a + 1; b < pus.size(); ++b) {
      const double ns = by.one_way_ns(pus[a], pus[b]);
      least = std::min(least, ns);
      most = std::max(most, ns);
    }
  }
  const std::vector<std::pair<std::string, double>> measured{{"nearest_one_way_ns", least},
                                                             {"farthest_one_way_ns", most}};
  const std::string text = fmt::format(
      "{} of {} cores that tells no levels; a line takes {:.0f} to {:.0f} ns between them.",
      machine, cores, least, most);
  if (most < apart * least) return finding(Verdict::fine, text, {}, measured);
  return finding(Verdict::costs, text,
                 "Some cores are nearer than others, and nothing says which. Have the hypervisor "
                 "show its topology (libvirt: host-passthrough and <topology>), or describe it: "
                 "MUSTER_TOPOLOGY=\"package:2 core:8 pu:1\" or an XML file of hwloc's.",
                 measured);
}

double cold_share_of(unsigned cpu) {
  constexpr std::int64_t glance_ns = 2 * ms;
  std::uint64_t cold = 0;
  std::uint64_t warm = 0;
  on_each({cpu}, [&](unsigned) {
    usleep(100'000);
    cold = turns_in(glance_ns);
    turns_in(100 * ms);
    for (int again = 0; again < 5; ++again) warm = std::max(warm, turns_in(glance_ns));
  });
  return static_cast<double>(cold) / static_cast<double>(std::max<std::uint64_t>(warm, 1));
}

Diagnosis look_at_frequency(const Instruments& by) {
  constexpr double slow = 0.8;
  const unsigned cpu = by.topology().pus().first();
  const std::string governor =
      by.read(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", cpu));
  const double share = by.cold_share(cpu);
  const std::string text = fmt::format(
      "A core that was idle works at {} of its speed for the first 2 ms{}.", percent(share),
      governor.empty() ? ""
                       : fmt::format(" (governor {})", governor.substr(0, governor.find('\n'))));
  const std::vector<std::pair<std::string, double>> measured{{"cold_speed_share", share}};
  if (share > slow) return finding(Verdict::fine, text, {}, measured);
  return finding(Verdict::costs, text,
                 "Participants that sleep come back slow. cpupower frequency-set -g performance "
                 "keeps the clock up.",
                 measured);
}

}  // namespace

Instruments::Instruments()
    : topology(topology_here),
      read(read_small_file),
      neighbours(neighbours_on),
      usable_cpus(affinity_cpus),
      online_cpus(
          [] { return static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L)); }),
      quota([] { return exact_cpu_quota(); }),
      membarrier([] {
        const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
        return commands < 0 ? -errno : commands;
      }),
      turn_ns(bench::turn_ns),
      one_way_ns(bench::one_way_ns),
      work_share(work_share_beside),
      cold_share(cold_share_of) {}

Diagnosis examine(const Check& check, const Instruments& by) {
  constexpr unsigned looks = 3;
  Diagnosis found = check.run(by);
  for (unsigned n = 1; n < looks && check.seconds > 0 && found.verdict == Verdict::costs; ++n)
    found = check.run(by);
  found.check = check.name;
  return found;
}

const std::vector<Check>& all_checks() {
  static const std::vector<Check> all{
      {"neighbours", "other programs and the hypervisor", 0.5, look_for_neighbours},
      {"frequency", "a core's speed after it was idle", 0.3, look_at_frequency},
      {"cpus", "CPUs that may be used, of those there are", 0, look_at_affinity},
      {"quota", "a control group's limit of CPU time", 0.3, look_at_quota},
      {"siblings", "CPUs that share a core", 0.1, look_for_siblings},
      {"topology", "whether the machine tells which cores are near", 0.6, look_at_topology},
      {"sessions", "processes of several sessions on a CPU", 0.3, look_at_sessions},
      {"membarrier", "whether sleepers can be found cheaply", 0, look_at_membarrier},
  };
  return all;
}

}  // namespace muster::bench
