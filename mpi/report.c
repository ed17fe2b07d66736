/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
  singles_most = 64,
  sums_most = 64,
  told_as_text = 8,
  job_ranks_bytes = 48,
  name_bytes = 160
};

/** A communicator, or several that are added up. */
typedef struct group {
  struct group* next;
  uint64_t whose;
  uint64_t number; /**< 0: of several */
  char name[64];
  char job_ranks[job_ranks_bytes]; /**< "": of several that have not the same */
  const char* served;
  unsigned ranks;
  uint64_t communicators;
  uint64_t barriers;
  double spent_s; /**< a rank, in the mean; where they were not watched, rank 0 */
  double waited_s;
  double own_s;
  watched_rank* by_rank; /**< NULL: not watched, or not of the same ranks */
} group;

typedef struct list {
  group* first;
  unsigned count;
} list;

static list singles;
static list sums; /* of the same ranks that were served alike */
static group rest = {.served = "any"};

static void put(list* into, group* what) {
  what->next = into->first;
  into->first = what;
  ++into->count;
}

static group* group_of(const report_entry* one) {
  group* const made = calloc(1, sizeof *made);
  watched_rank* const by_rank = one->seen != NULL ? calloc(one->ranks, sizeof *by_rank) : NULL;
  if (made == NULL || (one->seen != NULL && by_rank == NULL)) {
    free(made);
    free(by_rank);
    return NULL;
  }
  *made = (group){.whose = one->whose,
                  .number = one->number,
                  .served = one->served,
                  .ranks = one->ranks,
                  .communicators = 1,
                  .barriers = one->barriers,
                  .spent_s = (double)one->spent_ns / 1e9,
                  .by_rank = by_rank};
  snprintf(made->name, sizeof made->name, "%s", one->name);
  snprintf(made->job_ranks, sizeof made->job_ranks, "%s", one->job_ranks);
  if (by_rank == NULL) return made;
  for (unsigned i = 0; i < one->ranks; ++i) {
    by_rank[i] = watch_of(one->seen, one->ranks, i);
    made->waited_s += (double)by_rank[i].waited_ns / 1e9 / one->ranks;
  }
  made->own_s = (double)watch_own_ns(one->seen, one->ranks) / 1e9;
  made->spent_s = made->waited_s + made->own_s;
  return made;
}

/* What is added is gone. */
static void add_up(group* to, group* what) {
  to->communicators += what->communicators;
  to->barriers += what->barriers;
  to->spent_s += what->spent_s;
  to->waited_s += what->waited_s;
  to->own_s += what->own_s;
  for (unsigned i = 0; i < what->ranks && to->by_rank != NULL; ++i) {
    to->by_rank[i].waited_ns += what->by_rank[i].waited_ns;
    to->by_rank[i].caused_ns += what->by_rank[i].caused_ns;
    to->by_rank[i].last += what->by_rank[i].last;
  }
  free(what->by_rank);
  free(what);
}

static void add_to_sums(group* what) {
  for (group* at = sums.first; at != NULL; at = at->next) {
    if (at->whose == what->whose && at->served == what->served && at->ranks == what->ranks &&
        (at->by_rank != NULL) == (what->by_rank != NULL)) {
      add_up(at, what);
      return;
    }
  }
  if (sums.count == sums_most) {
    add_up(&rest, what);
    return;
  }
  what->number = 0;
  what->name[0] = '\0';
  put(&sums, what);
}

void report_add(const report_entry* one) {
  group* const its = group_of(one);
  if (its == NULL) return;
  put(&singles, its);
  if (singles.count <= singles_most) return;
  group** least = &singles.first;
  for (group** at = least; *at != NULL; at = &(*at)->next) {
    if ((*at)->spent_s < (*least)->spent_s) least = at;
  }
  group* const gone = *least;
  *least = gone->next;
  --singles.count;
  add_to_sums(gone);
}

static int most_spent_first(const void* left, const void* right) {
  const group* const a = *(const group* const*)left;
  const group* const b = *(const group* const*)right;
  if (a->spent_s != b->spent_s) return a->spent_s < b->spent_s ? 1 : -1;
  return (a->number > b->number) - (a->number < b->number);
}

static void name_of(const group* of, char text[name_bytes]) {
  if (of->number == 0) {
    snprintf(text, name_bytes, "%" PRIu64 " %scommunicator%s of %s%s", of->communicators,
             of != &rest ? "other " : "", of->communicators == 1 ? "" : "s",
             of != &rest ? "ranks " : "other ranks", of->job_ranks);
  } else if (of->name[0] == '\0') {
    snprintf(text, name_bytes, "communicator %" PRIu64 " of ranks %s (unnamed)", of->number,
             of->job_ranks);
  } else {
    snprintf(text, name_bytes, "%s, communicator %" PRIu64 " of ranks %s", of->name, of->number,
             of->job_ranks);
  }
}

/* ---- as text ---- */

/* Three digits and a unit. */
static const char* duration(double seconds, char text[16]) {
  static const char* const units[] = {"s", "ms", "us", "ns"};
  unsigned unit = 0;
  while (unit < 3 && seconds < 0.9995) {
    seconds *= 1e3;
    ++unit;
  }
  const int digits = seconds >= 99.95 ? 0 : seconds >= 9.995 ? 1 : 2;
  snprintf(text, 16, "%.*f %s", digits, seconds, units[unit]);
  return text;
}

static unsigned who_caused_most(const group* of, const unsigned char* told) {
  unsigned most = 0;
  int64_t most_ns = -1;
  for (unsigned i = 0; i < of->ranks; ++i) {
    if (told[i] != 0 || of->by_rank[i].caused_ns <= most_ns) continue;
    most = i;
    most_ns = of->by_rank[i].caused_ns;
  }
  return most;
}

static void print_ranks(FILE* to, const group* of) {
  enum { rows = 8 };
  char waited[16];
  char caused[16];
  int64_t barriers = 0;
  for (unsigned i = 0; i < of->ranks; ++i) barriers += of->by_rank[i].last;
  if (barriers == 0) return;
  unsigned char* const told = calloc(of->ranks, 1);
  if (told == NULL) return;
  fprintf(to, "%8s %10s %12s %24s\n", "its rank", "came last", "waited",
          "the others waited for it");
  for (unsigned row = 0; row < rows && row < of->ranks; ++row) {
    const unsigned rank = who_caused_most(of, told);
    told[rank] = 1;
    const watched_rank* const its = &of->by_rank[rank];
    fprintf(to, "  %6u %8.0f %% %12s %24s\n", rank, 100.0 * (double)its->last / (double)barriers,
            duration((double)its->waited_ns / 1e9, waited),
            duration((double)its->caused_ns / 1e9, caused));
  }
  if (of->ranks > rows) fprintf(to, "  ranks that cost less: %u\n", of->ranks - rows);
  free(told);
}

/* A terminal takes no orders from who named a communicator. */
static void print_name(FILE* to, const char* name) {
  for (; *name != '\0'; ++name) {
    const unsigned char c = (unsigned char)*name;
    fprintf(to, c < 0x20 || c >= 0x7f ? "\\x%02x" : "%c", c);
  }
}

static void print_group(FILE* to, const group* of) {
  char first[16];
  char name[name_bytes];
  name_of(of, name);
  print_name(to, name);
  if (of != &rest) fprintf(to, ": %u rank%s", of->ranks, of->ranks == 1 ? "" : "s");
  fprintf(to, "%s %" PRIu64 " barrier%s by %s", of != &rest ? "," : ":", of->barriers,
          of->barriers == 1 ? "" : "s", of->served);
  if (of->by_rank == NULL) {
    fprintf(to, ": %s in them%s\n", duration(of->spent_s, first), of != &rest ? " (rank 0)" : "");
    return;
  }
  const double all = of->spent_s;
  fprintf(to, "\n  each rank spent %s in them: ", duration(all, first));
  fprintf(to, "%s waiting for the last (%.0f %%),\n", duration(of->waited_s, first),
          all > 0 ? 100 * of->waited_s / all : 0);
  fprintf(to, "  %s in the barrier itself (%.0f %%), ", duration(of->own_s, first),
          all > 0 ? 100 * of->own_s / all : 0);
  fprintf(to, "%s a barrier\n", duration(of->own_s / (double)of->barriers, first));
  print_ranks(to, of);
}

/* ---- as JSON ---- */

/* Of a letter in UTF-8 beyond ASCII; 0: it is none. */
static unsigned letter_bytes(const unsigned char* at) {
  const unsigned char first = at[0];
  const unsigned bytes = first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (unsigned i = 1; i < bytes; ++i) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  const bool is_none = (first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] > 0x9f) ||
                       (first == 0xf0 && at[1] < 0x90) || (first == 0xf4 && at[1] > 0x8f);
  return is_none ? 0 : bytes;
}

static void print_text_json(FILE* to, const char* text) {
  fputc('"', to);
  for (const unsigned char* at = (const unsigned char*)text; *at != '\0'; ++at) {
    const unsigned bytes = letter_bytes(at);
    if (bytes != 0) {
      fwrite(at, 1, bytes, to);
      at += bytes - 1;
    } else if (*at < 0x20 || *at == '"' || *at == '\\' || *at >= 0x7f) {
      fprintf(to, "\\u%04x", *at < 0x80 ? *at : 0xfffdU); /* a name may end within a letter */
    } else {
      fputc(*at, to);
    }
  }
  fputc('"', to);
}

static void print_group_json(FILE* to, const group* of) {
  char name[name_bytes];
  name_of(of, name);
  fprintf(to, "{\"name\": ");
  print_text_json(to, of->name);
  fprintf(to, ", \"called\": ");
  print_text_json(to, name);
  fprintf(to,
          ", \"job_ranks\": \"%s\", \"ranks\": %u, \"communicators\": %" PRIu64
          ", \"barriers\": %" PRIu64 ", \"served_by\": \"%s\", \"spent_s\": %.9g",
          of->job_ranks, of->ranks, of->communicators, of->barriers, of->served, of->spent_s);
  if (of->by_rank != NULL) {
    fprintf(to, ", \"waiting_for_the_last_s\": %.9g, \"in_the_barrier_s\": %.9g, \"by_rank\": [",
            of->waited_s, of->own_s);
    for (unsigned i = 0; i < of->ranks; ++i) {
      fprintf(to, "%s{\"came_last\": %" PRId64 ", \"waited_s\": %.9g, \"waited_for_it_s\": %.9g}",
              i == 0 ? "" : ", ", of->by_rank[i].last, (double)of->by_rank[i].waited_ns / 1e9,
              (double)of->by_rank[i].caused_ns / 1e9);
    }
    fputc(']', to);
  }
  fputc('}', to);
}

/* ---- all ---- */

static void print_all_json(FILE* to, group* const* sorted, unsigned count) {
  fprintf(to, "{\"schema\": 1, \"process\": %d, \"communicators\": [", (int)getpid());
  for (unsigned i = 0; i < count; ++i) {
    if (i > 0) fputs(", ", to);
    print_group_json(to, sorted[i]);
  }
  fputs("]}\n", to);
}

static void print_all(FILE* to, group* const* sorted, unsigned count) {
  group less = {.ranks = 0};
  char spent[16];
  for (unsigned i = 0; i < count; ++i) {
    if (i < told_as_text) {
      fprintf(to, "muster[%d]: ", (int)getpid());
      print_group(to, sorted[i]);
    } else {
      less.communicators += sorted[i]->communicators;
      less.barriers += sorted[i]->barriers;
      less.spent_s += sorted[i]->spent_s;
    }
  }
  if (less.communicators == 0) return;
  fprintf(to,
          "muster[%d]: and %" PRIu64 " communicator%s that took less: %" PRIu64
          " barrier%s, %s in them\n",
          (int)getpid(), less.communicators, less.communicators == 1 ? "" : "s", less.barriers,
          less.barriers == 1 ? "" : "s", duration(less.spent_s, spent));
}

/* 0, or an errno. */
static int write_all(int file, const char* text, size_t bytes) {
  while (bytes > 0) {
    const ssize_t wrote = write(file, text, bytes);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? errno : EIO;
    text += wrote;
    bytes -= (size_t)wrote;
  }
  return 0;
}

void report_tell(const char* path) {
  if (singles.count == 0) return;
  int file = STDERR_FILENO;
  if (path != NULL) {
    file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) {
      fprintf(stderr, "muster: no report where MUSTER_REPORT has it, so it is here: %s\n",
              strerror(errno));
      path = NULL;
      file = STDERR_FILENO;
    } else {
      flock(file, LOCK_EX); /* other ranks append their lines */
    }
  }
  int error = ENOMEM;
  char* text = NULL;
  size_t bytes = 0;
  const unsigned most = singles.count + sums.count + 1;
  group** const sorted = calloc(most, sizeof(group*));
  FILE* const to = sorted != NULL ? open_memstream(&text, &bytes) : NULL;
  if (to != NULL) {
    unsigned count = 0;
    for (group* one = singles.first; one != NULL; one = one->next) sorted[count++] = one;
    for (group* one = sums.first; one != NULL; one = one->next) sorted[count++] = one;
    if (rest.communicators > 0) sorted[count++] = &rest;
    qsort((void*)sorted, count, sizeof(group*), most_spent_first);
    if (path != NULL) {
      print_all_json(to, sorted, count);
    } else {
      print_all(to, sorted, count);
    }
    error = fclose(to) != 0 ? errno : write_all(file, text, bytes);
  }
  free(text);
  free((void*)sorted);
  if (path != NULL && close(file) != 0 && error == 0) error = errno;
  if (error != 0) fprintf(stderr, "muster: no whole report: %s\n", strerror(error));
}
