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

/** All communicators of the same ranks that were served alike. */
typedef struct group {
  struct group* next;
  uint64_t whose;
  char name[64];
  const char* served;
  unsigned ranks;
  uint64_t communicators;
  uint64_t barriers;
  int64_t spent_ns;
  int64_t own_ns;
  watched_rank* by_rank; /**< NULL: not watched */
} group;

static group* groups;
static unsigned group_count;

static group* group_of(const report_entry* one) {
  for (group* at = groups; at != NULL; at = at->next) {
    if (at->whose == one->whose && at->served == one->served && at->ranks == one->ranks &&
        (at->by_rank != NULL) == (one->seen != NULL)) {
      return at;
    }
  }
  group* const made = calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  if (one->seen != NULL) made->by_rank = calloc(one->ranks, sizeof *made->by_rank);
  if (one->seen != NULL && made->by_rank == NULL) {
    free(made);
    return NULL;
  }
  made->whose = one->whose;
  made->served = one->served;
  made->ranks = one->ranks;
  made->next = groups;
  groups = made;
  ++group_count;
  return made;
}

void report_add(const report_entry* one) {
  group* const its = group_of(one);
  if (its == NULL) return;
  /* Of all names the last: who tells begins with those that are gone, and ends with the oldest. */
  snprintf(its->name, sizeof its->name, "%s", one->name);
  ++its->communicators;
  its->barriers += one->barriers;
  its->spent_ns += one->spent_ns;
  if (one->seen == NULL) return;
  its->own_ns += watch_own_ns(one->seen, one->ranks);
  for (unsigned i = 0; i < one->ranks; ++i) {
    const watched_rank seen = watch_of(one->seen, one->ranks, i);
    its->by_rank[i].waited_ns += seen.waited_ns;
    its->by_rank[i].caused_ns += seen.caused_ns;
    its->by_rank[i].last += seen.last;
  }
}

/** A rank's mean over all. */
static double waited_s(const group* of) {
  double sum = 0;
  for (unsigned i = 0; i < of->ranks && of->by_rank != NULL; ++i) {
    sum += (double)of->by_rank[i].waited_ns;
  }
  return sum / of->ranks / 1e9;
}

static double spent_s(const group* of) {
  return of->by_rank == NULL ? (double)of->spent_ns / 1e9 : waited_s(of) + (double)of->own_ns / 1e9;
}

static int most_spent_first(const void* left, const void* right) {
  const double a = spent_s(*(const group* const*)left);
  const double b = spent_s(*(const group* const*)right);
  return (a < b) - (a > b);
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
  fprintf(to, "  %6s %10s %12s %24s\n", "rank", "came last", "waited", "the others waited for it");
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
  print_name(to, of->name[0] != '\0' ? of->name : "a communicator");
  if (of->communicators > 1) {
    fprintf(to, " and %" PRIu64 " more of the same ranks", of->communicators - 1);
  }
  fprintf(to, ": %u rank%s, %" PRIu64 " barrier%s by %s", of->ranks, of->ranks == 1 ? "" : "s",
          of->barriers, of->barriers == 1 ? "" : "s", of->served);
  if (of->by_rank == NULL) {
    fprintf(to, ": %s in them (rank 0)\n", duration(spent_s(of), first));
    return;
  }
  const double all = spent_s(of);
  const double own = (double)of->own_ns / 1e9;
  fprintf(to, "\n  each rank spent %s in them: ", duration(all, first));
  fprintf(to, "%s waiting for the last (%.0f %%),\n", duration(waited_s(of), first),
          all > 0 ? 100 * waited_s(of) / all : 0);
  fprintf(to, "  %s in the barrier itself (%.0f %%), ", duration(own, first),
          all > 0 ? 100 * own / all : 0);
  fprintf(to, "%s a barrier\n", duration(own / (double)of->barriers, first));
  print_ranks(to, of);
}

/* ---- as JSON ---- */

static void print_text_json(FILE* to, const char* text) {
  fputc('"', to);
  for (const unsigned char* at = (const unsigned char*)text; *at != '\0'; ++at) {
    if (*at < 0x20 || *at == '"' || *at == '\\' || *at >= 0x7f) {
      fprintf(to, "\\u%04x", *at);
    } else {
      fputc(*at, to);
    }
  }
  fputc('"', to);
}

static void print_group_json(FILE* to, const group* of) {
  fprintf(to, "{\"name\": ");
  print_text_json(to, of->name);
  fprintf(to,
          ", \"ranks\": %u, \"communicators\": %" PRIu64 ", \"barriers\": %" PRIu64
          ", \"served_by\": \"%s\", \"spent_s\": %.9g",
          of->ranks, of->communicators, of->barriers, of->served, spent_s(of));
  if (of->by_rank != NULL) {
    fprintf(to, ", \"waiting_for_the_last_s\": %.9g, \"in_the_barrier_s\": %.9g, \"by_rank\": [",
            waited_s(of), (double)of->own_ns / 1e9);
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

static void print_all(FILE* to, group* const* sorted, bool as_json) {
  enum { told_as_text = 8 };
  if (as_json) fprintf(to, "{\"schema\": 1, \"process\": %d, \"communicators\": [", (int)getpid());
  for (unsigned i = 0; i < group_count; ++i) {
    if (as_json) {
      if (i > 0) fputs(", ", to);
      print_group_json(to, sorted[i]);
    } else if (i < told_as_text) {
      fprintf(to, "muster[%d]: ", (int)getpid());
      print_group(to, sorted[i]);
    }
  }
  if (as_json) fputs("]}\n", to);
  if (!as_json && group_count > told_as_text) {
    fprintf(to, "muster[%d]: and %u groups of communicators that took less\n", (int)getpid(),
            group_count - told_as_text);
  }
}

static void write_all(int file, const char* text, size_t bytes) {
  while (bytes > 0) {
    const ssize_t wrote = write(file, text, bytes);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    text += wrote;
    bytes -= (size_t)wrote;
  }
}

void report_tell(const char* path) {
  if (groups == NULL) return;
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
  char* text = NULL;
  size_t bytes = 0;
  group** const sorted = calloc(group_count, sizeof(group*));
  FILE* const to = sorted != NULL ? open_memstream(&text, &bytes) : NULL;
  if (to != NULL) {
    unsigned at = 0;
    for (group* one = groups; one != NULL; one = one->next) sorted[at++] = one;
    qsort((void*)sorted, group_count, sizeof(group*), most_spent_first);
    print_all(to, sorted, path != NULL);
    fclose(to);
    write_all(file, text, bytes);
  }
  free(text);
  free((void*)sorted);
  if (path != NULL) close(file);
}
