/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/team.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/attend.h"
#include "mpi/clock.h"
#include "mpi/host.h"
#include "mpi/library.h"
#include "mpi/report.h"

static const mpi_operations* mpi;
static const mpi_settings* settings;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the list and the sums */
static team* teams;
static mpi_counters sums;
static bool told_why; /* that the MPI's own barrier serves, once */

/* ---- telling ---- */

enum { tells_choices = 1, tells_reuse = 2 };

static void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char* format, ...) {
  char text[1024];
  int length = snprintf(text, sizeof text, "muster[%d]: ", (int)getpid());
  va_list arguments;
  va_start(arguments, format);
  length += vsnprintf(text + length, sizeof text - (size_t)length - 1, format, arguments);
  va_end(arguments);
  if (length > (int)sizeof text - 2) length = (int)sizeof text - 2;
  text[length++] = '\n';
  /* In one piece: many ranks share the launcher's standard error. */
  if (write(STDERR_FILENO, text, (size_t)length) < 0) return;
}

static void say_choice(const team* of, unsigned inside, unsigned hosts, const char* placed_by) {
  muster_barrier_choice choice;
  if (libmuster.barrier_get_choice(of->slot->barrier, &choice, sizeof choice) != MUSTER_OK) return;
  const int has_levels_left = choice.levels_left[0] != '\0';
  say("communicator of %u: %u rank%s on this host%s: algorithm %s (asked for: %s); "
      "because %s; waiting %s (%s)%s%s; placements %s",
      of->size, inside, inside == 1 ? "" : "s", hosts > 1 ? ", others on others" : "",
      choice.algorithm, choice.asked, choice.why, choice.wait, choice.wait_why,
      has_levels_left ? "; levels left " : "", choice.levels_left, placed_by);
}

void team_start(const mpi_operations* operations, const mpi_settings* chosen) {
  mpi = operations;
  settings = chosen;
  if (chosen->report != NULL) counter_clock_start();
  attend_with(operations->progress);
  pool_set_progress(attend);
}

/* ---- making ---- */

static void decline(team* of, const char* why) {
  of->kind = team_theirs;
  pthread_mutex_lock(&mutex);
  ++sums.declined;
  const bool tells = why[0] != '\0' && (!told_why || settings->verbose >= tells_choices);
  told_why = told_why || tells;
  pthread_mutex_unlock(&mutex);
  /* A rank that knows why says so: once always, each time if asked to. */
  if (tells) {
    say("communicator of %u: the MPI's own barrier serves: %s", of->size, why);
  }
}

const char faults_are_tolerated[] =
    "fault tolerance is on, and only its own returns when a communicator is revoked";

team* team_new(unsigned size, unsigned rank, const char* declined) {
  team* const made = calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  made->size = size;
  made->rank = rank;
  if (size == 1) made->kind = team_alone;
  if (declined != NULL) decline(made, rank == 0 ? declined : "");
  pthread_mutex_lock(&mutex);
  made->next = teams;
  made->link = &teams;
  if (teams != NULL) teams->link = &made->next;
  teams = made;
  pthread_mutex_unlock(&mutex);
  return made;
}

static void add_waits(mpi_counters* to, const team* of) {
  switch (of->kind) {
    case team_watched: {
      const watched_rank mine = watch_of(of->slot->watch, of->size, of->rank);
      to->waited_ns += (uint64_t)mine.waited_ns;
      to->own_ns += (uint64_t)watch_own_ns(of->slot->watch, of->size);
    } /* fall through */
    case team_inside:
      to->inside += of->waits;
      break;
    case team_alone:
      to->alone += of->waits;
      break;
    case team_broken:
    case team_hosts:
      to->hosts += of->waits;
      break;
    case team_messages:
      to->messages += of->waits;
      break;
    case team_unmade:
    case team_theirs:
      to->theirs += of->waits;
      break;
  }
}

/* By rank 0, with the mutex held. */
static void report(const team* of) {
  static const char* const served[] = {
      [team_inside] = "Muster",
      [team_watched] = "Muster",
      [team_hosts] = "Muster, over several hosts",
      [team_broken] = "Muster, over several hosts",
      [team_messages] = "Muster, over messages",
      [team_theirs] = "the MPI",
  };
  /* Without a number it has none to serve but the MPI, from the first. */
  if (settings->report == NULL || of->rank != 0 || of->waits == 0 || of->number == 0) return;
  if (of->kind == team_watched) watch_settle(of->slot->watch, of->size, of->waits);
  report_add(&(report_entry){.whose = of->whose,
                             .number = of->number,
                             .name = of->name,
                             .job_ranks = of->job_ranks,
                             .served = served[of->kind],
                             .ranks = of->size,
                             .barriers = of->waits,
                             .spent_ns = of->spent_ns,
                             .seen = of->kind == team_watched ? of->slot->watch : NULL});
}

void team_free(team* gone, bool mpi_lives) {
  if (gone == NULL) return;
  pthread_mutex_lock(&mutex);
  add_waits(&sums, gone);
  report(gone);
  *gone->link = gone->next;
  if (gone->next != NULL) gone->next->link = gone->link;
  pthread_mutex_unlock(&mutex);
  if (mpi_lives) {
    pool_give_back(gone->slot, true);
    if (gone->leaders != NULL) mpi->free_leaders(gone->leaders);
    if (gone->has_channel) mpi->close_channel(gone->channel);
  } /* else the process ends, and what it holds with it */
  free(gone);
}

/* What all ranks know of each other after the first exchange. */
typedef struct roster {
  identity* all; /* by rank */
  unsigned size;
  unsigned* here;     /* ranks on this host, ascending; the first leads */
  identity* members;  /* theirs */
  uint64_t* sorted;   /* hosts of all, to count them */
  unsigned inside;    /* how many */
  unsigned own_place; /* among them */
  unsigned hosts;
} roster;

static void free_roster(roster* gone) {
  free(gone->all);
  free(gone->here);
  free(gone->members);
  free(gone->sorted);
}

static int compare_hosts(const void* left, const void* right) {
  const uint64_t a = *(const uint64_t*)left;
  const uint64_t b = *(const uint64_t*)right;
  return a < b ? -1 : a > b;
}

static unsigned count_hosts(const roster* of) {
  for (unsigned i = 0; i < of->size; ++i) of->sorted[i] = of->all[i].host;
  qsort(of->sorted, of->size, sizeof *of->sorted, compare_hosts);
  unsigned count = 1;
  for (unsigned i = 1; i < of->size; ++i) count += of->sorted[i] != of->sorted[i - 1];
  return count;
}

static int call_the_roll(const team* of, void* comm, roster* result) {
  *result = (roster){.size = of->size};
  result->all = calloc(of->size, sizeof *result->all);
  result->here = malloc(of->size * sizeof *result->here);
  result->members = malloc(of->size * sizeof *result->members);
  result->sorted = malloc(of->size * sizeof *result->sorted);
  if (result->all == NULL || result->here == NULL || result->members == NULL ||
      result->sorted == NULL) {
    return mpi->error;
  }
  identity own = own_identity();
  own.job_rank = mpi->job_rank();
  if (need_library() == NULL) {
    own.messages = message_barrier_asked_for(settings);
  } else {
    own.protocol = 0;
  }
  const int status = mpi->allgather(comm, &own, result->all, (int)sizeof own);
  if (status != 0) return status;
  for (unsigned i = 0; i < of->size; ++i) {
    if (result->all[i].host != own.host) continue;
    if (i == of->rank) result->own_place = result->inside;
    note_neighbour(result->all[i].pid);
    result->members[result->inside] = result->all[i];
    result->here[result->inside++] = i;
  }
  result->hosts = count_hosts(result);
  return 0;
}

enum { binding_bytes = 1024 };
typedef char binding[binding_bytes];

/* Where the members may run. Locality strings where the MPI has them for all members, else affinity
 * masks, and false. */
static bool find_bindings(void* comm, const roster* all, binding* texts, const char** bindings,
                          bool localities) {
  bool known = localities && mpi->locality != NULL;
  for (unsigned i = 0; i < all->inside && known; ++i) {
    known = mpi->locality(comm, (int)all->here[i], texts[i], binding_bytes) && texts[i][0] != '\0';
  }
  for (unsigned i = 0; i < all->inside; ++i) {
    if (!known) affinity_text((pid_t)all->members[i].pid, texts[i], binding_bytes);
    bindings[i] = texts[i];
  }
  return known;
}

typedef struct company {
  unsigned count;
  bool apart;            /* some of all processes are scheduled apart */
  const char** bindings; /* NULL: unbound */
  binding* texts;
} company;

static bool is_member(const roster* all, uint32_t pid) {
  for (unsigned i = 0; i < all->inside; ++i) {
    if (all->members[i].pid == pid) return true;
  }
  return false;
}

static company find_others(const roster* all) {
  company others = {0};
  uint32_t* pids = NULL;
  unsigned noted = 0;
  const unsigned everybody = neighbours(&pids, &noted);
  if (everybody > all->inside) others.count = everybody - all->inside;
  if (pids != NULL) others.apart = scheduled_apart(pids, noted);
  if (others.count > 0 && pids != NULL) {
    others.bindings = calloc(others.count, sizeof *others.bindings);
    others.texts = calloc(others.count, sizeof *others.texts);
    unsigned at = 0;
    for (unsigned i = 0;
         i < noted && at < others.count && others.bindings != NULL && others.texts != NULL; ++i) {
      if (is_member(all, pids[i])) continue;
      affinity_text((pid_t)pids[i], others.texts[at], binding_bytes);
      others.bindings[at] = others.texts[at];
      ++at;
    }
  }
  free(pids);
  return others;
}

/* By the leader: first with what is known best of the bindings, at last with nothing. */
static slot* make_slot(void* comm, const roster* all, offer* told, const char** placed_by,
                       char* why, size_t why_bytes) {
  char algorithm[256];
  algorithm_asked_for(settings, algorithm, sizeof algorithm);
  muster_options options;
  libmuster.options_init_sized(&options, sizeof options);
  options.participants = all->inside;
  options.algorithm = algorithm;
  options.wait = settings->wait != NULL && settings->wait[0] != '\0' ? settings->wait : NULL;
  options.flags = MUSTER_SHARED;
  slot* made = NULL;
  binding* const texts = calloc(all->inside, sizeof *texts);
  const char** const bindings = calloc(all->inside, sizeof *bindings);
  company others = find_others(all);
  options.others = others.count;
  if (others.apart) options.flags |= MUSTER_APART;
  enum { by_locality, by_mask, unknown, ways };
  for (int way = mpi->locality != NULL ? by_locality : by_mask; way < ways && made == NULL; ++way) {
    const bool placed = way != unknown && texts != NULL && bindings != NULL;
    const bool localities = placed && find_bindings(comm, all, texts, bindings, way == by_locality);
    *placed_by = !placed              ? "not known"
                 : localities         ? "by PMIx locality strings"
                 : way == by_locality ? "by affinity masks, as PMIx tells no localities"
                                      : "by affinity masks";
    options.bindings = placed ? bindings : NULL;
    options.other_bindings = placed && !localities ? others.bindings : NULL;
    made = pool_make(all->members, all->inside, &options, settings->report != NULL, told, why,
                     why_bytes);
  }
  free(others.bindings);
  free(others.texts);
  free(bindings);
  free(texts);
  return made;
}

/* Every rank of the host learns what its leader offers. */
static int spread(void* comm, const roster* all, offer* told) {
  if (all->hosts == 1) return mpi->broadcast(comm, told, (int)sizeof *told);
  offer* const offers = malloc(all->size * sizeof *offers);
  if (offers == NULL) return mpi->error;
  const int status = mpi->allgather(comm, told, offers, (int)sizeof *told);
  *told = offers[all->here[0]];
  free(offers);
  return status;
}

/* After an attempt that failed. Not all have taken a fresh slot, and nobody can tell who: so that
 * the leader need not wait for those who have not, it goes last. */
static int let_go(team* of, void* comm, bool reused, int status) {
  slot* const gone = of->slot;
  int anything = 0;
  of->slot = NULL;
  if (!of->leads) pool_give_back(gone, false);
  if (status == 0) status = mpi->minimum(comm, &anything);
  if (of->leads && (reused || status != 0)) pool_give_back(gone, false);
  if (of->leads && !reused && status == 0) pool_take_back(gone);
  return status;
}

/* One attempt at a barrier inside each host. `*verdict`: the worst that happened to any rank. */
static int attempt(team* of, void* comm, const roster* all, bool fresh, taken* verdict, char* why,
                   size_t why_bytes) {
  offer told = {0};
  const char* placed_by = "as before";
  if (of->leads && !fresh) of->slot = pool_find(all->members, all->inside, &told);
  if (of->leads && of->slot == NULL) {
    of->slot = make_slot(comm, all, &told, &placed_by, why, why_bytes);
  }
  int status = spread(comm, all, &told);
  if (status != 0) return let_go(of, comm, false, status);
  int outcome = taken_ok;
  if (of->leads) {
    if (of->slot == NULL) outcome = taken_failed;
  } else {
    outcome = (int)pool_take(&told, all->own_place, all->inside, &of->slot, why, why_bytes);
  }
  const bool reused = told.used_before != 0;
  status = mpi->minimum(comm, &outcome);
  *verdict = (taken)outcome;
  if (status != 0 || *verdict != taken_ok) return let_go(of, comm, reused, status);
  if (of->leads && settings->verbose >= (reused ? tells_reuse : tells_choices)) {
    say_choice(of, all->inside, all->hosts, placed_by);
  }
  if (reused) {
    pthread_mutex_lock(&mutex);
    ++sums.reused;
    pthread_mutex_unlock(&mutex);
  }
  return status;
}

static int make_over_messages(team* of, void* comm, uint32_t which) {
  const char* const name = libmuster.message_barrier_names()[which - 1];
  const bool opened = mpi->open_channel(comm, &of->channel) == 0;
  int all_opened = opened;
  const int status = mpi->minimum(comm, &all_opened);
  if (status != 0 || all_opened == 0) {
    if (opened) mpi->close_channel(of->channel);
    if (status == 0) decline(of, "the MPI has no communicator left for barriers over its messages");
    return status;
  }
  of->has_channel = true;
  of->over_messages = libmuster.message_barrier_named(name);
  of->kind = team_messages;
  if (settings->verbose >= tells_choices && of->rank == 0) {
    say("communicator of %u: %s over the MPI's messages, as asked for", of->size, name);
  }
  return 0;
}

static int make_inside(team* of, void* comm, const roster* all) {
  char why[512] = "";
  taken verdict = taken_failed;
  of->leads = all->own_place == 0;
  int status = attempt(of, comm, all, false, &verdict, why, sizeof why);
  if (status == 0 && verdict == taken_stale) {
    status = attempt(of, comm, all, true, &verdict, why, sizeof why);
  }
  if (status != 0) return status;
  if (verdict != taken_ok) {
    decline(of, why);
    return 0;
  }
  if (all->hosts > 1) {
    /* All or none: a leader without the other leaders would leave its host's ranks waiting. */
    int parted = mpi->split(comm, of->leads, &of->leaders) == 0;
    status = mpi->minimum(comm, &parted);
    if (status != 0 || parted == 0) {
      if (of->leaders != NULL) mpi->free_leaders(of->leaders);
      of->leaders = NULL;
      status = let_go(of, comm, true, status);
      if (status == 0) decline(of, "the MPI could not part the hosts' leaders from the others");
      return status;
    }
  }
  of->kind = all->hosts > 1 ? team_hosts : of->slot->watch != NULL ? team_watched : team_inside;
  return 0;
}

/* By rank 0, for the report. */
static void introduce(team* of, void* comm, const roster* all) {
  static uint64_t introduced;
  mpi->name(comm, of->name, sizeof of->name);
  job_ranks_text(all->all, all->size, of->job_ranks, sizeof of->job_ranks);
  for (unsigned i = 0; i < all->size; ++i) { /* FNV-1a, over words */
    of->whose = (of->whose ^ all->all[i].process) * UINT64_C(0x100000001b3);
  }
  pthread_mutex_lock(&mutex);
  of->number = ++introduced;
  pthread_mutex_unlock(&mutex);
}

static int make(team* of, void* comm) {
  roster all;
  int status = call_the_roll(of, comm, &all);
  if (status == 0) {
    if (settings->report != NULL && of->rank == 0) introduce(of, comm, &all);
    bool understood = true;
    bool all_have_it = true;
    for (unsigned i = 0; i < all.size; ++i) {
      all_have_it = all_have_it && all.all[i].protocol != 0;
      understood = understood && all.all[i].protocol == all.all[0].protocol;
    }
    const uint32_t over_messages = all.all[0].messages; /* rank 0 decides */
    if (!all_have_it) {
      decline(of, need_library() != NULL ? need_library() : "");
    } else if (!understood) {
      decline(of, "ranks use different versions of Muster");
    } else if (over_messages != 0) {
      status = make_over_messages(of, comm, over_messages);
    } else if (all.hosts == all.size) {
      decline(of,
              of->rank == 0 && settings->verbose >= tells_choices ? "one rank on each host" : "");
    } else {
      status = make_inside(of, comm, &all);
    }
  }
  free_roster(&all);
  if (status == 0 && of->kind != team_theirs) {
    pthread_mutex_lock(&mutex);
    ++sums.teams;
    pthread_mutex_unlock(&mutex);
  }
  return status;
}

/* ---- barriers ---- */

int team_barrier_failed(team* of, int status) {
  say("barrier of %u ranks, rank %u: %s: %s", of->size, of->rank, libmuster.strerror(status),
      libmuster.last_error());
  return mpi->error;
}

static int wait_inside(team* of) {
  of->slot->polls = 0;
  const int status = libmuster.barrier_wait(of->slot->barrier, of->slot->rank);
  return status == MUSTER_OK ? 0 : team_barrier_failed(of, status);
}

/* All of this host have come; the leaders meet; all of this host may go. */
static int barrier_over_hosts(team* of) {
  int status = wait_inside(of);
  if (status == 0 && of->leads) {
    status = mpi->barrier_of_leaders(of->leaders);
    if (status != 0) { /* this host's others wait for this rank: they are told */
      pool_give_back(of->slot, false);
      of->slot = NULL;
      of->kind = team_broken;
    }
  }
  return status == 0 ? wait_inside(of) : status;
}

static int barrier_over_messages(team* of) {
  const muster_messages messages = {.send = mpi->send,
                                    .send_synchronously = mpi->send_synchronously,
                                    .receive = mpi->receive,
                                    .receive_any = mpi->receive_any,
                                    .context = of->channel};
  /* Their contexts differ from ours by type alone. */
  return of->over_messages(&messages, of->rank, of->size);
}

static int barrier_watched(team* of) {
  slot* const at = of->slot;
  const uint64_t number = of->waits;
  const int64_t came_ns = watch_come(at->watch, at->rank, number);
  const int status = wait_inside(of);
  /* It is asked to attend about once a microsecond. */
  if (status == 0 && (at->polls != 0 || watch_may_count(number))) {
    watch_leave(at->watch, of->size, at->rank, number, came_ns, at->polls != 0);
  }
  return status;
}

static int barrier_otherwise(team* of, void* comm);

int team_barrier_slowly(team* of, void* comm) {
  if (of->kind == team_unmade) {
    const int status = make(of, comm);
    if (status != 0) return status;
    if (of->kind == team_inside) return team_barrier(of, comm);
  }
  ++of->waits;
  if (of->kind == team_watched) return barrier_watched(of);
  if (settings->report == NULL) return barrier_otherwise(of, comm);
  const int64_t came_ns = now_ns();
  const int status = barrier_otherwise(of, comm);
  of->spent_ns += now_ns() - came_ns;
  return status;
}

static int barrier_otherwise(team* of, void* comm) {
  switch (of->kind) {
    case team_hosts:
      return barrier_over_hosts(of);
    case team_messages:
      return barrier_over_messages(of);
    case team_alone:
      mpi->progress();
      return 0;
    case team_broken:
      return mpi->error;
    case team_unmade:
    case team_inside:
    case team_watched:
    case team_theirs:
      break;
  }
  return mpi->barrier(comm);
}

/* ---- counting ---- */

mpi_counters team_counters(void) {
  pthread_mutex_lock(&mutex);
  mpi_counters all = sums;
  for (const team* at = teams; at != NULL; at = at->next) add_waits(&all, at);
  pthread_mutex_unlock(&mutex);
  return all;
}

void team_finish(void) {
  if (settings == NULL) return;
  if (settings->report != NULL) {
    pthread_mutex_lock(&mutex);
    for (const team* at = teams; at != NULL; at = at->next) report(at);
    report_tell(strcmp(settings->report, "1") == 0 ? NULL : settings->report);
    pthread_mutex_unlock(&mutex);
  }
  if (!settings->counters) return;
  const mpi_counters all = team_counters();
  say("counters: inside=%llu hosts=%llu messages=%llu theirs=%llu alone=%llu teams=%llu "
      "reused=%llu declined=%llu",
      (unsigned long long)all.inside, (unsigned long long)all.hosts,
      (unsigned long long)all.messages, (unsigned long long)all.theirs,
      (unsigned long long)all.alone, (unsigned long long)all.teams, (unsigned long long)all.reused,
      (unsigned long long)all.declined);
}
