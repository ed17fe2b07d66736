// SPDX-License-Identifier: BSD-3-Clause
#include "allocation/aware.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>

#include "allocation/jemalloc.hpp"
#include "machine/format.hpp"
#include "machine/keep_errno.hpp"
#include "memory/pages.hpp"

// Until start() says more. No arena apart for huge blocks, which follow the policy like any other.
// MALLOC_CONF in the environment comes after this.
const char* je_malloc_conf = "narenas:1,oversize_threshold:0";

// libmuster-malloc's, where that is preloaded.
extern "C" [[gnu::weak, gnu::visibility("default")]] void muster_malloc_starts();

namespace muster::allocation {

thread_local constinit Thread self __attribute__((tls_model("initial-exec"))) = {};

namespace {

/// All of it constant-initialised: the first block may be asked for before any constructor.
enum Phase : int { untouched, starting, ready };
constinit std::atomic<int> phase{untouched};
constinit std::atomic<std::uint64_t> threads_adrift{0};
constinit int cannot_bind = 0;  // errno, where the kernel does not say which NUMA nodes there are

/// What only set_servers() changes.
struct Servers {
  std::mutex changing;
  std::atomic<std::uint64_t> left{0};  ///< Policy::word() of the one being left; 0: none is
  bool any = false;
  bool together = false;
  std::uint64_t bindings = 0;
  std::uint64_t lifts = 0;
  Migration migration;
};
constinit Servers servers{};

/// Which arenas of a heap have how many threads, as in jemalloc: one that begins takes the first of
/// those with the fewest, and one that ends leaves its own. So few threads use few arenas, however
/// many have been.
class Slots {
 public:
  /// As many arenas as jemalloc would have: with fewer, threads wait for each other.
  void open() {
    std::array<unsigned long, 128> cpus{};
    const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof cpus, cpus.data());
    unsigned allowed = 0;
    for (const unsigned long word : cpus) allowed += static_cast<unsigned>(std::popcount(word));
    if (bytes > 0 && allowed > 1) count_ = std::min(4 * allowed, arenas_max);
    has_key_ = pthread_key_create(&key_, [](void* mine) {
                 static_cast<std::atomic<unsigned>*>(mine)->fetch_sub(1, std::memory_order_relaxed);
               }) == 0;
  }

  unsigned count() const { return count_; }

  unsigned take() {
    unsigned best = 0;
    unsigned fewest = UINT_MAX;
    for (unsigned slot = 0; slot < count_ && fewest != 0; ++slot) {
      const unsigned users = users_[slot].load(std::memory_order_relaxed);
      if (users >= fewest) continue;
      best = slot;
      fewest = users;
    }
    users_[best].fetch_add(1, std::memory_order_relaxed);
    if (has_key_) pthread_setspecific(key_, &users_[best]);
    return best;
  }

  /// After a fork: the others are gone.
  void leave_only(unsigned mine) {
    for (auto& users : users_) users.store(0, std::memory_order_relaxed);
    users_[mine].store(1, std::memory_order_relaxed);
  }

 private:
  unsigned count_ = 1;
  bool has_key_ = false;
  pthread_key_t key_{};
  std::array<std::atomic<unsigned>, arenas_max> users_{};
};
constinit Slots slots;

/// Before jemalloc reads it: an arena for what it wants itself, and automatic ones for two heaps,
/// the default one and the servers'. See arena().
void configure() noexcept {
  static constinit std::array<char, 64> text{};
  format_to_n(text.data(), text.size() - 1, "narenas:{},oversize_threshold:0",
              1 + 2 * slots.count());
  __atomic_store_n(&je_malloc_conf, text.data(), __ATOMIC_RELEASE);
}

bool others_used(HeapNumber heap) {
  for (unsigned number = default_heap + 1; number < heaps_max; ++number) {
    if (number != heap && heap_used(static_cast<HeapNumber>(number))) return true;
  }
  return false;
}

/// Has all memory lie where `now` wants it.
Migration carry_out(const Policy& before, const Policy& now) {
  Migration migration;
  regions.each_run([&](std::byte* first, std::size_t bytes, HeapNumber owner) {
    const std::optional<unsigned> wanted = now.numa_for(owner);
    // The policy for pages to come stands before those that are there are moved: none slips by.
    if (wanted != before.numa_for(owner)) refusals.note(prefer_numa(first, bytes, wanted));
    if (wanted) migration += migrate_to_numa(first, bytes, *wanted);
  });
  return migration;
}

/// Has memory go where the policy, which is in force, wants it.
void follow(Policy before, Policy next) noexcept {
  const Migration migration = carry_out(before, next);
  servers.migration += migration;
  if (migration.refused == 0 || next.strict) return;
  // Some older pages are still elsewhere: their blocks are not to be handed out again.
  next.strict = true;
  ++next.epoch;
  current.exchange(next.word(), std::memory_order_acq_rel);
}

void change(Policy before, Policy next) noexcept {
  if (next.heap == default_heap) {
    ++servers.lifts;
  } else {
    ++servers.bindings;
  }
  if (!binds.load(std::memory_order_relaxed)) {
    current.exchange(next.word(), std::memory_order_acq_rel);
    return;
  }
  servers.left.store(before.word(), std::memory_order_relaxed);
  current.exchange(next.word(), std::memory_order_acq_rel);
  follow(before, next);
  servers.left.store(0, std::memory_order_release);  // a fork's child sees it all done
}

/// Nothing of ours is held across a fork, whose other handlers may wait for threads that allocate:
/// the parent may have been in the middle of a change, which the child completes.
void after_fork_in_child() noexcept {
  new (&servers.changing) std::mutex;
  nobody_makes_arenas();
  if (self.slot != 0) slots.leave_only(self.slot - 1);
  const std::uint64_t left = servers.left.exchange(0, std::memory_order_relaxed);
  if (left != 0) follow(Policy::of(left), Policy::of(current.load(std::memory_order_relaxed)));
}

/// False while some thread, perhaps this one, is at it: jemalloc then serves from its own arena.
bool start() noexcept {
  int seen = phase.load(std::memory_order_acquire);
  if (seen == ready) return true;
  if (seen == starting ||
      !phase.compare_exchange_strong(seen, starting, std::memory_order_acq_rel)) {
    return seen == ready;
  }
  if (muster_malloc_starts != nullptr) muster_malloc_starts();
  const KeepErrno of_caller;
  slots.open();
  configure();
  // jemalloc's fork handlers have to be there before ours, which use it.
  bool retain = false;
  std::size_t bytes = sizeof retain;
  je_mallctl("opt.retain", &retain, &bytes, nullptr, 0);
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  const unsigned numa_nodes = numa_nodes_allowed();
  if (numa_nodes == 0) cannot_bind = errno;
  binds.store(numa_nodes > 1, std::memory_order_relaxed);
  phase.store(ready, std::memory_order_release);
  return true;
}

/// If nobody has asked for a block yet, before jemalloc's own constructor: that reads what it was
/// told. That comes before the C library's (-z initfirst), which makes `environ`: MALLOC_CONF.
[[gnu::constructor(101)]] void start_early(int, char**, char** variables) noexcept {
  if (environ == nullptr) environ = variables;
  start();
}

}  // namespace

void settle() noexcept {
  if (!start()) return;
  const KeepErrno of_caller;
  const std::uint64_t word = current.load(std::memory_order_acquire);
  self.seen = word;  // first: making an arena may allocate
  if (self.slot == 0) self.slot = 1 + slots.take();
  std::optional<unsigned> mine = arena(Policy::of(word).heap, self.slot - 1);
  if (!mine) mine = arena(Policy::of(word).heap, 0);
  if (!mine || je_mallctl("thread.arena", nullptr, nullptr, &*mine, sizeof *mine) != 0) {
    threads_adrift.fetch_add(1, std::memory_order_relaxed);
  }
  // What its cache holds are blocks of the heap before. There may be no cache (MALLOC_CONF).
  je_mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
}

void set_servers(std::span<const unsigned> now) noexcept {
  while (!start()) sched_yield();
  const std::lock_guard lock(servers.changing);
  const bool first = !servers.any;
  std::optional<unsigned> numa = shared_numa(now);
  const bool together = numa.has_value();
  const bool has_memory = numa && *numa < numa_nodes_max &&
                          (!binds.load(std::memory_order_relaxed) || numa_node_allowed(*numa));
  if (!has_memory) numa.reset();
  const Policy before = Policy::of(current.load(std::memory_order_relaxed));
  if (numa_of_heap(before.heap) != numa) {
    change(before, next_policy(before, numa, first, numa && others_used(heap_of_numa(*numa))));
  }
  servers.any = !now.empty();
  servers.together = together;
}

Counters counters() noexcept {
  const std::lock_guard lock(servers.changing);
  Counters all;
  all.policy = Policy::of(current.load(std::memory_order_relaxed));
  all.servers = servers.any;
  all.servers_together = servers.together;
  all.bindings = servers.bindings;
  all.lifts = servers.lifts;
  all.migration = servers.migration;
  all.regions_refused = refusals.regions.load(std::memory_order_relaxed);
  all.first_refusal = refusals.first_error.load(std::memory_order_relaxed);
  all.threads_adrift = threads_adrift.load(std::memory_order_relaxed);
  const bool bound = binds.load(std::memory_order_relaxed);
  regions.each_run([&](const std::byte*, std::size_t bytes, HeapNumber owner) {
    all.bytes += bytes;
    if (bound && all.policy.numa_for(owner)) all.bytes_bound += bytes;
  });
  return all;
}

namespace {

std::string mebibytes(std::uint64_t bytes) {
  return format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string what_is_done(const Counters& now) {
  const std::optional<unsigned> numa = numa_of_heap(now.policy.heap);
  if (!now.servers) {
    return "no server: blocks come from default allocation, and are remembered by their extents";
  }
  if (numa) return format("servers on NUMA node {}: blocks come from its arenas", *numa);
  if (now.servers_together) {
    return "servers on a NUMA node that has no memory for this process: default allocation";
  }
  return "servers on several NUMA nodes: default allocation, nothing is bound";
}

std::string why_unbound() {
  if (cannot_bind == 0) return "this process may have memory of one NUMA node only";
  return format("the kernel does not say which NUMA nodes there are ({})",
                std::strerror(cannot_bind));
}

}  // namespace

std::string explain() {
  while (!start()) sched_yield();
  const Counters now = counters();
  std::string text = what_is_done(now) + "\n";
  if (now.threads_adrift != 0) {
    text += format("  {} times a thread got no arena, and allocates as by default\n",
                   now.threads_adrift);
  }
  if (!binds.load(std::memory_order_relaxed)) {
    return text + format("  {} of address space; no page is bound or moved: {}\n",
                         mebibytes(now.bytes), why_unbound());
  }
  text += format("  {} of address space, {} of it bound\n", mebibytes(now.bytes),
                 mebibytes(now.bytes_bound));
  for (unsigned number = default_heap; number < heaps_max; ++number) {
    const auto heap = static_cast<HeapNumber>(number);
    if (!heap_used(heap)) continue;
    const std::optional<unsigned> numa = now.policy.numa_for(heap);
    text += format("  {}: {} arenas, {}\n",
                   heap == default_heap ? "default" : format("NUMA node {}", *numa_of_heap(heap)),
                   arenas_made(heap), numa ? format("bound to NUMA node {}", *numa) : "not bound");
  }
  const Migration& moved = now.migration;
  text += format(
      "  bound {} times, lifted {} times; pages moved {}, there already {}, not there yet {}, "
      "refused {}{}\n",
      now.bindings, now.lifts, moved.moved, moved.already_there, moved.not_there_yet, moved.refused,
      moved.refused == 0 ? "" : format(" ({})", std::strerror(moved.first_refusal)));
  if (now.regions_refused != 0) {
    text += format("  the kernel refused to bind {} regions ({})\n", now.regions_refused,
                   std::strerror(now.first_refusal));
  }
  return text;
}

}  // namespace muster::allocation
