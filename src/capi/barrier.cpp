// SPDX-License-Identifier: BSD-3-Clause
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "capi/engine.hpp"
#include "capi/explain.hpp"
#include "capi/failure.hpp"
#include "capi/handles.hpp"
#include "capi/sized.hpp"
#include "capi/text.hpp"
#include "machine/format.hpp"
#include "machine/identity.hpp"
#include "machine/made_once.hpp"
#include "memory/pages.hpp"

namespace muster {
namespace {

std::atomic<unsigned> generation{1};
constinit std::mutex admitting;

/// At load: a fork's child never finds it half done.
[[gnu::constructor(101)]] void watch_forks() {
  pthread_atfork(nullptr, nullptr, [] {
    generation.fetch_add(1, std::memory_order_relaxed);
    new (&admitting) std::mutex;  // another thread may have had it
  });
}

std::shared_ptr<std::byte> own_memory(const BlockLayout& layout) {
  if (!layout.paged) {
    const auto alignment = std::align_val_t{layout.alignment};
    auto* memory = static_cast<std::byte*>(operator new(layout.bytes, alignment));
    std::memset(memory, 0, layout.bytes);
    return {memory, [alignment](std::byte* p) { operator delete(p, alignment); }};
  }
  void* memory =
      mmap(nullptr, layout.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(Status::no_memory, format("no {} bytes of memory", layout.bytes));
  return {static_cast<std::byte*>(memory),
          [bytes = layout.bytes](std::byte* p) { munmap(p, bytes); }};
}

/// Keeps `segment` alive as long as the memory at `offset` in it is used.
std::shared_ptr<std::byte> memory_of(std::shared_ptr<Segment> segment, std::uint64_t offset = 0) {
  std::byte* const at = segment->data() + offset;
  return {at, [segment = std::move(segment)](std::byte*) {}};
}

std::shared_ptr<std::byte> memory_in(muster_segment& in, const BlockLayout& layout) {
  if (!in.segment->created_here()) {
    throw Error(
        Status::unsupported,
        "only the process that created a segment makes barriers in it; others attach to them");
  }
  const std::scoped_lock lock(in.mutex);
  const std::size_t offset = in.arena.allocate(layout.bytes, layout.alignment);
  if (offset == SubAllocator::npos) {
    throw Error(
        Status::no_memory,
        format("the segment has no {} bytes left for this barrier: make it larger", layout.bytes));
  }
  std::memset(in.segment->data() + offset, 0, layout.bytes);  // another barrier may have been there
  return {in.segment->data() + offset, [&in, offset, made_in = fork_generation()](std::byte*) {
            if (made_in != fork_generation()) return;  // the parent's, as is whoever has the mutex
            const std::scoped_lock unlock(in.mutex);
            in.arena.free(offset);
          }};
}

std::shared_ptr<std::byte> callers_memory(const muster_options& options,
                                          const BlockLayout& layout) {
  if (reinterpret_cast<std::uintptr_t>(options.memory) % layout.alignment != 0 ||
      options.memory_bytes < layout.bytes) {
    throw Error(Status::invalid,
                format("the memory has to be {} bytes aligned to {}: see muster_barrier_memory()",
                       layout.bytes, layout.alignment));
  }
  return {static_cast<std::byte*>(options.memory), [](std::byte*) {}};
}

/// On several NUMA nodes each rank's block goes to its own, whoever touches it first. Neighbours on
/// one go together, since each move takes as long as many.
void bind_blocks(const Plan& plan, const BlockLayout& layout, std::byte* memory) {
  if (!layout.paged) return;
  const auto end = plan.numa_of_rank.end();
  for (auto at = plan.numa_of_rank.begin(), next = at; at != end; at = next) {
    next = std::find_if(at, end, [at](unsigned numa) { return numa != *at; });
    const auto rank = static_cast<std::size_t>(at - plan.numa_of_rank.begin());
    bind_to_numa(memory + layout.ranks + rank * layout.rank_stride,
                 static_cast<std::size_t>(next - at) * layout.rank_stride, *at);
  }
}

/// Reads it all, and so after bind_blocks().
void expect_zeroed(const BlockLayout& layout, const std::byte* memory) {
  if (std::all_of(memory, memory + layout.bytes, [](std::byte b) { return b == std::byte{}; }))
    return;
  throw Error(Status::invalid,
              "the memory has to be zeroed, and is not: does it hold a barrier already?");
}

std::unique_ptr<muster_barrier> attach_to(std::shared_ptr<std::byte> memory,
                                          std::size_t available) {
  auto barrier = std::make_unique<muster_barrier>();
  Plan plan;
  const Block block = Block::attach(memory.get(), available, plan);
  if (!plan.shared) {  // its waits neither wake other processes nor look after them
    throw Error(Status::invalid,
                "the barrier was created without MUSTER_SHARED: for threads of its own process "
                "only");
  }
  barrier->memory = std::move(memory);
  barrier->set_engine(Engine::make(plan, block, {}));
  return barrier;
}

std::unique_ptr<muster_barrier> attach_to_fd(int fd) {
  const std::shared_ptr<Segment> segment = Segment::attach(fd, layout_hash);
  auto barrier = attach_to(memory_of(segment), segment->size());
  barrier->fd = segment->fd();
  return barrier;
}

std::unique_ptr<muster_barrier> create(const muster_options& options) {
  Plan plan = make_plan(options);
  plan.namespaces = own_thread().namespaces;
  const BlockLayout layout = Block::lay_out(plan);
  auto barrier = std::make_unique<muster_barrier>();
  if (options.memory != nullptr) {
    barrier->memory = callers_memory(options, layout);
  } else if (options.segment != nullptr) {
    barrier->memory = memory_in(*options.segment, layout);
    barrier->fd = options.segment->segment->fd();
    barrier->handle =
        static_cast<std::uint64_t>(barrier->memory.get() - options.segment->segment->data());
  } else if (plan.shared) {
    const std::shared_ptr<Segment> segment = Segment::create(layout.bytes, layout_hash);
    barrier->memory = memory_of(segment);
    barrier->fd = segment->fd();
  } else {
    barrier->memory = own_memory(layout);
    barrier->own_memory = true;
  }
  bind_blocks(plan, layout, barrier->memory.get());
  if (options.memory != nullptr) expect_zeroed(layout, barrier->memory.get());
  const Block block = Block::create(barrier->memory.get(), layout, plan);
  barrier->set_engine(
      Engine::make(plan, block, {options.progress, options.completion, options.context}));
  barrier->engine->prepare();
  block.open();
  barrier->owns_block = true;
  return barrier;
}

int make_barrier(muster_barrier** barrier, auto make) {
  return guarded([&] {
    if (barrier == nullptr) throw Error(Status::invalid, "no place for the barrier's handle");
    *barrier = make().release();
  });
}

bool is_usable(const muster_barrier* barrier, unsigned rank) noexcept {
  return barrier != nullptr && rank < barrier->participants &&
         barrier->seats_of.load(std::memory_order_acquire) ==
             generation.load(std::memory_order_relaxed);
}

/// What is_usable() turned away: in a fork's child it makes a shared barrier usable, else it tells
/// why not.
[[gnu::cold, gnu::noinline]] int admit(muster_barrier* barrier, unsigned rank) noexcept {
  return guarded([&] {
    if (barrier == nullptr) throw Error(Status::invalid, "no barrier");
    const Plan& plan = barrier->engine->plan();
    if (rank >= plan.participants) {
      throw Error(Status::invalid, format("rank {} of a barrier of {}", rank,
                                          counted(plan.participants, "participants")));
    }
    if (!plan.shared) {
      throw Error(Status::busy,
                  "the process forked, and this barrier is its parent's: create it with "
                  "MUSTER_SHARED");
    }
    const std::scoped_lock lock(admitting);
    if (barrier->seats_of.load(std::memory_order_relaxed) != fork_generation()) {
      barrier->engine->drop_seats();
      barrier->seats_of.store(fork_generation(),
                              std::memory_order_release);  // pairs with is_usable
    }
  });
}

/// Calls `fn(engine)`, which returns a muster_status, for a valid rank of a usable handle.
int with_rank(muster_barrier* barrier, unsigned rank, auto fn) noexcept {
  if (!is_usable(barrier, rank)) {
    if (const int refused = admit(barrier, rank); refused != MUSTER_OK) return refused;
  }
  try {
    return fn(*barrier->engine);
  } catch (...) {  // a rank's first call allocates
    return fail(Status::no_memory, "out of memory");
  }
}

[[gnu::noinline]] int timed_wait(muster_barrier* barrier, unsigned rank,
                                 int64_t timeout_ns) noexcept {
  return with_rank(barrier, rank,
                   [=](Engine& engine) { return engine.timed_wait(rank, timeout_ns); });
}

muster_options with_our_members(const muster_options& theirs) {
  constexpr std::size_t first =
      offsetof(muster_options, first_episode) + sizeof theirs.first_episode;
  return complete(theirs, first, muster_options_init_sized);
}

/// Where a leak's detector sees that it is no oversight.
void keep(muster_barrier& barrier) noexcept {
  static constinit std::atomic<const muster_barrier*> kept{nullptr};
  barrier.next_kept = kept.load(std::memory_order_relaxed);
  while (!kept.compare_exchange_weak(barrier.next_kept, &barrier, std::memory_order_release,
                                     std::memory_order_relaxed)) {
  }
}

/// Whoever waits there for one that will not come may go on so: its memory is nobody else's, and
/// the wait calls nothing of the program's. So a program may end while its threads wait.
bool may_be_waited_at_for_ever(const muster_barrier& barrier) noexcept {
  return barrier.own_memory && barrier.engine->hooks().progress == nullptr &&
         barrier.engine->is_waited_in_vain();
}

}  // namespace

unsigned fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

}  // namespace muster

using namespace muster;

void muster_options_init_sized(muster_options* options, size_t size) {
  if (options == nullptr) return;
  muster_options ours{};
  ours.size = size;
  ours.participants = 1;
  give(ours, options, size);
}

const char* const* muster_barrier_names(void) {
  static constinit MadeOnce<std::vector<const char*>> names;
  return names
      .get([] {
        std::vector<const char*> all;
        for (const std::string_view name : barrier_names()) all.push_back(name.data());  // literals
        all.push_back(nullptr);
        return all;
      })
      .data();
}

int muster_barrier_create(muster_barrier** barrier, const muster_options* options) {
  return make_barrier(barrier, [&] {
    if (options == nullptr) throw Error(Status::invalid, "no options");
    return create(with_our_members(*options));
  });
}

int muster_barrier_memory(const muster_options* options, size_t* bytes, size_t* alignment) {
  return guarded([&] {
    if (options == nullptr || bytes == nullptr)
      throw Error(Status::invalid, "no options, or no place for the result");
    const BlockLayout layout = Block::lay_out(make_plan(with_our_members(*options)));
    *bytes = layout.bytes;
    if (alignment != nullptr) *alignment = layout.alignment;
  });
}

int muster_barrier_fd(const muster_barrier* barrier) {
  return barrier != nullptr ? barrier->fd : -1;
}

uint64_t muster_barrier_handle(const muster_barrier* barrier) {
  return barrier != nullptr ? barrier->handle : 0;
}

int muster_barrier_publish(muster_barrier* barrier, const char* name) {
  return guarded([&] {
    if (barrier == nullptr || name == nullptr)
      throw Error(Status::invalid, "no barrier, or no name");
    if (barrier->fd < 0 || barrier->handle != 0) {
      throw Error(Status::unsupported,
                  "only a barrier with a segment of its own has a name (MUSTER_SHARED); else "
                  "publish the segment");
    }
    barrier->server = std::make_unique<FdServer>(name, barrier->fd);
  });
}

int muster_barrier_attach(muster_barrier** barrier, int fd) {
  return make_barrier(barrier, [&] { return attach_to_fd(fd); });
}

int muster_barrier_attach_name(muster_barrier** barrier, const char* name, int64_t timeout_ns) {
  return make_barrier(barrier, [&] {
    const int fd = receive_fd(name != nullptr ? name : "", timeout_ns);
    const FdCloser closer{fd};
    return attach_to_fd(fd);
  });
}

int muster_barrier_attach_at(muster_barrier** barrier, muster_segment* segment, uint64_t handle) {
  return make_barrier(barrier, [&] {
    if (segment == nullptr) throw Error(Status::invalid, "no segment");
    const std::size_t size = segment->segment->size();
    if (handle >= size || handle % 64 != 0)
      throw Error(Status::invalid, "no handle of a barrier in this segment");
    auto attached =
        attach_to({segment->segment->data() + handle, [](std::byte*) {}}, size - handle);
    attached->fd = segment->segment->fd();
    attached->handle = handle;
    return attached;
  });
}

int muster_barrier_attach_memory(muster_barrier** barrier, void* memory, size_t bytes) {
  return make_barrier(barrier, [&] {
    if (memory == nullptr || reinterpret_cast<std::uintptr_t>(memory) % 64 != 0) {
      throw Error(Status::invalid, "no memory, or not aligned to 64 bytes");
    }
    return attach_to({static_cast<std::byte*>(memory), [](std::byte*) {}}, bytes);
  });
}

int muster_barrier_set_hooks(muster_barrier* barrier, int (*progress)(void*),
                             int (*completion)(void*), void* context) {
  return guarded([&] {
    if (barrier == nullptr) throw Error(Status::invalid, "no barrier");
    if ((completion != nullptr) != barrier->engine->plan().completes) {
      throw Error(Status::invalid, completion != nullptr
                                       ? "the barrier was created without a completion"
                                       : "the barrier has a completion: set both");
    }
    barrier->engine->set_hooks({progress, completion, context});
  });
}

int muster_barrier_wait(muster_barrier* barrier, unsigned rank) {
  if (is_usable(barrier, rank)) [[likely]] {
    if (Seat* const seat = barrier->seats[rank].get()) [[likely]]
      return seat->calls.wait(*seat, WaitPolicy::forever);
  }
  return timed_wait(barrier, rank, WaitPolicy::forever);
}

int muster_barrier_timedwait(muster_barrier* barrier, unsigned rank, int64_t timeout_ns) {
  return timed_wait(barrier, rank, timeout_ns);
}

int muster_barrier_arrive(muster_barrier* barrier, unsigned rank) {
  return with_rank(barrier, rank, [rank](Engine& engine) { return engine.arrive(rank); });
}

int muster_barrier_depart(muster_barrier* barrier, unsigned rank) {
  return with_rank(barrier, rank, [rank](Engine& engine) { return engine.depart(rank); });
}

int muster_barrier_blame(const muster_barrier* barrier, unsigned* rank) {
  if (barrier == nullptr) return MUSTER_EINVAL;
  const Breakage why = barrier->engine->breakage();
  if (rank != nullptr) *rank = why.rank;
  return static_cast<int>(why.cause);
}

unsigned muster_barrier_participants(const muster_barrier* barrier) {
  return barrier != nullptr ? barrier->engine->plan().participants : 0;
}

int muster_barrier_get_choice(const muster_barrier* barrier, muster_barrier_choice* choice,
                              size_t size) {
  return guarded([&] {
    if (barrier == nullptr || choice == nullptr)
      throw Error(Status::invalid, "no barrier, or no place for its choice");
    const Plan& plan = barrier->engine->plan();
    give({plan.participants, barrier->algorithm.c_str(), plan.asked.c_str(), plan.why.c_str(),
          plan.wait.name.data(), plan.wait_why.c_str(), plan.dropped.c_str()},
         choice, size);
  });
}

int muster_barrier_explain(const muster_barrier* barrier, const char* format, char* text,
                           size_t bytes, size_t* needed) {
  return guarded([&] {
    if (barrier == nullptr) throw Error(Status::invalid, "no barrier");
    const Engine& engine = *barrier->engine;
    const Learnt learnt = engine.learnt();
    const Whereabouts where = engine.whereabouts();
    const std::string whole =
        is_json(format) ? explain_as_json(engine.plan(), engine.block().layout(), learnt, where)
                        : explain_as_text(engine.plan(), engine.block().layout(), learnt, where);
    return put_text(whole, text, bytes, needed);
  });
}

void muster_barrier_destroy(muster_barrier* barrier) {
  if (barrier == nullptr) return;
  const NoCancellation whole;
  // A fork's child frees its copy of a handle and leaves the rest to its parent.
  const bool last = barrier->owns_block && barrier->made_in == fork_generation();
  const Engine& engine = *barrier->engine;
  const bool seated = barrier->seats_of.load() == fork_generation();  // or it is a parent's
  if (seated && may_be_waited_at_for_ever(*barrier)) {
    keep(*barrier);
    fail(Status::busy, "somebody waits at the barrier in vain: its memory is not given back");
    return;
  }
  bool left = !seated || engine.wait_until_left(true);
  // Where the memory may hold another barrier by now, nobody else's is touched any more.
  if (seated && (last || (barrier->fd >= 0 && barrier->handle == 0))) engine.depart_for_good();
  if (last) {
    left = engine.wait_until_left(false) && left;
    engine.block().retire();
  }
  if (left) {
    delete barrier;
    return;
  }
  barrier->server.reset();
  keep(*barrier);
  fail(Status::foreign,
       "somebody has not left the barrier, though it is broken now, or something has "
       "overwritten its memory: that is not given back");
}
