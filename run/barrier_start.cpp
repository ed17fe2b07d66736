// SPDX-License-Identifier: BSD-3-Clause
// Threads at barriers and what they count, what a fork changes, and the report.
#include <dlfcn.h>

#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <numeric>

#include "run/barrier.hpp"
#include "run/barrier_team.hpp"
#include "wait/linger.hpp"

namespace muster::run {
namespace {

/// Of all barriers without ranks: who sleeps at one costs those at others a look.
constinit Hardware::Domain domain{};
constinit std::atomic<Member*> members{nullptr};
constinit thread_local Member* self = nullptr;
pthread_key_t end_of_thread;

void leave(void*) {
  self->is_taken.store(false, std::memory_order_release);  // pairs with take_member()
  self = nullptr;
}

Member& take_member() {
  for (Member* it = members.load(std::memory_order_acquire); it != nullptr; it = it->next) {
    if (!it->is_taken.exchange(true, std::memory_order_acquire)) return *it;
  }
  Member& made = make<Member>(domain);
  made.next = members.load(std::memory_order_relaxed);
  while (!members.compare_exchange_weak(made.next, &made, std::memory_order_release,
                                        std::memory_order_relaxed)) {
  }
  return made;
}

bool is_anyone_inside(const void* barrier) {
  for (Member* it = members.load(std::memory_order_acquire); it != nullptr; it = it->next) {
    if (it->inside.load(std::memory_order_acquire) == barrier) return true;
  }
  return false;
}

/// One thread is left: nobody else is inside anything, or asleep.
void after_fork_in_child() {
  for (Member* it = members.load(std::memory_order_relaxed); it != nullptr; it = it->next) {
    for (auto& counter : it->counts) counter.store(0, std::memory_order_relaxed);
    for (Counter* counter :
         {&it->posix.until_the_last_ns, &it->posix.own_ns, &it->openmp.until_the_last_ns,
          &it->openmp.own_ns, &it->ggml.until_the_last_ns, &it->ggml.own_ns, &it->was_last}) {
      counter->store(0, std::memory_order_relaxed);
    }
    if (it == self) continue;
    it->inside.store(nullptr, std::memory_order_relaxed);
    it->is_taken.store(false, std::memory_order_relaxed);
  }
  domain.announcements.sleepers.store(0, std::memory_order_relaxed);
  forget_teams();
  forget_graphs();
}

/// Over all threads.
template <class Of>
std::uint64_t sum(Of of) {
  std::uint64_t all = 0;
  for (Member* it = members.load(std::memory_order_acquire); it != nullptr; it = it->next) {
    all += of(*it).load(std::memory_order_relaxed);
  }
  return all;
}
std::uint64_t total(Waits what) {
  return sum([&](Member& it) -> Counter& { return it.counts[static_cast<unsigned>(what)]; });
}

void print_times(int file, bool as_json, Times Member::*times) {
  const std::uint64_t until =
      sum([&](Member& it) -> Counter& { return (it.*times).until_the_last_ns; });
  const std::uint64_t own = sum([&](Member& it) -> Counter& { return (it.*times).own_ns; });
  if (as_json) {
    dprintf(file, ", \"until_the_last_ns\": %" PRIu64 ", \"own_ns\": %" PRIu64, until, own);
  } else {
    dprintf(
        file,
        "    took, over all threads, %.3f ms until the last had come and %.3f ms from then on\n",
        static_cast<double>(until) / 1e6, static_cast<double>(own) / 1e6);
  }
}

/// While the process has one thread, so that the kernel is quick to register it for membarrier.
__attribute__((constructor)) void start() {
  if (!is_at_work()) return;
  pthread_key_create(&end_of_thread, leave);
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  register_heavy_fence(false);
}

}  // namespace

Member::Member(Hardware::Domain& its) noexcept
    : port(its, 0, WaitPolicy::learning(1, 1, false), false, true) {}

void fail_without_memory() noexcept {
  dprintf(STDERR_FILENO, "muster run: no memory for barriers\n");
  std::abort();
}

void print_last(int file, bool as_json, const std::vector<std::uint64_t>& times, const char* whom) {
  if (as_json) {
    dprintf(file, ", \"last\": [");
    for (std::size_t i = 0; i < times.size(); ++i)
      dprintf(file, i == 0 ? "%" PRIu64 : ", %" PRIu64, times[i]);
    dprintf(file, "]");
    return;
  }
  const auto most = std::max_element(times.begin(), times.end());
  const std::uint64_t all = std::accumulate(times.begin(), times.end(), std::uint64_t{0});
  if (all == 0) return;
  dprintf(file, "    most often last: %s %zu, %" PRIu64 " of %" PRIu64 "\n", whom,
          static_cast<std::size_t>(most - times.begin()), *most, all);
}

bool is_watched() noexcept {
  const run_settings& settings = *muster_preload_settings();
  return settings.reports || settings.json != nullptr;
}

bool is_at_work() noexcept { return muster_preload_settings()->barrier != nullptr; }

Member& me() noexcept {
  if (self == nullptr) [[unlikely]] {
    self = &take_member();
    pthread_setspecific(end_of_thread, self);
  }
  return *self;
}

void Member::serve(unsigned participants) noexcept {
  if (participants == participants_) return;
  participants_ = participants;
  port.set_policy(WaitPolicy::learning(participants, muster_preload_settings()->cpus, false));
}

void await_left(const void* barrier) noexcept {
  for (unsigned looks = 0; is_anyone_inside(barrier); ++looks) linger(looks);
}

void* next_function(const char* name) noexcept {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found != nullptr) return found;
  dprintf(STDERR_FILENO, "muster run: no library has %s\n", name);
  std::abort();
}

}  // namespace muster::run

using namespace muster::run;

uint64_t muster_preload_barriers() {
  std::uint64_t sum = 0;
  for (unsigned what = 0; what < kinds_of_waits; ++what) sum += total(static_cast<Waits>(what));
  return sum;
}

void muster_preload_print_barriers(int file, bool as_json) {
  dprintf(file,
          as_json ? ", \"barriers\": {\"algorithm\": \"%s\", \"pthread\": {\"ours\": %" PRIu64
                    ", \"shared\": %" PRIu64 ", \"too_many\": %" PRIu64
                  : "  barriers: %s; waits at pthread barriers: %" PRIu64 "; passed on: %" PRIu64
                    " at those that processes share, %" PRIu64 " at those of too many threads\n",
          muster_preload_settings()->barrier, total(Waits::posix), total(Waits::posix_shared),
          total(Waits::posix_too_many));
  if (as_json || total(Waits::posix) != 0) {
    print_times(file, as_json, &Member::posix);
    std::vector<std::uint64_t> last;
    for (Member* it = members.load(std::memory_order_acquire); it != nullptr; it = it->next)
      last.insert(last.begin(), it->was_last.load(std::memory_order_relaxed));
    print_last(file, as_json, last, "thread");
  }
  dprintf(file,
          as_json ? "}, \"openmp\": {\"ours\": %" PRIu64 ", \"first\": %" PRIu64
                    ", \"tasks\": %" PRIu64 ", \"cancellable\": %" PRIu64 ", \"unknown\": %" PRIu64
                    ", \"inside\": %" PRIu64 ", \"joins\": %" PRIu64
                  : "  OpenMP: waits of teams: %" PRIu64 "; passed on: %" PRIu64
                    " while ours were made, %" PRIu64 " where there are tasks, %" PRIu64
                    " that can be cancelled, %" PRIu64
                    " outside of teams that we know; the runtime's own: %" PRIu64
                    " in reductions and copyprivate, %" PRIu64 " at ends of regions\n",
          total(Waits::openmp), total(Waits::openmp_first), total(Waits::openmp_tasks),
          total(Waits::openmp_cancellable), total(Waits::openmp_unknown),
          total(Waits::openmp_inside), total(Waits::openmp_joins));
  if (as_json || total(Waits::openmp) != 0) {
    print_times(file, as_json, &Member::openmp);
    print_teams(file, as_json);
  }
  if (as_json || total(Waits::ggml) != 0) {
    dprintf(file,
            as_json ? "}, \"ggml\": {\"ours\": %" PRIu64 ", \"first\": %" PRIu64
                    : "  ggml: waits: %" PRIu64 "; passed on: %" PRIu64
                      ", the first of each graph\n",
            total(Waits::ggml), total(Waits::ggml_first));
    print_times(file, as_json, &Member::ggml);
  }
  if (as_json) dprintf(file, "}}");
}
