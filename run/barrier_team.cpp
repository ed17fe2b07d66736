// SPDX-License-Identifier: BSD-3-Clause
#include "run/barrier_team.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "muster/muster.h"
#include "run/barrier.hpp"
#include "wait/futex_lot.hpp"

namespace muster::run {
namespace {

/// How a member passes barriers.
enum class Path : std::uint8_t {
  ours,
  watched,  ///< ours, and what they take is noted
  alone,    ///< the runtime's, as all after it
  tasks,    ///< since there have been some
  cancellable,
};

/// A thread's part in a region.
struct Membership {
  Region& region;
  Membership* outer;
  unsigned size;
  unsigned number;
  int level;
  Path path;
  Word episode = 0;
  bool has_made_tasks = false;  ///< in this episode
  bool has_been_there = false;  ///< in the runtime's barrier, in this episode
};
constinit thread_local Membership* current = nullptr;

/// Functions of regions that have made tasks. One that finds its place taken takes it over.
constinit std::array<std::atomic<void (*)(void*)>, 256> makers_of_tasks{};
auto& place_of(void (*body)(void*)) {
  const auto bits = reinterpret_cast<std::uintptr_t>(body);
  return makers_of_tasks[(bits >> 4 ^ bits >> 12) % makers_of_tasks.size()];
}

/// The calling thread's CPUs, as muster_options has them; "" if they are not known.
std::string own_cpus() {
  constexpr int cpus_max = 8192;
  std::array<unsigned long, cpus_max / (8 * sizeof(unsigned long))> words{};
  auto* const set = reinterpret_cast<cpu_set_t*>(words.data());
  std::string text;
  if (sched_getaffinity(0, sizeof words, set) != 0) return text;
  for (int cpu = 0; cpu < cpus_max; ++cpu) {
    if (CPU_ISSET_S(cpu, sizeof words, set)) {
      text += (text.empty() ? "" : ",") + std::to_string(cpu);
    }
  }
  return text;
}

}  // namespace

/// A barrier, kept for teams of one size. Never freed.
class Team {
 public:
  explicit Team(unsigned size) : cpus_(size), times_last_(size) {}

  static Team* of(Membership& me) noexcept;

  void give_back() noexcept { is_taken_.store(false, std::memory_order_release); }
  static void forget_all() noexcept { all_.store(nullptr, std::memory_order_relaxed); }
  static const Team* first() noexcept { return all_.load(std::memory_order_acquire); }
  const Team* next() const noexcept { return next_; }
  unsigned size() const noexcept { return static_cast<unsigned>(cpus_.size()); }
  std::uint64_t times_last(unsigned number) const noexcept {
    return times_last_[number].load(std::memory_order_relaxed);
  }

  bool is_made() const noexcept { return barrier_ != nullptr; }
  bool has_failed() const noexcept { return has_failed_; }
  void make_together(const Membership& me);
  void wait(const Membership& me) const noexcept;
  void wait_and_note(const Membership& me) noexcept;
  /// The barrier's algorithm, once it is made.
  std::string algorithm() const;

  /// That somebody makes tasks in an episode. It is asked after later ones have begun, but not
  /// after the next but one.
  void say_tasks(Word episode) noexcept {
    tasks_in_[episode % 2].store(episode + 1, std::memory_order_release);
  }
  bool has_tasks(Word episode) const noexcept {
    return tasks_in_[episode % 2].load(std::memory_order_acquire) == episode + 1;
  }

 private:
  static Team* take(unsigned size) noexcept;
  void make() noexcept;

  static constinit std::atomic<Team*> all_;

  std::atomic<bool> is_taken_{true};
  Team* next_ = nullptr;
  muster_barrier* barrier_ = nullptr;
  bool has_failed_ = false;        ///< to make it, and is not tried again
  std::vector<std::string> cpus_;  ///< of each member, when the barrier was made
  std::atomic<Word> tasks_in_[2]{};
  /// When the last came, in episodes that are even and odd. Nobody is an episode behind.
  std::atomic<std::int64_t> last_ns_[2]{};
  std::vector<Counter> times_last_;  ///< each member
};

constinit std::atomic<Team*> Team::all_{nullptr};

Team* Team::take(unsigned size) noexcept {
  for (Team* it = all_.load(std::memory_order_acquire); it != nullptr; it = it->next_) {
    if (it->cpus_.size() != size || it->is_taken_.exchange(true, std::memory_order_acquire))
      continue;
    for (auto& stamp : it->tasks_in_) stamp.store(0, std::memory_order_relaxed);
    return it;
  }
  auto* const made = &run::make<Team>(size);
  made->next_ = all_.load(std::memory_order_relaxed);
  while (!all_.compare_exchange_weak(made->next_, made, std::memory_order_release,
                                     std::memory_order_relaxed)) {
  }
  return made;
}

/// The region's; whoever comes first takes it.
Team* Team::of(Membership& me) noexcept {
  Team* team = me.region.team.load(std::memory_order_acquire);
  if (team != nullptr) [[likely]]
    return team;
  Team* const taken = take(me.size);
  if (me.region.team.compare_exchange_strong(team, taken, std::memory_order_acq_rel)) return taken;
  taken->give_back();
  return team;
}

namespace {

/// While it waits: there are tasks now.
int help_with_tasks(void*) {
  Membership& me = *current;
  if (me.has_been_there || !Team::of(me)->has_tasks(me.episode)) return 0;
  me.has_been_there = true;
  me.region.runtime.barrier();
  return 0;
}

}  // namespace

void Team::make() noexcept {
  muster_options options;
  muster_options_init(&options);
  options.participants = static_cast<unsigned>(cpus_.size());
  options.algorithm = muster_preload_settings()->barrier;
  std::vector<const char*> bindings;
  for (const std::string& cpus : cpus_) bindings.push_back(cpus.c_str());
  const bool all_alike = std::all_of(cpus_.begin(), cpus_.end(),
                                     [&](const std::string& cpus) { return cpus == cpus_[0]; });
  if (!all_alike) options.bindings = bindings.data();
  muster_barrier* made = nullptr;
  // Set afterwards, the hook does not keep waits from sleeping.
  if (muster_barrier_create(&made, &options) != MUSTER_OK ||
      muster_barrier_set_hooks(made, help_with_tasks, nullptr, nullptr) != MUSTER_OK) {
    static constinit std::atomic_flag is_told;
    if (!is_told.test_and_set(std::memory_order_relaxed)) {
      dprintf(STDERR_FILENO, "muster run: no barrier for a team of %zu: %s\n", cpus_.size(),
              muster_last_error());
    }
    has_failed_ = true;
    return;
  }
  barrier_ = made;
}

/// By all members, at their first barrier, which the runtime's is then.
void Team::make_together(const Membership& me) {
  cpus_[me.number] = own_cpus();
  me.region.runtime.barrier();
  if (me.number == 0) make();
  me.region.runtime.barrier();
}

void Team::wait(const Membership& me) const noexcept {
  if (muster_barrier_wait(barrier_, me.number) == MUSTER_OK) [[likely]]
    return;
  dprintf(STDERR_FILENO, "muster run: a team's barrier failed: %s\n", muster_last_error());
  std::abort();
}

void Team::wait_and_note(const Membership& me) noexcept {
  auto& last = last_ns_[me.episode % 2];
  const std::int64_t came_ns = now_ns();
  std::int64_t before = last.load(std::memory_order_relaxed);
  while (before < came_ns &&
         !last.compare_exchange_weak(before, came_ns, std::memory_order_relaxed)) {
  }
  wait(me);
  run::me().count(Waits::openmp);
  if (has_tasks(me.episode)) return;  // it has run some
  const std::int64_t last_ns = last.load(std::memory_order_relaxed);
  run::me().openmp.add(came_ns, last_ns, now_ns());
  if (last_ns == came_ns) add_to(times_last_[me.number], 1);
}

std::string Team::algorithm() const {
  if (!is_made()) return {};
  std::array<char, 256> text{};
  muster_barrier_explain(barrier_, "text", text.data(), text.size(), nullptr);
  std::istringstream words(text.data());
  std::string name;
  words >> name >> name;
  return name;
}

Region::Region(const Runtime& its_runtime, void (*its_body)(void*), void* its_data) noexcept
    : runtime(its_runtime),
      body(its_body),
      data(its_data),
      has_tasks(place_of(its_body).load(std::memory_order_relaxed) == its_body) {}

Region::~Region() {
  if (Team* const its = team.load(std::memory_order_acquire); its != nullptr) its->give_back();
}

void Region::run(void* region) {
  Region& its = *static_cast<Region*>(region);
  its.enter(its.body, its.data);
}

void Region::enter(void (*its_body)(void*), void* its_data) {
  Membership me{.region = *this,
                .outer = current,
                .size = static_cast<unsigned>(runtime.num_threads()),
                .number = static_cast<unsigned>(runtime.thread_num()),
                .level = runtime.level(),
                .path = Path::alone};
  if (me.size > 1) {
    me.path = has_tasks                     ? Path::tasks
              : runtime.cancellation() != 0 ? Path::cancellable
              : is_watched()                ? Path::watched
                                            : Path::ours;
    count(Waits::openmp_joins);
  }
  current = &me;
  its_body(its_data);
  current = me.outer;
}

const Runtime* runtime_here() noexcept {
  return current != nullptr ? &current->region.runtime : nullptr;
}

void tell_of_task() noexcept {
  Membership* const me = current;
  if (me == nullptr || me->path > Path::watched || me->has_made_tasks) return;
  me->has_made_tasks = true;
  Team::of(*me)->say_tasks(me->episode);
}

namespace {

template <bool watched>
bool pass(Membership& me, void (*before)()) noexcept {
  const KeepErrno of_caller;
  const Runtime& runtime = me.region.runtime;
  Team& team = *Team::of(me);
  if (team.has_failed()) [[unlikely]] {
    me.path = Path::alone;
    return false;
  }
  if (before != nullptr) before();
  if (!team.is_made()) [[unlikely]] {
    if (watched) count(Waits::openmp_first);
    team.make_together(me);
    if (!team.is_made()) me.path = Path::alone;
  } else {
    me.has_been_there = me.has_made_tasks;
    if (me.has_made_tasks) runtime.barrier();
    watched ? team.wait_and_note(me) : team.wait(me);
    if (team.has_tasks(me.episode)) {
      me.path = Path::tasks;
      place_of(me.region.body).store(me.region.body, std::memory_order_relaxed);
    }
  }
  ++me.episode;
  me.has_made_tasks = false;
  return true;
}

[[gnu::noinline, gnu::cold]] bool pass_otherwise(Membership& me, void (*before)()) noexcept {
  switch (me.path) {
    case Path::tasks:
      count(Waits::openmp_tasks);
      return false;
    case Path::cancellable:
      count(Waits::openmp_cancellable);
      return false;
    case Path::watched:
      return pass<true>(me, before);
    default:
      return false;
  }
}

}  // namespace

bool pass_team_barrier(const Runtime& runtime, void (*before)()) noexcept {
  Membership* const me = current;
  // Whatever the runtime has begun that we have not seen is its own.
  if (me == nullptr || &me->region.runtime != &runtime || runtime.level() != me->level ||
      runtime.num_threads() != static_cast<int>(me->size)) {
    if (runtime.num_threads() > 1) count(Waits::openmp_unknown);
    return false;
  }
  if (me->path != Path::ours) return pass_otherwise(*me, before);
  return pass<false>(*me, before);
}

void forget_teams() noexcept { Team::forget_all(); }

void print_teams(int file, bool as_json) {
  std::vector<std::uint64_t> last;
  std::map<std::pair<unsigned, std::string>, unsigned> barriers;
  for (const Team* it = Team::first(); it != nullptr; it = it->next()) {
    last.resize(std::max<std::size_t>(last.size(), it->size()));
    for (unsigned i = 0; i < it->size(); ++i) last[i] += it->times_last(i);
    if (it->is_made()) ++barriers[{it->size(), it->algorithm()}];
  }
  print_last(file, as_json, last, "member");
  if (as_json) dprintf(file, ", \"teams\": [");
  const char* between = "";
  for (const auto& [team, count] : barriers) {
    dprintf(file,
            as_json ? "%s{\"size\": %u, \"algorithm\": \"%s\", \"barriers\": %u}"
                    : "%s    teams of %u: %s, %u of them\n",
            between, team.first, team.second.c_str(), count);
    if (as_json) between = ", ";
  }
  if (as_json) dprintf(file, "]");
}

}  // namespace muster::run
