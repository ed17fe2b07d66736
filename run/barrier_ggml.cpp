// SPDX-License-Identifier: BSD-3-Clause
// ggml_barrier() of a ggml that was built without OpenMP: one counter that everybody spins on. Each
// thread of a graph counts itself and passes ggml's own barrier first: then all know how many they
// are, and the graph's other barriers are ours.
//
// Invariants:
// 1. A graph has a number of its own. A pool in the plan has it before its threads begin; one that
//    is made for the graph has new threads, which have seen no graph.
// 2. So all threads of a graph take the same barrier in each episode.
// 3. Who is late in leaving a graph's last barrier has left it before another graph takes it, for
//    which it begins anew: that may have another number of threads.
#include <mutex>

#include "run/barrier_anyone.hpp"
#include "run/barrier_team.hpp"

namespace muster::run {
namespace {

/// How struct ggml_cplan begins, from ggml's first thread pools on (2024).
struct Plan {
  std::size_t work_size;
  std::uint8_t* work;
  int threads;
  void* pool;
};

/// A pool that computes. Never freed; later ones take it over.
struct alignas(128) Computing {
  std::atomic<const void*> pool{nullptr};
  std::atomic<Word> graph{0};
  std::atomic<Word> threads{0};  ///< that have come to the graph's first barrier
  Computing* next = nullptr;
  WithoutRanks barrier{};
};
Computing* computing = nullptr;
Word graphs = 0;
std::mutex changes;  // of the two above

/// The pool's; a new graph's, if it computes none yet or that `is_new`.
Computing& computing_in(const void* pool, bool is_new) {
  const std::scoped_lock lock(changes);
  Computing* its = nullptr;
  Computing* unused = nullptr;
  for (Computing* one = computing; one != nullptr && its == nullptr; one = one->next) {
    if (one->pool == pool) its = one;
    if (one->pool == nullptr) unused = one;
  }
  if (its != nullptr && !is_new) return *its;
  if (its == nullptr) its = unused;
  if (its == nullptr) {
    its = &make<Computing>();
    its->next = std::exchange(computing, its);
  }
  await_left(&its->barrier);
  new (&its->barrier) WithoutRanks{};
  its->threads = 0;
  its->graph = ++graphs;
  its->pool = pool;
  return *its;
}

/// What a thread knows of its graph.
struct Part {
  Computing* its = nullptr;
  Word graph = 0;
  Word threads = 0;
};
constinit thread_local Part part;

/// With OpenMP its barrier is the team's: barrier_team.hpp.
bool has_openmp(const void* ggml) noexcept {
  return brought_by(ggml, "GOMP_barrier") != nullptr ||
         brought_by(ggml, "__kmpc_barrier") != nullptr;
}

}  // namespace

/// In a fork's child: nobody computes.
void forget_graphs() noexcept {
  new (&changes) std::mutex;
  for (Computing* one = computing; one != nullptr; one = one->next) one->pool = nullptr;
}

}  // namespace muster::run

using namespace muster::run;

MUSTER_EXPORTED int ggml_graph_compute(void* graph, Plan* plan) {
  using Compute = int (*)(void*, Plan*);
  void* const next = reached_or_abort(__builtin_return_address(0), "ggml_graph_compute");
  const auto compute = reinterpret_cast<Compute>(next);
  if (!is_at_work() || plan == nullptr || has_openmp(next)) return compute(graph, plan);
  const Part outer = std::exchange(part, {});
  if (plan->pool != nullptr) part.its = &computing_in(plan->pool, true);
  const int result = compute(graph, plan);
  if (part.its != nullptr) part.its->pool = nullptr;
  part = outer;
  return result;
}

MUSTER_EXPORTED void ggml_barrier(void* pool) {
  if (part.its != nullptr && part.threads != 0 && part.its->pool == pool &&
      part.its->graph == part.graph) {
    if (part.threads == 1) return;
    is_watched()
        ? wait_without_rank<true>(part.its->barrier, part.threads, Waits::ggml, &Member::ggml)
        : wait_without_rank<false>(part.its->barrier, part.threads, Waits::ggml, &Member::ggml);
    return;
  }
  void* const next = reached_or_abort(__builtin_return_address(0), "ggml_barrier");
  const auto pass = reinterpret_cast<void (*)(void*)>(next);
  if (!is_at_work() || has_openmp(next)) return pass(pool);
  Computing& its = computing_in(pool, false);
  part = {&its, its.graph, 0};
  ++its.threads;
  pass(pool);
  part.threads = its.threads;
  count(Waits::ggml_first);
}
