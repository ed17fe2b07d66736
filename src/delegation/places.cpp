// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/places.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "delegation/cpus.hpp"
#include "delegation/thread.hpp"
#include "machine/error.hpp"
#include "machine/preload.hpp"
#include "machine/run_threads.hpp"

namespace muster::delegation {
namespace {

/// As far as the process may use it, whatever the calling thread may.
Topology read_machine() {
  const PuSet cpus = binding_of_process();
  const OwnThreads no_worker;
  std::packaged_task<Topology()> reads([&] {
    if (!cpus.empty()) bind_thread(pthread_self(), cpus);
    return Topology::from_spec_or_environment("");
  });
  run_threads(1, [&](unsigned) { reads(); });
  return reads.get_future().get();
}

/// Whom to tell. Outlives a fork, as no Places does; who replaces it frees it, so that a fork at
/// any moment finds a whole one.
std::atomic<const Places::Observer*> observer{nullptr};
/// The generation in which it has been told of servers; 0: there are none.
std::atomic<unsigned> told_of_some{0};

/// For `muster run`, which places threads around servers.
void tell_preload(const Places::Server& server, int more) {
  if (muster_preload_servers == nullptr || server.cpus.empty()) return;
  muster_preload_servers(server.cpus.first(), more);
}

}  // namespace

struct Places::Bound final : Place {
  Places& places;
  const PuSet before;            ///< empty: it was not bound
  std::optional<unsigned> core;  ///< nothing: not counted yet

  Bound(Places& in, PuSet was) : places(in), before(std::move(was)) {}
  ~Bound() override {
    if (!core || !places.birth_.is_here()) return;
    const std::scoped_lock lock(places.mutex_);
    places.placer_.remove_thread(*core);
  }
  static const Bound* mine() { return static_cast<const Bound*>(this_thread.place); }
};

Places::Places() : topology_(read_machine()), placer_(CoreTree(topology_)) {}

Places& Places::instance() {
  static PerGeneration<std::unique_ptr<Places>> all;
  Places& places = *all.get([] { return std::unique_ptr<Places>(new Places); });
  const unsigned told = told_of_some;
  if (told != 0 && told != generation()) places.tell_observer();
  return places;
}

Places::Server Places::server_on(unsigned core) const {
  Server server{core, topology_.is_this_machine() ? topology_.cores()[core].pu_set() : PuSet{}};
  tell_preload(server, 1);
  return server;
}

Places::Server Places::add_server(ServerPolicy policy, const PuSet& cpus) {
  const std::scoped_lock lock(mutex_);
  if (cpus.empty()) return server_on(placer_.add_server(policy).core);
  Server server{std::nullopt, cpus};
  if (const unsigned core = topology_.core_of(cpus.first()); is_unit(core)) {
    server.core = placer_.add_server_at(core).core;
  }
  tell_preload(server, 1);
  return server;
}

void Places::take_cores_of(const std::vector<int>& thread_ids, std::vector<bool>& taken) const {
  for (const int thread_id : thread_ids) {
    const PuSet cpus = binding_of(thread_id);
    const unsigned core = topology_.core_of(cpus.first());
    if (is_unit(core) && cpus.is_subset_of(topology_.cores()[core].pu_set())) taken[core] = true;
  }
}

std::optional<unsigned> Places::spare_core(auto is_left_out,
                                           const std::vector<int>& thread_ids) const {
  std::vector<bool> taken(tree().cores());
  for (unsigned core = 0; core < tree().cores(); ++core) taken[core] = is_left_out(core);
  take_cores_of(thread_ids, taken);
  return choose_spare_core(placer_.tree(), placer_.now(), ServerPolicy::pack, taken);
}

std::optional<Places::Server> Places::add_spare_server(const std::vector<int>& thread_ids,
                                                       std::optional<unsigned> near_cpu) {
  const std::scoped_lock lock(mutex_);
  const auto core =
      spare_core([&](unsigned at) { return near_cpu && !is_near(at, *near_cpu); }, thread_ids);
  if (!core) return std::nullopt;
  placer_.add_server_at(*core);
  return server_on(*core);
}

std::optional<unsigned> Places::spare_cpu_far_from(const std::vector<unsigned>& cpus,
                                                   const std::vector<int>& thread_ids) const {
  const std::scoped_lock lock(mutex_);
  const auto is_near_one = [&](unsigned core) {
    return std::any_of(cpus.begin(), cpus.end(), [&](unsigned cpu) { return is_near(core, cpu); });
  };
  const auto core = spare_core(is_near_one, thread_ids);
  return core ? std::optional(cpu_of(*core)) : std::nullopt;
}

bool Places::is_near(std::optional<unsigned> core, unsigned cpu) const {
  const unsigned other = topology_.core_of(cpu);
  return !core || !is_unit(other) || tree().numa_of(*core) == tree().numa_of(other);
}

void Places::remove_server(const Server& server) {
  tell_preload(server, -1);
  if (!server.core) return;
  const std::scoped_lock lock(mutex_);
  placer_.remove_server(*server.core);
}

unsigned Places::place_thread(std::optional<unsigned> near) {
  first_seat();  // a thread without one is not seen to end
  unplace_thread();
  const bool binds = topology_.is_this_machine();
  auto bound = std::make_unique<Bound>(*this, binds ? binding_of(0) : PuSet{});
  {
    const std::scoped_lock lock(mutex_);
    if (near && placer_.now().servers[*near] == 0) near.reset();
    bound->core = placer_.add_thread(near);
  }
  if (!bound->core) {
    throw Error(Status::declined,
                "no server runs that a thread could be near: start one, then place the threads");
  }
  const unsigned core = *bound->core;
  const int error = binds ? bind_thread(pthread_self(), topology_.cores()[core].pu_set()) : 0;
  if (error != 0) {
    throw Error(Status::system, "the thread cannot be bound to " +
                                    topology_.cores()[core].pu_set().to_string() + ": " +
                                    std::strerror(error));
  }
  this_thread.place = bound.release();
  return core;
}

void Places::unplace_thread() noexcept {
  const std::unique_ptr<const Bound> bound(Bound::mine());
  if (bound == nullptr) return;
  this_thread.place = nullptr;
  if (!bound->before.empty()) bind_thread(pthread_self(), bound->before);
}

unsigned Places::core_of_this_thread(unsigned number) const {
  unsigned core = number % tree().cores();
  const Bound* const bound = Bound::mine();
  if (topology_.is_this_machine()) {
    const int cpu = sched_getcpu();
    const unsigned at = cpu < 0 ? kOutside : topology_.core_of(static_cast<unsigned>(cpu));
    core = is_unit(at) ? at : 0;
  } else if (bound != nullptr && &bound->places == this) {
    core = *bound->core;
  }
  return core;
}

std::vector<unsigned> Places::servers_numa_nodes() const {
  std::set<unsigned> nodes;
  const std::scoped_lock lock(mutex_);
  for (unsigned core = 0; core < tree().cores(); ++core) {
    if (placer_.now().servers[core] == 0) continue;
    nodes.insert(tree().numa_nodes()[tree().numa_of(core)].os_index.value_or(no_numa_node));
  }
  return {nodes.begin(), nodes.end()};
}

bool Places::has_observer() noexcept { return observer.load() != nullptr; }

void Places::set_observer(Observer next) {
  {
    const std::scoped_lock lock(telling_);
    std::unique_ptr<const Observer> fresh;
    if (next) fresh = std::make_unique<const Observer>(std::move(next));
    const std::unique_ptr<const Observer> before(observer.exchange(fresh.release()));
    told_of_some = 0;
  }
  if (!servers_numa_nodes().empty()) tell_observer();
}

void Places::tell_observer() {
  const std::scoped_lock lock(telling_);
  const Observer* const told = observer.load();
  if (told == nullptr) return;
  try {
    const std::vector<unsigned> nodes = servers_numa_nodes();
    told_of_some = nodes.empty() ? 0 : generation();
    (*told)(nodes);
  } catch (const std::bad_alloc&) {
    // The server has changed all the same: the next change is told.
  }
}

}  // namespace muster::delegation
