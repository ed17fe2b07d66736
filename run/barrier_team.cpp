// SPDX-License-Identifier: BSD-3-Clause
#include "run/barrier_team.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "muster/muster.h"
#include "run/barrier.hpp"

namespace muster::run {
namespace {

/// A thread's part in a region.
struct Membership {
  Region& region;
  Membership* outer;
  unsigned size;
  unsigned number;
  int level;
  Word episode = 0;
  bool has_made_tasks = false;  ///< in this episode
  bool has_been_there = false;  ///< in the runtime's barrier, in this episode
  bool is_left;                 ///< from now on
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
  explicit Team(unsigned size) : cpus_(size) {}

  static Team* of(Membership& me) noexcept;

  void give_back() noexcept { is_taken_.store(false, std::memory_order_release); }
  static void forget_all() noexcept { all_.store(nullptr, std::memory_order_relaxed); }

  bool is_made() const noexcept { return barrier_ != nullptr; }
  void make_together(const Membership& me);
  void wait(const Membership& me) const noexcept;

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
  std::vector<std::string> cpus_;  ///< of each member, when the barrier was made
  std::atomic<Word> tasks_in_[2]{};
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
    dprintf(STDERR_FILENO, "muster run: no barrier for a team of %zu: %s\n", cpus_.size(),
            muster_last_error());
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

Region::Region(const Runtime& its_runtime, void (*its_body)(void*), void* its_data) noexcept
    : runtime(its_runtime),
      body(its_body),
      data(its_data),
      is_left(place_of(its_body).load(std::memory_order_relaxed) == its_body) {}

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
                .is_left = is_left};
  current = &me;
  its_body(its_data);
  current = me.outer;
}

const Runtime* runtime_here() noexcept {
  return current != nullptr ? &current->region.runtime : nullptr;
}

void tell_of_task() noexcept {
  Membership* const me = current;
  if (me == nullptr || me->size < 2 || me->is_left || me->has_made_tasks) return;
  me->has_made_tasks = true;
  Team::of(*me)->say_tasks(me->episode);
}

bool pass_team_barrier(const Runtime& runtime, void (*before)()) noexcept {
  Membership* const me = current;
  // Whatever the runtime has begun that we have not seen is its own.
  if (me == nullptr || &me->region.runtime != &runtime || runtime.level() != me->level ||
      runtime.num_threads() != static_cast<int>(me->size)) {
    if (runtime.num_threads() > 1) run::me().count(Waits::openmp_unknown);
    return false;
  }
  if (me->size < 2) return false;
  if (me->is_left) {
    run::me().count(Waits::openmp_tasks);
    return false;
  }
  if (runtime.cancellation() != 0) {
    run::me().count(Waits::openmp_cancellable);
    return false;
  }
  Team& team = *Team::of(*me);
  if (before != nullptr) before();
  if (!team.is_made()) {
    run::me().count(Waits::openmp_first);
    team.make_together(*me);
    me->is_left = !team.is_made();
  } else {
    me->has_been_there = me->has_made_tasks;
    if (me->has_made_tasks) runtime.barrier();
    team.wait(*me);
    run::me().count(Waits::openmp);
    if (team.has_tasks(me->episode)) {
      me->is_left = true;
      place_of(me->region.body).store(me->region.body, std::memory_order_relaxed);
    }
  }
  ++me->episode;
  me->has_made_tasks = false;
  return true;
}

void forget_teams() noexcept { Team::forget_all(); }

}  // namespace muster::run
