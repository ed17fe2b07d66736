// SPDX-License-Identifier: BSD-3-Clause
// GNU OpenMP, libgomp, and whatever else has its functions: what compiled programs call. A process
// may have several, each known by who calls it: a library that was opened by dlopen() brings its
// own. The join at a region's end, reductions' and copyprivate's barriers are inside of the runtime
// and stay there.
#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "run/barrier.hpp"
#include "run/barrier_team.hpp"

// Those that begin a region: their results, names, parameters after the function and its data, and
// the same as arguments.
#define LOOP_BOUNDS unsigned threads, long start, long end, long step
#define REGIONS(_)                                                                    \
  _(void, GOMP_parallel, (unsigned threads, unsigned flags), (threads, flags))        \
  _(void, GOMP_parallel_sections, (unsigned threads, unsigned count, unsigned flags), \
    (threads, count, flags))                                                          \
  CHUNKED(_, GOMP_parallel_loop_static)                                               \
  CHUNKED(_, GOMP_parallel_loop_dynamic)                                              \
  CHUNKED(_, GOMP_parallel_loop_guided)                                               \
  CHUNKED(_, GOMP_parallel_loop_nonmonotonic_dynamic)                                 \
  CHUNKED(_, GOMP_parallel_loop_nonmonotonic_guided)                                  \
  UNCHUNKED(_, GOMP_parallel_loop_runtime)                                            \
  UNCHUNKED(_, GOMP_parallel_loop_nonmonotonic_runtime)                               \
  UNCHUNKED(_, GOMP_parallel_loop_maybe_nonmonotonic_runtime)
#define CHUNKED(_, name)                                   \
  _(void, name, (LOOP_BOUNDS, long chunk, unsigned flags), \
    (threads, start, end, step, chunk, flags))
#define UNCHUNKED(_, name) \
  _(void, name, (LOOP_BOUNDS, unsigned flags), (threads, start, end, step, flags))

// Those that may make a task. GOMP_task() has got more parameters with time: what an older program
// does not pass is read, and passed on, and not looked at.
#define TASKS(_)                                                                              \
  _(GOMP_task,                                                                                \
    (void (*body)(void*), void* data, void (*copy)(void*, void*), long bytes, long alignment, \
     bool deferred, unsigned flags, void** depend, int priority, void* detach),               \
    (body, data, copy, bytes, alignment, deferred, flags, depend, priority, detach))          \
  _(GOMP_taskloop,                                                                            \
    (void (*body)(void*), void* data, void (*copy)(void*, void*), long bytes, long alignment, \
     unsigned flags, unsigned long tasks, int priority, long start, long end, long step),     \
    (body, data, copy, bytes, alignment, flags, tasks, priority, start, end, step))           \
  _(GOMP_taskloop_ull,                                                                        \
    (void (*body)(void*), void* data, void (*copy)(void*, void*), long bytes, long alignment, \
     unsigned flags, unsigned long tasks, int priority, unsigned long long start,             \
     unsigned long long end, unsigned long long step),                                        \
    (body, data, copy, bytes, alignment, flags, tasks, priority, start, end, step))           \
  _(GOMP_target_ext,                                                                          \
    (int device, void (*body)(void*), std::size_t count, void** hosts, std::size_t* sizes,    \
     unsigned short* kinds, unsigned flags, void** depend, void** arguments),                 \
    (device, body, count, hosts, sizes, kinds, flags, depend, arguments))                     \
  _(GOMP_target_update_ext,                                                                   \
    (int device, std::size_t count, void** hosts, std::size_t* sizes, unsigned short* kinds,  \
     unsigned flags, void** depend),                                                          \
    (device, count, hosts, sizes, kinds, flags, depend))                                      \
  _(GOMP_target_enter_exit_data,                                                              \
    (int device, std::size_t count, void** hosts, std::size_t* sizes, unsigned short* kinds,  \
     unsigned flags, void** depend),                                                          \
    (device, count, hosts, sizes, kinds, flags, depend))

// Worksharing that ends with a barrier, and the same without.
#define ENDS(_)                          \
  _(GOMP_loop_end, GOMP_loop_end_nowait) \
  _(GOMP_sections_end, GOMP_sections_end_nowait)

// Their barriers are left to the runtime.
#define CANCELLABLE(_)    \
  _(GOMP_barrier_cancel)  \
  _(GOMP_loop_end_cancel) \
  _(GOMP_sections_end_cancel)

#define PARTS(...) __VA_ARGS__

namespace muster::run {
namespace {

// NOLINTBEGIN(bugprone-macro-parentheses): names
struct Gomp : Runtime {
  link_map* library;
  const Gomp* next;
#define MEMBER(result, name, parameters, arguments) \
  result (*name)(void (*)(void*), void*, PARTS parameters);
  REGIONS(MEMBER)
#undef MEMBER
  unsigned (*GOMP_parallel_reductions)(void (*)(void*), void*, unsigned threads, unsigned flags);
#define MEMBER(name, parameters, arguments) void(*name) parameters;
  TASKS(MEMBER)
#undef MEMBER
#define MEMBER(name, nowait) void (*name)(), (*nowait)();
  ENDS(MEMBER)
#undef MEMBER
#define MEMBER(name) bool (*name)();
  CANCELLABLE(MEMBER)
#undef MEMBER
  void* (*GOMP_single_copy_start)();
  void (*GOMP_workshare_task_reduction_unregister)(bool cancelled);
};
// NOLINTEND(bugprone-macro-parentheses)

constinit std::atomic<const Gomp*> runtimes{nullptr};

/// Some code and its runtime, null if it reaches none. Never freed.
struct Call {
  const void* code;
  const Gomp* runtime;
  bool is_inside;    ///< it is the runtime's own
  const Call* next;  ///< of those in its place
};
constinit std::array<std::atomic<const Call*>, 256> calls{};
std::atomic<const Call*>& place_of(const void* code) noexcept {
  return calls[reinterpret_cast<std::uintptr_t>(code) / 4 % calls.size()];
}

link_map* library_of(const void* address) noexcept {
  Dl_info info;
  void* library = nullptr;
  if (dladdr1(address, &info, &library, RTLD_DL_LINKMAP) == 0) return nullptr;
  return static_cast<link_map*>(library);
}

template <class Function>
void find_in(void* library, const char* name, Function& into) noexcept {
  into = reinterpret_cast<Function>(dlsym(library, name));
}

const Gomp* known(const link_map* library) noexcept {
  const Gomp* oldest = nullptr;
  for (const Gomp* it = runtimes.load(std::memory_order_acquire); it != nullptr; it = it->next) {
    if (it->library == library) oldest = it;
  }
  return oldest;
}

/// Two threads may add the same one; the older counts.
const Gomp* runtime_in(link_map* library) noexcept {
  if (const Gomp* const there = known(library); there != nullptr) return there;
  void* const handle = dlopen(library->l_name, RTLD_LAZY | RTLD_NOLOAD);
  auto* const fresh = &make<Gomp>();
  fresh->library = library;
  find_in(handle, "omp_get_num_threads", fresh->num_threads);
  find_in(handle, "omp_get_thread_num", fresh->thread_num);
  find_in(handle, "omp_get_level", fresh->level);
  find_in(handle, "omp_get_cancellation", fresh->cancellation);
  find_in(handle, "GOMP_barrier", fresh->barrier);
#define FIND(result, name, parameters, arguments) find_in(handle, #name, fresh->name);
  REGIONS(FIND)
#undef FIND
#define FIND(name, parameters, arguments) find_in(handle, #name, fresh->name);
  TASKS(FIND)
#undef FIND
#define FIND(name, nowait)             \
  find_in(handle, #name, fresh->name); \
  find_in(handle, #nowait, fresh->nowait);
  ENDS(FIND)
#undef FIND
#define FIND(name) find_in(handle, #name, fresh->name);
  CANCELLABLE(FIND)
  FIND(GOMP_parallel_reductions)
  FIND(GOMP_single_copy_start)
  FIND(GOMP_workshare_task_reduction_unregister)
  FIND(__kmpc_fork_call)
  FIND(__kmpc_fork_call_if)
  FIND(__kmpc_barrier)
  FIND(__kmpc_cancel_barrier)
  FIND(__kmpc_reduce)
  FIND(__kmpc_copyprivate)
  FIND(__kmpc_omp_task_alloc)
  FIND(__kmpc_omp_target_task_alloc)
#undef FIND
  const Gomp* first = runtimes.load(std::memory_order_relaxed);
  do fresh->next = first;
  while (!runtimes.compare_exchange_weak(first, fresh, std::memory_order_acq_rel));
  return known(library);
}

/// Where none can be reached: the caller's last act was the call, so that it seems to be its
/// caller's.
const Gomp& runtime_of_region(const char* name) noexcept {
  const auto* its = static_cast<const Gomp*>(runtime_here());
  if (its == nullptr) its = runtimes.load(std::memory_order_acquire);
  if (its != nullptr) return *its;
  dprintf(STDERR_FILENO, "muster run: no library has %s\n", name);
  std::abort();
}

/// What our own code calls is the runtime's, too: it ends a call with one of another name.
[[gnu::noinline, gnu::cold]] const Call& look_for(const void* code, const char* name) noexcept {
  static const int ours = 0;
  link_map* const library = library_of(code);
  const bool is_ours = library == library_of(&ours);
  void* const reached = is_ours ? nullptr : reached_from(code, name);
  const Gomp* const runtime = reached != nullptr ? runtime_in(library_of(reached)) : nullptr;
  const bool is_inside = is_ours || (runtime != nullptr && runtime->library == library);
  Call& call = make<Call>(code, runtime, is_inside, nullptr);
  auto& place = place_of(code);
  call.next = place.load(std::memory_order_relaxed);
  while (!place.compare_exchange_weak(call.next, &call, std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
  return call;
}

/// Of code that calls, or is to be called, functions as the one of that name.
Reached reached_by(const void* code, const char* name) noexcept {
  const Call* call = place_of(code).load(std::memory_order_acquire);
  while (call != nullptr && call->code != code) call = call->next;
  if (call == nullptr) call = &look_for(code, name);
  return {call->runtime != nullptr ? *call->runtime : runtime_of_region(name), call->is_inside};
}

const Gomp& gomp_of(const void* code) noexcept {
  return static_cast<const Gomp&>(reached_by(code, "GOMP_barrier").runtime);
}

}  // namespace

/// As the loader looks: in what everybody sees, and then in what the code's library brought along.
/// A library that was opened stays open: we keep addresses in its runtime, and know its code by its
/// own, where another library's would be taken for it.
void* reached_from(const void* code, const char* name) noexcept {
  void* const found = dlsym(RTLD_NEXT, name);
  return found != nullptr ? found : brought_by(code, name);
}

void* brought_by(const void* code, const char* name) noexcept {
  link_map* const library = library_of(code);
  if (library == nullptr || library->l_name[0] == '\0') return nullptr;
  void* const handle = dlopen(library->l_name, RTLD_LAZY | RTLD_NOLOAD);
  return handle != nullptr ? dlsym(handle, name) : nullptr;
}

void* reached_or_abort(const void* code, const char* name) noexcept {
  void* const found = reached_from(code, name);
  return found != nullptr ? found : next_function(name);
}

Reached kmp_of(const void* code) noexcept { return reached_by(code, "__kmpc_barrier"); }

}  // namespace muster::run

using muster::run::count;
using muster::run::gomp_of;
using muster::run::is_at_work;
using muster::run::pass_team_barrier;
using muster::run::Region;
using muster::run::tell_of_task;
using muster::run::Waits;

#define CALLERS_RUNTIME gomp_of(__builtin_return_address(0))

#define DEFINE(result, name, parameters, arguments)                                \
  MUSTER_EXPORTED result name(void (*body)(void*), void* data, PARTS parameters) { \
    const auto& runtime = gomp_of(reinterpret_cast<void*>(body));                  \
    if (!is_at_work()) return runtime.name(body, data, PARTS arguments);           \
    Region region(runtime, body, data);                                            \
    return runtime.name(Region::run, &region, PARTS arguments);                    \
  }
REGIONS(DEFINE)
#undef DEFINE

MUSTER_EXPORTED unsigned GOMP_parallel_reductions(void (*body)(void*), void* data, unsigned threads,
                                                  unsigned flags) {
  const auto& runtime = gomp_of(reinterpret_cast<void*>(body));
  if (!is_at_work()) return runtime.GOMP_parallel_reductions(body, data, threads, flags);
  Region region(runtime, body, data);
  region.reductions = *static_cast<void**>(data);
  return runtime.GOMP_parallel_reductions(Region::run, &region, threads, flags);
}

#define DEFINE(name, parameters, arguments) \
  MUSTER_EXPORTED void name parameters {    \
    tell_of_task();                         \
    CALLERS_RUNTIME.name arguments;         \
  }
TASKS(DEFINE)
#undef DEFINE

MUSTER_EXPORTED void GOMP_barrier() {
  const auto& runtime = CALLERS_RUNTIME;
  if (!is_at_work() || !pass_team_barrier(runtime)) runtime.barrier();
}

#define DEFINE(name, nowait)                                                          \
  MUSTER_EXPORTED void name() {                                                       \
    const auto& runtime = CALLERS_RUNTIME;                                            \
    if (!is_at_work() || !pass_team_barrier(runtime, runtime.nowait)) runtime.name(); \
  }
ENDS(DEFINE)
#undef DEFINE

#define DEFINE(name)                                    \
  MUSTER_EXPORTED bool name() {                         \
    if (is_at_work()) count(Waits::openmp_cancellable); \
    return CALLERS_RUNTIME.name();                      \
  }
CANCELLABLE(DEFINE)
#undef DEFINE

// Their barriers are inside of the runtime.

MUSTER_EXPORTED void* GOMP_single_copy_start() {
  if (is_at_work()) count(Waits::openmp_inside);
  return CALLERS_RUNTIME.GOMP_single_copy_start();
}

MUSTER_EXPORTED void GOMP_workshare_task_reduction_unregister(bool cancelled) {
  if (is_at_work()) count(Waits::openmp_inside);
  CALLERS_RUNTIME.GOMP_workshare_task_reduction_unregister(cancelled);
}
