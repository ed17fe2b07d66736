// SPDX-License-Identifier: BSD-3-Clause
// A record for each thread, and new threads bound to cores: RCLHierarchicalAffinity [PS18,
// Algorithm 2] by a list of cores, nearest to the server first, that the launcher has made. A
// thread that ends gives its place back. No thread goes where it could not have gone without us.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "machine/keep_errno.hpp"
#include "placement/least_busy.hpp"
#include "run/record.hpp"

namespace muster::run {

constinit std::array<Record, records_max> records{};
constinit thread_local Self self{};
constinit Word fork_mark = 0;

namespace {

constexpr unsigned cpus_max = 8192;
constexpr unsigned masks_max = 64;

/// CPUs, as the kernel wants them.
struct Mask {
  std::array<unsigned long, cpus_max / (8 * sizeof(unsigned long))> words;

  bool holds(unsigned cpu) const { return CPU_ISSET_S(cpu, sizeof words, set()) != 0; }
  void add(unsigned cpu) { CPU_SET_S(cpu, sizeof words, set()); }
  bool is_equal_to(const Mask& other) const {
    return std::memcmp(&words, &other.words, sizeof words) == 0;
  }
  cpu_set_t* set() { return reinterpret_cast<cpu_set_t*>(words.data()); }
  const cpu_set_t* set() const { return reinterpret_cast<const cpu_set_t*>(words.data()); }
};

/// A core for threads.
struct Place {
  unsigned first_pu;  ///< its PUs are pus[first_pu, end_pu)
  unsigned end_pu;
  unsigned threads;      ///< now
  unsigned threads_yet;  ///< all that were placed here
  unsigned servers;      ///< of libmuster's, now
};

/// What all threads share; under `guard`, but for what is atomic. No constructor: it would run
/// after run_threads_start(), and touch every page of the records.
constinit struct {
  pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
  std::array<unsigned, cpus_max> pus;
  std::array<Place, cpus_max + 1> places;  ///< from 1 on
  unsigned place_count;
  std::array<Mask, masks_max> masks;  ///< that threads would have without us; few differ
  unsigned mask_count;
  unsigned used;  ///< records [1, used) have been somebody's; 0 before the start
  unsigned first_free;
  std::atomic<unsigned> threads;
  unsigned threads_most;
  std::atomic<Word> identities;  ///< given yet
  pthread_key_t key;
} all{};

class Guarded {
 public:
  Guarded() { theirs.mutex_lock(&all.guard); }
  ~Guarded() { theirs.mutex_unlock(&all.guard); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
};

bool get_mask(Mask& mask) {
  mask = {};
  return sched_getaffinity(0, sizeof mask.words, mask.set()) == 0;
}
bool set_mask(const Mask& mask) {
  const KeepErrno of_caller;
  return sched_setaffinity(0, sizeof mask.words, mask.set()) == 0;
}

/// The core's CPUs, of those in the mask; false if there are none.
bool narrow_to(const Place& place, const Mask& from, Mask& mask) {
  mask = {};
  bool some = false;
  for (unsigned i = place.first_pu; i < place.end_pu; ++i) {
    if (!from.holds(all.pus[i])) continue;
    mask.add(all.pus[i]);
    some = true;
  }
  return some;
}

template <class Predicate>
bool any_pu(const Place& place, Predicate is) {
  return std::any_of(&all.pus[place.first_pu], &all.pus[place.end_pu], is);
}
bool meets(const Place& place, const Mask& mask) {
  return any_pu(place, [&](unsigned pu) { return mask.holds(pu); });
}

/// "0,8;1,9". What is no number ends a core, as ';' does: the launcher wrote it.
void read_cores(const char* text) {
  unsigned pus = 0;
  while (*text != '\0' && all.place_count < cpus_max) {
    Place& place = all.places[++all.place_count];
    place = {.first_pu = pus, .end_pu = pus, .threads = 0, .threads_yet = 0, .servers = 0};
    for (;;) {
      char* end = nullptr;
      const unsigned long pu = std::strtoul(text, &end, 10);
      if (end != text && pu < cpus_max && pus < cpus_max)
        all.pus[pus++] = static_cast<unsigned>(pu);
      text = end;
      if (*text != ',') break;
      ++text;
    }
    place.end_pu = pus;
    if (*text != '\0') ++text;
  }
}

/// Under guard. masks_max if there is no room for another one.
unsigned number_of_mask(const Mask& mask) {
  for (unsigned i = 0; i < all.mask_count; ++i) {
    if (all.masks[i].is_equal_to(mask)) return i;
  }
  if (all.mask_count == masks_max) return masks_max;
  all.masks[all.mask_count] = mask;
  return all.mask_count++;
}

/// Whether the calling thread is bound as we bound it; its mask is in `now`.
bool is_bound_by_us(const Mask& now) {
  const Record& mine = records[self.number];
  if (self.number == 0 || mine.core == nowhere) return false;
  Mask bound;
  return narrow_to(all.places[mine.core], all.masks[mine.mask], bound) && bound.is_equal_to(now);
}

/// Under guard: takes a place for a thread that the calling one makes.
void take_place(Record& its) {
  Mask now;
  if (!get_mask(now)) return;
  const unsigned mask = is_bound_by_us(now) ? records[self.number].mask : number_of_mask(now);
  if (mask == masks_max) return;
  const Mask& allowed = all.masks[mask];
  Place* const begin = &all.places[1];
  Place* const end = begin + all.place_count;
  // Who makes a team is a member of it: its core has one thread more, bound there or not.
  const bool is_member = settings.barrier != nullptr && records[self.number].core == nowhere;
  const int here = is_member ? sched_getcpu() : -1;
  const auto threads_on = [&](const Place& p) {
    const bool holds = here >= 0 && any_pu(p, [&](unsigned pu) { return pu == unsigned(here); });
    return p.threads + (holds ? 1U : 0U);
  };
  // No core of a server, unless all that the thread may use are.
  const auto is_free = [&](const Place& p) { return p.servers == 0 && meets(p, allowed); };
  const bool some = std::any_of(begin, end, is_free);
  Place* const best = least_busy(begin, end, [&](const Place& p) {
    return (some ? is_free(p) : meets(p, allowed)) ? threads_on(p) : ~0U;
  });
  if (best == end || !meets(*best, allowed)) return;
  ++best->threads;
  ++best->threads_yet;
  its.core = static_cast<unsigned>(best - all.places.data());
  its.mask = mask;
}

/// Under guard.
void give_place_back(Record& its) {
  if (its.core != nowhere) --all.places[its.core].threads;
  its.core = nowhere;
}

/// Under guard: 0 if there is none left, or none yet: a thread may be made before the start.
unsigned take_record() {
  unsigned number = all.first_free;
  if (number != 0) {
    all.first_free = records[number].next_free;
  } else if (all.used != 0 && all.used < records_max) {
    number = all.used++;
  }
  if (number == 0) return 0;
  Record& its = records[number];
  its.core = nowhere;
  its.queueing = false;
  its.was_created = false;
  return number;
}

/// Under guard.
void free_record(unsigned number) {
  Record& its = records[number];
  give_place_back(its);
  its.next_free = all.first_free;
  all.first_free = number;
}

void become(unsigned number) {
  self.number = number;
  pthread_setspecific(all.key, &records[number]);
}

/// When a thread ends. Others' handlers may run after this one: they go without a record.
void leave(void*) {
  const unsigned number = self.number;
  if (number == 0) return;
  if (records[number].was_created) all.threads.fetch_sub(1, std::memory_order_relaxed);
  self.number = 0;
  self.has_ended = true;
  const Guarded guarded;
  free_record(number);
}

void bind_here() {
  Record& mine = records[self.number];
  Mask mask;
  const Place& place = all.places[mine.core];
  if (narrow_to(place, all.masks[mine.mask], mask) && set_mask(mask)) return;
  count(self.number, RUN_LEFT_ALONE);
  const Guarded guarded;
  give_place_back(mine);
}

/// The calling thread's, which has just begun.
const Record& begin(void* argument) {
  Record& mine = *static_cast<Record*>(argument);
  become(static_cast<unsigned>(&mine - records.data()));
  if (mine.core != nowhere) bind_here();
  return mine;
}
void* begin_posix(void* argument) {
  const Record& mine = begin(argument);
  return mine.start.posix(mine.argument);
}
int begin_c11(void* argument) {
  const Record& mine = begin(argument);
  return mine.start.c11(mine.argument);
}

void uncount(unsigned number, run_count what) {
  records[number].counts[what].fetch_sub(1, std::memory_order_relaxed);
}

/// Whether it says itself on which CPUs the thread is to run.
bool has_affinity(const pthread_attr_t* attributes) {
  if (attributes == nullptr) return false;
  Mask mask;
  if (pthread_attr_getaffinity_np(attributes, sizeof mask.words, mask.set()) != 0) return true;
  for (const unsigned long word : mask.words) {
    if (word != ~0UL) return true;
  }
  return false;
}

/// make(its record, or null where there is none left) is the C library's part; what it returns.
template <class Make>
int create(bool chosen, void* argument, Make make) {
  if (self.makes_own != 0) {
    const bool was_bound = run_widen();
    const int error = make(nullptr);
    if (was_bound) run_narrow();
    return error;
  }
  unsigned number = 0;
  {
    const Guarded guarded;
    number = take_record();
    if (number != 0) {
      if (!chosen && all.place_count != 0) take_place(records[number]);
      const unsigned threads = all.threads.fetch_add(1, std::memory_order_relaxed) + 1;
      if (threads > all.threads_most) all.threads_most = threads;
    }
  }
  Record& its = records[number];
  const bool placed = number != 0 && its.core != nowhere;
  const bool left_alone = !placed && all.place_count != 0;
  const unsigned mine = my_number();
  count(mine, RUN_CREATED);
  if (left_alone) count(mine, RUN_LEFT_ALONE);
  if (number != 0) {
    its.argument = argument;
    its.was_created = true;
  }
  const int error = make(number != 0 ? &its : nullptr);
  if (error == 0) return 0;
  uncount(mine, RUN_CREATED);
  if (left_alone) uncount(mine, RUN_LEFT_ALONE);
  if (number == 0) return error;
  all.threads.fetch_sub(1, std::memory_order_relaxed);
  const Guarded guarded;
  if (its.core != nowhere) --all.places[its.core].threads_yet;
  free_record(number);
  return error;
}

}  // namespace

unsigned ask_number() {
  if (self.number != 0 || self.has_ended) return self.number;
  run_start();
  unsigned number = 0;
  {
    const Guarded guarded;
    number = take_record();
  }
  if (number == 0) return 0;
  become(number);
  return number;
}

// Neither a record's number nor the kernel's for the thread, which are both used again: what a
// thread leaves locked would become another one's.
Word my_identity() {
  while (self.identity == 0) {
    self.identity = all.identities.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  return self.identity;
}

bool is_alone() { return settings.cpus < 2; }

}  // namespace muster::run

using namespace muster::run;

void run_threads_start() {
  all.threads = 1;
  all.threads_most = 1;
  pthread_key_create(&all.key, leave);
  {
    const Guarded guarded;  // others may ask already
    all.used = 1;
  }
  if (settings.cores == nullptr) return;
  read_cores(settings.cores);
  if (!settings.binds_main) return;
  const unsigned number = my_number();
  if (number == 0) return;
  {
    const Guarded guarded;
    take_place(records[number]);
  }
  if (records[number].core != nowhere) bind_here();
}

// One thread is left, with nothing counted yet, and on the CPUs that it would have without us. All
// that is under guard is made anew: another thread may have been in the middle of a change.
void run_threads_after_fork() {
  all.guard = PTHREAD_MUTEX_INITIALIZER;
  run_widen();
  all.mask_count = 0;
  for (unsigned number = 0; number < all.used; ++number) {
    for (auto& counter : records[number].counts) counter.store(0, std::memory_order_relaxed);
  }
  for (unsigned place = 1; place <= all.place_count; ++place) {
    all.places[place].threads = 0;
    all.places[place].threads_yet = 0;
    all.places[place].servers = 0;
  }
  all.first_free = 0;
  for (unsigned number = all.used; number-- > 1;) {
    if (number == self.number) continue;
    records[number].core = nowhere;
    free_record(number);
  }
  records[self.number].core = nowhere;
  records[self.number].was_created = false;
  all.threads = 1;
  all.threads_most = 1;
  fork_mark += 0x10000;
}

int run_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
               void* argument) {
  return create(has_affinity(attributes), argument, [&](Record* its) {
    if (its == nullptr) return theirs.create(thread, attributes, start, argument);
    its->start.posix = start;
    return theirs.create(thread, attributes, begin_posix, its);
  });
}

int run_create_c11(thrd_t* thread, thrd_start_t start, void* argument) {
  return create(false, argument, [&](Record* its) {
    if (its == nullptr) return theirs.create_c11(thread, start, argument);
    its->start.c11 = start;
    return theirs.create_c11(thread, begin_c11, its);
  });
}

bool run_widen() {
  if (self.number == 0 || records[self.number].core == nowhere) return false;
  Mask now;
  return get_mask(now) && is_bound_by_us(now) && set_mask(all.masks[records[self.number].mask]);
}

void run_narrow() {
  const Record& mine = records[self.number];
  Mask mask;
  if (narrow_to(all.places[mine.core], all.masks[mine.mask], mask)) set_mask(mask);
}

void run_own_threads(int more) { self.makes_own += more; }

void run_servers(unsigned pu, int more) {
  const Guarded guarded;
  for (unsigned number = 1; number <= all.place_count; ++number) {
    Place& place = all.places[number];
    if (!any_pu(place, [&](unsigned its) { return its == pu; })) continue;
    if (more < 0 && place.servers == 0) return;  // a fork's child takes leave of its parent's
    place.servers += static_cast<unsigned>(more);
  }
}

void run_count_one(run_count what) { count(my_number(), what); }

uint64_t run_total(run_count what) {
  std::uint64_t total = 0;
  for (unsigned number = 0; number < all.used; ++number) {
    total += records[number].counts[what].load(std::memory_order_relaxed);
  }
  return total;
}

unsigned run_most_threads() { return all.threads_most; }
unsigned run_cores() { return all.place_count; }
uint64_t run_placed_on(unsigned core) { return all.places[core + 1].threads_yet; }

void run_print_pus(int file, unsigned core) {
  const Place& place = all.places[core + 1];
  for (unsigned i = place.first_pu; i < place.end_pu; ++i) {
    dprintf(file, i == place.first_pu ? "%u" : ",%u", all.pus[i]);
  }
}
