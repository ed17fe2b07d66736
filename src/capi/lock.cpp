// SPDX-License-Identifier: BSD-3-Clause
// The C ABI's locks: handles around delegation/.
#include "muster/lock.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capi/failure.hpp"
#include "capi/sized.hpp"
#include "capi/text.hpp"
#include "delegation/condition.hpp"
#include "delegation/delegated.hpp"
#include "delegation/make_lock.hpp"
#include "delegation/places.hpp"
#include "delegation/station.hpp"
#include "lock/registry.hpp"
#include "machine/made_once.hpp"
#include "topology/pu_set.hpp"

struct muster_cond {
  muster::delegation::Condition condition;
};

struct muster_server {
  std::shared_ptr<muster::delegation::Station> station;
};

namespace muster {
namespace {

using namespace delegation;

// A lock's handle is the lock: one step less on the way of each section.
AnyLock& lock_of(muster_lock* handle) { return *reinterpret_cast<AnyLock*>(handle); }
const AnyLock& lock_of(const muster_lock* handle) {
  return *reinterpret_cast<const AnyLock*>(handle);
}

void require(bool holds, const char* message) {
  if (!holds) throw Error(Status::invalid, message);
}

/// A policy, or CPUs.
ServerOptions server_options(const char* where) {
  ServerOptions options;
  if (where == nullptr) return options;
  if (where[0] >= 'a' && where[0] <= 'z') {
    options.policy = parse_policy(where);
  } else {
    options.cpus = PuSet::parse(where);
    require(!options.cpus.empty(), "a server is on one CPU or more");
  }
  return options;
}

constexpr const char* no_server =
    "no server executes the sections of this kind: use auto or rcl, or name none";

/// RCLLockInitNUMA at a lock's initialisation [PS18, Algorithm 1]. Nobody but the lock keeps it.
void start_own_server(LockOptions& lock, const char* where) {
  require(lock.station == nullptr, "a lock has a server of its own or the one it is given");
  const std::string_view kind = locks::traits_of(lock.kind).name;
  require(kind == "auto" || kind == "rcl", no_server);
  const ServerOptions options = server_options(where);
  lock.station = std::make_shared<Station>();
  lock.station->start(options);
}

muster_place place_on(const Topology& topology, const CoreTree& tree, unsigned core) {
  const std::optional<unsigned> numa = tree.numa_nodes()[tree.numa_of(core)].os_index;
  return {core, topology.cores()[core].pus.front(), numa ? static_cast<int>(*numa) : -1};
}

// Apart from the short way, which has nothing to catch.
template <unsigned copied>
[[gnu::noinline]] int execute(AnyLock& lock, Section section) {
  return caught([&] {
    if (lock.share() != nullptr) {
      lock.execute_by_share(section);
    } else {
      lock.execute(section, copied);
    }
  });
}

/// By the words that are copied.
constexpr AnyLock::Execute executes[] = {execute<0>, execute<1>, execute<2>,
                                         execute<3>, execute<4>, execute<5>};
static_assert(MUSTER_LOCK_COPY_MAX == copied_bytes_max);
static_assert(std::size(executes) == 1 + MUSTER_LOCK_COPY_MAX / sizeof(CopiedWord));

[[gnu::noinline]] int acquire_anyway(muster_lock* lock, std::int64_t end_ns) {
  return caught([&] {
    require(lock != nullptr, "no lock");
    return lock_of(lock).acquire(end_ns) ? Status::ok : Status::timeout;
  });
}
int acquire_until(muster_lock* lock, std::int64_t end_ns) {
  if (lock != nullptr && Delegated::acquire_at_once(lock_of(lock))) [[likely]]
    return MUSTER_OK;
  return acquire_anyway(lock, end_ns);
}
[[gnu::noinline]] int release_anyway(muster_lock* lock) {
  return caught([&] {
    require(lock != nullptr, "no lock");
    lock_of(lock).release();
  });
}

[[gnu::noinline, gnu::cold]] int refuse_nothing() {
  return fail(Status::invalid, "no lock, or no section");
}

Status put_explanation(const std::string& lines, const char* format, char* text, size_t bytes,
                       size_t* needed) {
  return put_text(is_json(format) ? lines_as_json(lines) : lines, text, bytes, needed);
}

}  // namespace
}  // namespace muster

using namespace muster;

const char* const* muster_lock_names(void) {
  static constinit MadeOnce<std::vector<const char*>> names;
  return names
      .get([] {
        std::vector<const char*> all;
        for (const std::string_view name : locks::lock_names()) all.push_back(name.data());
        all.push_back(nullptr);
        return all;
      })
      .data();
}

void muster_lock_options_init_sized(muster_lock_options* options, size_t size) {
  if (options == nullptr) return;
  muster_lock_options ours{};
  ours.size = size;
  give(ours, options, size);
}

size_t muster_lock_memory(void) { return shared_lock_bytes(); }

int muster_lock_create(muster_lock** lock, const muster_lock_options* theirs) {
  return guarded([&] {
    require(lock != nullptr, "no place for the lock's handle");
    muster_lock_options options{};
    if (theirs != nullptr) {
      constexpr size_t first = offsetof(muster_lock_options, turn_ns) + sizeof theirs->turn_ns;
      options = complete(*theirs, first, muster_lock_options_init_sized);
    }
    LockOptions made;
    if (options.kind != nullptr) {
      made.kind = options.kind;
    } else if (options.memory != nullptr) {
      made.kind = shared_kind;
    }
    if (options.server != nullptr) made.station = options.server->station;
    made.shared_memory = options.memory;
    made.creates = options.attach == 0;
    require(options.turn_ns >= 0, "a turn takes no less than nothing: 0 is the default");
    made.turn_ns = options.turn_ns;
    made.turn_sections = options.turn_sections;
    require(options.share_ns >= 0, "nobody is ahead by less than nothing: 0 is the default");
    require(made.creates || made.shared_memory != nullptr,
            "attach needs the memory of the lock to attach to");
    if (options.own_server != nullptr) start_own_server(made, options.own_server);
    std::unique_ptr<AnyLock> ready = make_lock(made);
    require(made.station == nullptr || ready->station() != nullptr, no_server);
    if (options.unlocks != 0) ready->allow_conditions();
    if (options.share_ns != 0) ready->share_time(options.share_ns);
    *lock = reinterpret_cast<muster_lock*>(ready.release());
  });
}

int muster_lock_execute(muster_lock* lock, muster_section section, void* argument) {
  if (lock == nullptr || section == nullptr) [[unlikely]]
    return refuse_nothing();
  return execute_section(lock_of(lock), {section, argument}, execute<0>);
}

int muster_lock_execute_copy(muster_lock* lock, muster_section section, void* argument,
                             size_t bytes) {
  if (lock == nullptr || section == nullptr) [[unlikely]]
    return refuse_nothing();
  constexpr size_t word = sizeof(CopiedWord);
  const bool is_copied = bytes % word == 0 && bytes <= MUSTER_LOCK_COPY_MAX &&
                         reinterpret_cast<uintptr_t>(argument) % word == 0;
  return execute_section(lock_of(lock), {section, argument},
                         executes[is_copied ? bytes / word : 0]);
}

int muster_lock_execute_shared(muster_lock* lock, muster_section section, void* argument) {
  if (lock == nullptr || section == nullptr) [[unlikely]]
    return refuse_nothing();
  if (!lock_of(lock).admits_readers()) return muster_lock_execute(lock, section, argument);
  return caught([&] { lock_of(lock).execute_shared({section, argument}); });
}

void muster_lock_get_words(muster_lock* lock, muster_lock_words* words) {
  static_assert(offsetof(Thread, quick) == offsetof(muster_thread_words, number));
  static_assert(offsetof(Thread, last_habit) == offsetof(muster_thread_words, executed));
  static_assert(offsetof(Thread, inside) == offsetof(muster_thread_words, inside));
  static_assert(sizeof(std::atomic<Word>) == sizeof(std::uint32_t));
  using Row = locks::Numbers<NumbersPort>::Row;
  static_assert(offsetof(Row, held) == offsetof(muster_lock_row, held));
  static_assert(offsetof(Row, wanted) == offsetof(muster_lock_row, wanted));
  static_assert(offsetof(Row, dozing) == offsetof(muster_lock_row, dozing));
  const auto [number, held] = lock_of(lock).at_once();
  *words = {number, reinterpret_cast<muster_lock_row*>(held)};
}

void muster_give_back(void) { Delegated::give_back_anyway(); }

int muster_lock_post(muster_lock* lock, muster_section section, void* argument) {
  if (lock == nullptr || section == nullptr) [[unlikely]]
    return refuse_nothing();
  return caught([&] {
    AnyLock& mine = lock_of(lock);
    if (mine.share() != nullptr) {
      mine.post_by_share({section, argument});
    } else {
      mine.post({section, argument});
    }
  });
}

int muster_lock_acquire(muster_lock* lock) { return acquire_until(lock, WaitPolicy::forever); }

int muster_lock_try_acquire(muster_lock* lock) { return acquire_until(lock, 0); }

int muster_lock_timed_acquire(muster_lock* lock, int64_t timeout_ns) {
  return acquire_until(lock, until_ns(timeout_ns));
}

int muster_lock_release(muster_lock* lock) {
  if (lock != nullptr && Delegated::release_at_once(lock_of(lock))) [[likely]]
    return MUSTER_OK;
  return release_anyway(lock);
}

int muster_lock_try_execute(muster_lock* lock, muster_section section, void* argument) {
  if (lock == nullptr || section == nullptr) return refuse_nothing();
  const int status = acquire_until(lock, 0);
  if (status != MUSTER_OK) return status;
  Section{section, argument}.run_own([&] { muster_lock_release(lock); });
  return MUSTER_OK;
}

int muster_lock_prepare_wait(muster_lock* lock) {
  return guarded([&] {
    require(lock != nullptr, "no lock");
    // Elsewhere another thread may be about to destroy it, after what was posted has been executed.
    if (Inside::any()) lock_of(lock).prepare_wait();
  });
}

int muster_lock_unlocked(muster_lock* lock, muster_section section, void* argument) {
  return guarded([&] {
    require(lock != nullptr && section != nullptr, "no lock, or no section");
    AnyLock& mine = lock_of(lock);
    require(mine.is_innermost(),
            "a lock is given up inside a section of it, not of another one inside that");
    mine.unlocked({section, argument});
  });
}

unsigned muster_process_number(void) { return generation(); }

int muster_lock_recover(muster_lock* lock, muster_section section, void* argument) {
  return guarded([&] {
    require(lock != nullptr && section != nullptr, "no lock, or no section");
    lock_of(lock).recover({section, argument});
  });
}

int muster_lock_get_counters(const muster_lock* lock, muster_lock_counters* counters, size_t size) {
  return guarded([&] {
    require(lock != nullptr && counters != nullptr, "no lock, or no place for its counters");
    const Counters all = lock_of(lock).counters();
    const Share* const share = lock_of(lock).share();
    const auto section_ns = share == nullptr ? 0 : uint64_t(share->occupancy().all_ns);
    give({all.inlined, all.delegated, all.combined, all.switches, section_ns}, counters, size);
  });
}

int muster_lock_get_choice(const muster_lock* lock, muster_lock_choice* choice, size_t size) {
  return guarded([&] {
    require(lock != nullptr && choice != nullptr, "no lock, or no place for its choice");
    const Choice now = lock_of(lock).choice();
    give({now.kind, now.way, now.server_why, now.has_server ? 1 : 0,
          now.server_numa.value_or(MUSTER_NO_NUMA_NODE)},
         choice, size);
  });
}

int muster_lock_explain(const muster_lock* lock, const char* format, char* text, size_t bytes,
                        size_t* needed) {
  return guarded([&] {
    require(lock != nullptr, "no lock");
    return put_explanation(lock_of(lock).explain(), format, text, bytes, needed);
  });
}

void muster_lock_destroy(muster_lock* lock) {
  if (lock == nullptr) return;
  muster::delegation::AnyLock& mine = muster::lock_of(lock);
  const muster::NoCancellation whole;
  // Whoever executes the section still uses it, also while exit() there destroys static objects.
  if (mine.is_entered()) return;
  // Who takes longer stays in a section, as a thread may at exit(): the memory stays, too. In a
  // fork's child the others are not there.
  const std::int64_t end_ns = muster::now_ns() + 1'000'000'000;
  if (!mine.in_own_process() || mine.await_callers(end_ns)) delete &mine;
}

int muster_cond_create(muster_cond** cond, muster_lock* lock) {
  return guarded([&] {
    require(cond != nullptr && lock != nullptr, "no lock, or no place for the handle");
    *cond = new muster_cond{Condition(lock_of(lock))};
  });
}

int muster_cond_wait(muster_cond* cond) { return muster_cond_timedwait(cond, WaitPolicy::forever); }

int muster_cond_timedwait(muster_cond* cond, int64_t timeout_ns) {
  return guarded([&] {
    require(cond != nullptr, "no condition");
    // What is left of a deadline may be negative.
    const bool signalled = cond->condition.wait(std::max<int64_t>(timeout_ns, 0));
    return signalled ? Status::ok : Status::timeout;
  });
}

static int call(muster_cond* cond, bool all) {
  return guarded([&] {
    require(cond != nullptr, "no condition");
    cond->condition.signal(all);
  });
}
int muster_cond_signal(muster_cond* cond) { return call(cond, false); }
int muster_cond_broadcast(muster_cond* cond) { return call(cond, true); }

void muster_cond_destroy(muster_cond* cond) {
  const NoCancellation whole;
  delete cond;
}

int muster_server_start(muster_server** server, const char* where) {
  return guarded([&] {
    require(server != nullptr, "no place for the server's handle");
    auto station = std::make_shared<Station>();
    station->start(server_options(where));
    *server = new muster_server{std::move(station)};
  });
}

int muster_server_move(muster_server* server, const char* where) {
  return guarded([&] {
    require(server != nullptr, "no server");
    server->station->place(server_options(where));
  });
}

int muster_server_explain(const muster_server* server, const char* format, char* text, size_t bytes,
                          size_t* needed) {
  return guarded([&] {
    require(server != nullptr, "no server");
    return put_explanation("server: " + server->station->describe() + "\n", format, text, bytes,
                           needed);
  });
}

int muster_server_get_place(const muster_server* server, muster_place* place) {
  return guarded([&] {
    require(server != nullptr && place != nullptr, "no server, or nowhere to put its place");
    const std::optional<unsigned> core = server->station->core();
    if (!core) throw Error(Status::declined, "its first CPU is on no core of the topology");
    const Places& places = Places::instance();
    *place = place_on(places.topology(), places.tree(), *core);
  });
}

int muster_server_get_counters(const muster_server* server, muster_server_counters* counters,
                               size_t size) {
  return guarded([&] {
    require(server != nullptr && counters != nullptr, "no server, or no place for its counters");
    const ServerCounters all = server->station->counters();
    give({all.executed, all.threads, all.handovers, all.by_watchdog, all.sleeps, all.ahead},
         counters, size);
  });
}

int muster_server_destroy(muster_server* server) {
  return guarded([&] {
    if (server == nullptr) return;
    server->station->stop();
    delete server;
  });
}

int muster_server_set_observer(void (*changed)(const unsigned* numa_nodes, unsigned count,
                                               void* context),
                               void* context) {
  return guarded([&] {
    Places::Observer observer;
    if (changed != nullptr) {
      observer = [changed, context](const std::vector<unsigned>& nodes) {
        changed(nodes.data(), static_cast<unsigned>(nodes.size()), context);
      };
    }
    Places::instance().set_observer(std::move(observer));
  });
}

int muster_thread_bind(const muster_lock* lock, unsigned* core) {
  return guarded([&] {
    const auto* const station = lock != nullptr ? lock_of(lock).station() : nullptr;
    const auto near = station != nullptr ? station->core() : std::nullopt;
    const unsigned placed = Places::instance().place_thread(near);
    if (core != nullptr) *core = placed;
  });
}

void muster_thread_unbind(void) {
  const NoCancellation whole;
  Places::unplace_thread();
}

int muster_place_servers(const char* topology, const char* policy, const unsigned* cores,
                         unsigned named, muster_place* servers, unsigned count) {
  return guarded([&] {
    require(
        (cores != nullptr || named == 0) && (servers != nullptr || count == 0) && named <= count,
        "a core for each named server, at most as many as there are servers, and room "
        "for all");
    const auto by = policy == nullptr ? ServerPolicy::pack : parse_policy(policy);
    const auto machine = Topology::from_spec_or_environment(topology == nullptr ? "" : topology);
    Placer placer{CoreTree(machine)};
    for (unsigned i = 0; i < count; ++i) {
      const auto server = i < named ? placer.add_server_at(cores[i]) : placer.add_server(by);
      servers[i] = place_on(machine, placer.tree(), server.core);
    }
  });
}

int muster_place_threads(const char* topology, const unsigned* servers, unsigned server_count,
                         const unsigned* near, muster_place* threads, unsigned count) {
  return guarded([&] {
    require(servers != nullptr && server_count > 0 && (threads != nullptr || count == 0),
            "the core of one server or more, and room for all threads");
    const auto machine = Topology::from_spec_or_environment(topology == nullptr ? "" : topology);
    Placer placer{CoreTree(machine)};
    for (unsigned i = 0; i < server_count; ++i) placer.add_server_at(servers[i]);
    for (unsigned i = 0; i < count; ++i) {
      const auto core = near != nullptr ? placer.add_thread(near[i]) : placer.add_thread();
      threads[i] = place_on(machine, placer.tree(), *core);
    }
  });
}
