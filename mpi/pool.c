/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/library.h"

enum {
  idle_max = 16,                    /* slots kept for the next communicator */
  segment_bytes_min = 256 * 1024,   /* the first segment */
  segment_bytes_step = 4096 * 1024, /* each is twice the last, up to this, or as large as needed */
  line = 128,                       /* what writers of one slot keep between them and others */
};

/** Memory of a segment: free, or of a slot. By offset, without gaps. */
typedef struct extent {
  struct extent* next;
  size_t offset;
  size_t bytes;
  bool used;
  bool parked;         /* the leader is done with it, but not everybody who took it */
  unsigned departures; /* that a parked one waits for */
} extent;

struct mapping {
  struct mapping* next;
  uint64_t leader;
  uint64_t serial;
  muster_segment* segment;
  unsigned char* data;
  size_t bytes;
  unsigned slots; /* of this process in it */
  /* if this process leads: */
  extent* extents;
  unsigned parked;
  size_t too_large; /* there was no room for so much when it was last looked for */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static mapping* mappings;                                 /* the newest first */
static slot* idle;                                        /* the latest first */
static unsigned idle_count;
static uint64_t serials;
static int (*progress_of_slot)(void*);

void pool_set_progress(int (*progress)(void* waiting)) { progress_of_slot = progress; }

static void explain(char* why, size_t bytes, const char* what, const char* detail) {
  snprintf(why, bytes, "%s: %s", what, detail);
}

/* ---- memory ---- */

static size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

/* How many have counted themselves out of the slot that ends here. */
static _Atomic uint32_t* departures_of(const mapping* in, size_t offset, size_t bytes) {
  return (_Atomic uint32_t*)(void*)(in->data + offset + bytes - line);
}

static void join_with_next(extent* at) {
  extent* const next = at->next;
  if (next == NULL || at->used || next->used) return;
  at->bytes += next->bytes;
  at->next = next->next;
  free(next);
}

/* Frees what only waited for others to leave. */
static void sweep(mapping* in) {
  if (in->parked == 0) return;
  for (extent* at = in->extents; at != NULL; at = at->next) {
    /* Acquire: pairs with the member's release; its side is destroyed. */
    if (at->parked && atomic_load_explicit(departures_of(in, at->offset, at->bytes),
                                           memory_order_acquire) == at->departures) {
      at->used = at->parked = false;
      --in->parked;
      in->too_large = SIZE_MAX;
    }
  }
  for (extent* at = in->extents; at != NULL; at = at->next) {
    while (at->next != NULL && !at->used && !at->next->used) join_with_next(at);
  }
}

/* A used extent of exactly `bytes`, zeroed, or NULL. */
static extent* cut(mapping* in, size_t bytes, size_t alignment) {
  sweep(in);
  if (bytes >= in->too_large) return NULL;
  for (extent* at = in->extents; at != NULL; at = at->next) {
    if (at->used) continue;
    const size_t start = round_up(at->offset, alignment);
    if (start - at->offset + bytes > at->bytes) continue;
    if (start > at->offset) { /* what lies before stays free */
      extent* const rest = malloc(sizeof *rest);
      if (rest == NULL) return NULL;
      *rest =
          (extent){.next = at->next, .offset = start, .bytes = at->bytes - (start - at->offset)};
      at->bytes = start - at->offset;
      at->next = rest;
      at = rest;
    }
    if (at->bytes > bytes) {
      extent* const rest = malloc(sizeof *rest);
      if (rest == NULL) return NULL;
      *rest = (extent){.next = at->next, .offset = at->offset + bytes, .bytes = at->bytes - bytes};
      at->bytes = bytes;
      at->next = rest;
    }
    at->used = true;
    memset(in->data + at->offset, 0, bytes);
    return at;
  }
  in->too_large = bytes;
  return NULL;
}

static void unmap(mapping* gone) {
  mapping** link = &mappings;
  while (*link != gone) link = &(*link)->next;
  *link = gone->next;
  while (gone->extents != NULL) {
    extent* const at = gone->extents;
    gone->extents = at->next;
    free(at);
  }
  libmuster.segment_destroy(gone->segment);
  free(gone);
}

/* NULL if there is no memory for it, or the segment cannot be had. */
static mapping* map(muster_segment* segment, uint64_t leader, uint64_t serial) {
  mapping* const made = calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  made->segment = segment;
  made->data = libmuster.segment_data(segment, &made->bytes);
  made->leader = leader;
  made->serial = serial;
  made->next = mappings;
  mappings = made;
  return made;
}

static mapping* make_segment(size_t bytes_needed, char* why, size_t why_bytes) {
  size_t bytes = segment_bytes_min;
  for (const mapping* at = mappings; at != NULL; at = at->next) {
    if (at->extents != NULL && 2 * at->bytes > bytes) bytes = 2 * at->bytes;
  }
  if (bytes > segment_bytes_step) bytes = segment_bytes_step;
  if (bytes < 2 * bytes_needed) bytes = 2 * bytes_needed;
  muster_segment* segment = NULL;
  extent* const whole = calloc(1, sizeof *whole);
  if (whole == NULL || libmuster.segment_create(&segment, bytes) != MUSTER_OK) {
    explain(why, why_bytes, "no shared segment",
            whole != NULL ? libmuster.last_error() : "no memory");
    free(whole);
    return NULL;
  }
  mapping* const made = map(segment, own_identity().process, ++serials);
  if (made == NULL) {
    explain(why, why_bytes, "no shared segment", "no memory");
    libmuster.segment_destroy(segment);
    free(whole);
    return NULL;
  }
  whole->bytes = made->bytes;
  made->extents = whole;
  made->too_large = SIZE_MAX;
  return made;
}

static mapping* attach_segment(const offer* told, char* why, size_t why_bytes) {
  for (mapping* at = mappings; at != NULL; at = at->next) {
    if (at->leader == told->leader && at->serial == told->segment) return at;
  }
  char path[64];
  snprintf(path, sizeof path, "/proc/%u/fd/%d", told->pid, told->fd);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    snprintf(why, why_bytes, "%s cannot be opened: %s", path, strerror(errno));
    return NULL;
  }
  muster_segment* segment = NULL;
  const int status = libmuster.segment_attach(&segment, fd);
  close(fd);
  mapping* const made = status == MUSTER_OK ? map(segment, told->leader, told->segment) : NULL;
  if (made == NULL) {
    explain(why, why_bytes, "the leader's segment",
            status == MUSTER_OK ? "no memory" : libmuster.last_error());
    if (status == MUSTER_OK) libmuster.segment_destroy(segment);
  }
  return made;
}

/* ---- slots ---- */

/* The one of these members in this order, led by this process; taken off the list. */
static slot* find_idle(const identity* members, unsigned count) {
  for (slot** link = &idle; *link != NULL; link = &(*link)->next) {
    slot* const at = *link;
    if (at->members == NULL || at->participants != count) continue;
    unsigned same = 0;
    while (same < count && at->members[same] == members[same].process) ++same;
    if (same < count) continue;
    *link = at->next;
    --idle_count;
    return at;
  }
  return NULL;
}

static slot* find_idle_taken(const offer* told, unsigned rank) {
  for (slot** link = &idle; *link != NULL; link = &(*link)->next) {
    slot* const at = *link;
    if (at->leader != told->leader || at->serial != told->serial || at->rank != rank) continue;
    *link = at->next;
    --idle_count;
    return at;
  }
  return NULL;
}

/* With the mutex held, which it releases meanwhile: destroying waits for who is on their way out.
 */
static void destroy(slot* gone) {
  pthread_mutex_unlock(&mutex);
  libmuster.barrier_destroy(gone->barrier);
  pthread_mutex_lock(&mutex);
  mapping* const in = gone->in;
  if (gone->members == NULL) {
    /* Release: pairs with sweep(); this side is destroyed. */
    atomic_fetch_add_explicit(departures_of(in, gone->offset, gone->bytes), 1,
                              memory_order_release);
  } else {
    gone->room->parked = true;
    gone->room->departures = gone->participants - 1;
    ++in->parked;
  }
  if (--in->slots == 0) unmap(in); /* its memory lives as long as anybody has it mapped */
  free(gone->members);
  free(gone);
}

void pool_take_back(slot* unused) {
  if (unused == NULL) return;
  pthread_mutex_lock(&mutex);
  /* All of those who departed, and no more will. */
  unused->participants =
      1 + atomic_load_explicit(departures_of(unused->in, unused->offset, unused->bytes),
                               memory_order_acquire);
  destroy(unused);
  pthread_mutex_unlock(&mutex);
}

void pool_give_back(slot* done, bool keep) {
  if (done == NULL) return;
  pthread_mutex_lock(&mutex);
  if (!keep || libmuster.barrier_blame(done->barrier, NULL) != MUSTER_OK) {
    destroy(done);
  } else {
    done->next = idle;
    idle = done;
    if (++idle_count > idle_max) {
      slot** link = &idle;
      while ((*link)->next != NULL) link = &(*link)->next;
      slot* const oldest = *link;
      *link = NULL;
      --idle_count;
      destroy(oldest);
    }
  }
  pthread_mutex_unlock(&mutex);
}

/* Memory for a barrier of `bytes`, and its departures, in any segment of this process. */
static extent* find_room(size_t bytes, size_t alignment, mapping** in, char* why,
                         size_t why_bytes) {
  const size_t unit = alignment > line ? alignment : line;
  const size_t whole = round_up(bytes, line) + line;
  for (mapping* at = mappings; at != NULL; at = at->next) {
    extent* const found = at->extents != NULL ? cut(at, whole, unit) : NULL;
    *in = at;
    if (found != NULL) return found;
  }
  *in = make_segment(whole + unit, why, why_bytes);
  extent* const found = *in != NULL ? cut(*in, whole, unit) : NULL;
  if (*in != NULL && found == NULL) explain(why, why_bytes, "no slot", "no memory");
  return found;
}

/* Behind the barrier, before the departures. */
static watch* watch_in(const mapping* in, size_t offset, size_t bytes, size_t its_bytes) {
  return its_bytes == 0 ? NULL : (watch*)(void*)(in->data + offset + bytes - line - its_bytes);
}

static slot* make_fresh(const identity* members, unsigned count, const muster_options* wanted,
                        bool watched, char* why, size_t why_bytes) {
  muster_options options = *wanted;
  size_t bytes = 0;
  size_t alignment = 0;
  slot* const made = calloc(1, sizeof *made);
  uint64_t* const list = malloc(count * sizeof *list);
  if (made == NULL || list == NULL) {
    explain(why, why_bytes, "no slot", "no memory");
    free(made);
    free(list);
    return NULL;
  }
  for (unsigned i = 0; i < count; ++i) list[i] = members[i].process;
  options.progress = progress_of_slot;
  options.context = made;
  if (libmuster.barrier_memory(&options, &bytes, &alignment) != MUSTER_OK) {
    explain(why, why_bytes, "libmuster", libmuster.last_error());
    free(made);
    free(list);
    return NULL;
  }
  mapping* in = NULL;
  const size_t behind = watched ? watch_bytes(count) : 0;
  extent* const at = find_room(round_up(bytes, line) + behind, alignment, &in, why, why_bytes);
  if (at != NULL) {
    options.memory = in->data + at->offset;
    options.memory_bytes = at->bytes - line - behind;
    if (libmuster.barrier_create(&made->barrier, &options) == MUSTER_OK) {
      made->leader = own_identity().process;
      made->serial = ++serials;
      made->participants = count;
      made->in = in;
      made->offset = at->offset;
      made->bytes = at->bytes;
      made->room = at;
      made->members = list;
      made->watch = watch_in(in, at->offset, at->bytes, behind);
      if (watched) watch_begin(made->watch, count);
      ++in->slots;
      return made;
    }
    explain(why, why_bytes, "libmuster", libmuster.last_error());
    at->used = false;
    in->too_large = SIZE_MAX;
  }
  if (in != NULL && in->slots == 0) unmap(in);
  free(made);
  free(list);
  return NULL;
}

static offer tell(const slot* made, bool used_before) {
  return (offer){.leader = made->leader,
                 .serial = made->serial,
                 .segment = made->in->serial,
                 .offset = made->offset,
                 .bytes = made->bytes,
                 .watch_bytes = made->watch != NULL ? watch_bytes(made->participants) : 0,
                 .pid = own_identity().pid,
                 .fd = libmuster.segment_fd(made->in->segment),
                 .used_before = used_before,
                 .valid = 1};
}

slot* pool_find(const identity* members, unsigned count, offer* told) {
  pthread_mutex_lock(&mutex);
  slot* const found = find_idle(members, count);
  if (found != NULL && found->watch != NULL) watch_begin(found->watch, count);
  *told = found != NULL ? tell(found, true) : (offer){0};
  pthread_mutex_unlock(&mutex);
  return found;
}

slot* pool_make(const identity* members, unsigned count, const muster_options* options,
                bool watched, offer* told, char* why, size_t why_bytes) {
  pthread_mutex_lock(&mutex);
  slot* const made = make_fresh(members, count, options, watched, why, why_bytes);
  *told = made != NULL ? tell(made, false) : (offer){0};
  pthread_mutex_unlock(&mutex);
  return made;
}

static taken take_fresh(const offer* told, unsigned rank, unsigned count, slot** result, char* why,
                        size_t why_bytes) {
  mapping* const in = attach_segment(told, why, why_bytes);
  if (in == NULL) return taken_failed;
  slot* const made = calloc(1, sizeof *made);
  int status = MUSTER_EFOREIGN;
  if (made != NULL && told->offset <= in->bytes && told->bytes <= in->bytes - told->offset &&
      (told->watch_bytes == 0 || told->watch_bytes == watch_bytes(count)) &&
      told->bytes > line + told->watch_bytes) {
    status = libmuster.barrier_attach_memory(&made->barrier, in->data + told->offset,
                                             told->bytes - line - told->watch_bytes);
    if (status == MUSTER_OK) {
      status = libmuster.barrier_set_hooks(made->barrier, progress_of_slot, NULL, made);
    }
  }
  if (status != MUSTER_OK) {
    explain(why, why_bytes, "attaching to the barrier",
            made == NULL ? "no memory" : libmuster.last_error());
    if (made != NULL) libmuster.barrier_destroy(made->barrier);
    free(made);
    if (in->slots == 0) unmap(in);
    return taken_failed;
  }
  made->leader = told->leader;
  made->serial = told->serial;
  made->rank = rank;
  made->participants = count;
  made->in = in;
  made->offset = told->offset;
  made->bytes = told->bytes;
  made->watch = watch_in(in, told->offset, told->bytes, told->watch_bytes);
  ++in->slots;
  *result = made;
  return taken_ok;
}

taken pool_take(const offer* told, unsigned rank, unsigned count, slot** result, char* why,
                size_t why_bytes) {
  *result = NULL;
  if (told->valid == 0) {
    return taken_failed; /* the leader says why */
  }
  pthread_mutex_lock(&mutex);
  taken outcome = taken_ok;
  if (told->used_before != 0) {
    *result = find_idle_taken(told, rank);
    if (*result == NULL) outcome = taken_stale;
  } else {
    outcome = take_fresh(told, rank, count, result, why, why_bytes);
  }
  pthread_mutex_unlock(&mutex);
  return outcome;
}
