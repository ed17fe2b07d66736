// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE  // nftw()
#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK_BYTES = 256 * 1024, THREADS_MAX = 4096 };

_Noreturn void fail(const struct options* options, int status, const char* what) {
  fprintf(stderr, "%s: %s\n", options->program, what);
  exit(status);
}

// ---- the table

static bool table_grow(struct table* table) {
  const size_t bucket_count = table->bucket_count == 0 ? 1021 : 2 * table->bucket_count + 1;
  struct entry** buckets = calloc(bucket_count, sizeof(struct entry*));
  if (buckets == NULL) return false;
  for (size_t b = 0; b < table->bucket_count; ++b) {
    for (struct entry* entry = table->buckets[b]; entry != NULL;) {
      struct entry* next = entry->next;
      entry->next = buckets[entry->hash % bucket_count];
      buckets[entry->hash % bucket_count] = entry;
      entry = next;
    }
  }
  free(table->buckets);
  table->buckets = buckets;
  table->bucket_count = bucket_count;
  return true;
}

static bool is(const struct entry* entry, struct word word) {
  return entry->hash == word.hash && strncmp(entry->word, word.letters, word.length) == 0 &&
         entry->word[word.length] == '\0';
}

struct entry* table_find(struct table* table, struct word word) {
  if (table->different == table->bucket_count && !table_grow(table)) return NULL;
  struct entry** at = &table->buckets[word.hash % table->bucket_count];
  while (*at != NULL && !is(*at, word)) at = &(*at)->next;
  if (*at == NULL) {
    struct entry* fresh = calloc(1, sizeof *fresh + word.length + 1);
    if (fresh == NULL) return NULL;
    fresh->hash = word.hash;
    memcpy(fresh->word, word.letters, word.length);
    *at = fresh;
    ++table->different;
  }
  return *at;
}

// Most frequent first, then by the alphabet.
static int compare(const void* left, const void* right) {
  const struct entry* a = *(struct entry* const*)left;
  const struct entry* b = *(struct entry* const*)right;
  if (a->count != b->count) return a->count < b->count ? 1 : -1;
  return strcmp(a->word, b->word);
}

// Prints the first `top` of all words, frees the table, and returns how many words it had counted.
static unsigned long table_finish(struct table* table, const struct options* options) {
  struct entry** all = calloc(table->different + 1, sizeof(struct entry*));
  if (all == NULL) fail(options, 1, "out of memory");
  size_t i = 0;
  for (size_t b = 0; b < table->bucket_count; ++b) {
    for (struct entry* entry = table->buckets[b]; entry != NULL; entry = entry->next) {
      all[i++] = entry;
    }
  }
  qsort(all, i, sizeof(struct entry*), compare);
  unsigned long words = 0;
  for (i = 0; i < table->different; ++i) {
    if (i < options->top || options->top == 0) printf("%7lu %s\n", all[i]->count, all[i]->word);
    words += all[i]->count;
    free(all[i]);
  }
  free(all);
  free(table->buckets);
  return words;
}

// ---- the input

struct block {
  char* text;
  size_t length;
  size_t capacity;
};

// Its mutex stays: it is taken once for 256 KiB, and its section sleeps in the kernel.
static struct {
  pthread_mutex_t mutex;
  const struct options* options;
  char** paths;
  size_t path_count;
  size_t next_path;
  int file;           // being read; -1: none
  struct block rest;  // of it, the beginning of a word
  bool failed;
} input = {.mutex = PTHREAD_MUTEX_INITIALIZER, .file = -1};

static void complain(const char* path) {
  fprintf(stderr, "%s: %s: %s\n", input.options->program, path, strerror(errno));
  input.failed = true;
}

static void add_path(const char* path) {
  char** paths = realloc(input.paths, (input.path_count + 1) * sizeof *paths);
  char* copy = strdup(path);
  if (paths == NULL || copy == NULL) fail(input.options, 1, "out of memory");
  input.paths = paths;
  input.paths[input.path_count++] = copy;
}

static int visit(const char* path, const struct stat* info, int kind, struct FTW* place) {
  (void)place;
  if (kind == FTW_DNR || kind == FTW_NS) {
    errno = EACCES;
    complain(path);
  } else if (kind == FTW_F && S_ISREG(info->st_mode)) {
    add_path(path);
  }
  return 0;
}

static void find_files(const struct options* options) {
  input.options = options;
  if (options->path_count == 0) add_path("-");
  for (int i = 0; i < options->path_count; ++i) {
    struct stat info;
    if (stat(options->paths[i], &info) == 0 && S_ISDIR(info.st_mode)) {
      if (nftw(options->paths[i], visit, 16, FTW_PHYS) != 0) complain(options->paths[i]);
    } else {
      add_path(options->paths[i]);
    }
  }
}

static bool open_next(void) {
  while (input.next_path < input.path_count) {
    const char* path = input.paths[input.next_path++];
    input.file = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (input.file >= 0) return true;
    complain(path);
  }
  return false;
}

static void make_room(struct block* block, size_t bytes) {
  if (block->capacity - block->length >= bytes) return;
  block->capacity = 2 * (block->length + bytes);
  char* text = realloc(block->text, block->capacity);
  if (text == NULL) fail(input.options, 1, "out of memory");
  block->text = text;
}

static void append(struct block* block, const char* text, size_t length) {
  make_room(block, length + 1);
  memcpy(block->text + block->length, text, length);
  block->length += length;
}

static bool is_letter(char c) { return (unsigned char)((c | 0x20) - 'a') < 26; }

// Reads to the end of the file, or until there are whole words enough; what follows these is kept.
static void read_words(struct block* block) {
  append(block, input.rest.text != NULL ? input.rest.text : "", input.rest.length);
  input.rest.length = 0;
  for (;;) {
    make_room(block, BLOCK_BYTES);
    const ssize_t got = read(input.file, block->text + block->length, BLOCK_BYTES);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      if (got < 0) complain(input.paths[input.next_path - 1]);
      if (input.file != STDIN_FILENO) close(input.file);
      input.file = -1;
      return;
    }
    block->length += (size_t)got;
    size_t whole = block->length;
    while (whole > 0 && is_letter(block->text[whole - 1])) --whole;
    if (whole > 0 && block->length >= BLOCK_BYTES) {
      append(&input.rest, block->text + whole, block->length - whole);
      block->length = whole;
      return;
    }
  }
}

// False at the end of all files.
static bool next_block(struct block* block) {
  block->length = 0;
  pthread_mutex_lock(&input.mutex);
  while (block->length == 0 && (input.file >= 0 || open_next())) read_words(block);
  pthread_mutex_unlock(&input.mutex);
  return block->length > 0;
}

// ---- the threads

struct job {
  const struct options* options;
  bool (*count_word)(struct table*, struct word);
  struct table* table;
};

struct worker {
  pthread_t thread;
  const struct job* job;
  unsigned long words;
};

static void* work(void* argument) {
  struct worker* self = argument;
  const struct job* job = self->job;
  struct block block = {NULL, 0, 0};
  while (next_block(&block)) {
    char* const end = block.text + block.length;
    for (char* c = block.text; c < end; ++c) {
      if (!is_letter(*c)) continue;
      struct word word = {c, 0, 2166136261U};
      for (; c < end && is_letter(*c); ++c) {
        *c = (char)(*c | 0x20);
        word.hash = (word.hash ^ (unsigned char)*c) * 16777619U;
      }
      word.length = (size_t)(c - word.letters);
      if (!job->count_word(job->table, word)) fail(job->options, 1, "a word was not counted");
      ++self->words;
    }
  }
  free(block.text);
  return NULL;
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int count_words(const struct options* options, bool (*count_word)(struct table*, struct word)) {
  struct table table = {NULL, 0, 0};
  const struct job job = {options, count_word, &table};
  struct worker* workers = calloc(options->threads, sizeof *workers);
  if (workers == NULL) fail(options, 1, "out of memory");
  find_files(options);

  const double start_s = now_s();
  for (unsigned t = 0; t < options->threads; ++t) {
    workers[t].job = &job;
    if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0) {
      fail(options, 1, "a thread could not be made: try fewer --threads");
    }
  }
  unsigned long words = 0;
  for (unsigned t = 0; t < options->threads; ++t) {
    pthread_join(workers[t].thread, NULL);
    words += workers[t].words;
  }
  const double seconds = now_s() - start_s;
  free(workers);
  for (size_t i = 0; i < input.path_count; ++i) free(input.paths[i]);
  free(input.paths);
  free(input.rest.text);

  const size_t different = table.different;
  const unsigned long counted = table_finish(&table, options);
  if (fflush(stdout) != 0) fail(options, 1, "the counts could not be written");
  if (counted != words) fail(options, 1, "the lock has lost words");
  if (options->verbose) {
    fprintf(stderr, "%lu words, %zu different, in %.3f s by %u threads: %.2f million words/s\n",
            words, different, seconds, options->threads, 1e-6 * (double)words / seconds);
  }
  return input.failed ? 1 : 0;
}

// ---- the command line

static _Noreturn void print_usage(const struct options* options, int status) {
  fprintf(status == 0 ? stdout : stderr,
          "usage: %s [option]... [file or directory]...\n"
          "Counts words; of standard input without a file, or where it is -.\n"
          "%s"
          "  --threads N  1 to %d; default: one for each CPU\n"
          "  --top N      print the N most frequent words; default 10; 0: all\n"
          "  --verbose    say what it took%s, to standard error\n",
          options->program,
          options->lock == NULL ? "" : "  --lock NAME  the kind of lock; default auto\n",
          THREADS_MAX, options->lock == NULL ? "" : " and what the lock did");
  exit(status);
}

static unsigned number(const struct options* options, const char* text, unsigned min,
                       unsigned max) {
  char* end = NULL;
  const unsigned long value = strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || value < min || value > max) {
    fprintf(stderr, "%s: \"%s\": a number from %u to %u\n", options->program, text, min, max);
    exit(2);
  }
  return (unsigned)value;
}

struct options parse_options(int argc, char** argv, const char* lock) {
  static const struct option known[] = {
      {"help", no_argument, NULL, 'h'},       {"threads", required_argument, NULL, 't'},
      {"top", required_argument, NULL, 'n'},  {"verbose", no_argument, NULL, 'v'},
      {"lock", required_argument, NULL, 'l'}, {NULL, 0, NULL, 0}};
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  struct options options = {.program = argv[0], .lock = lock, .top = 10};
  options.threads = cpus < 1 ? 1 : cpus > THREADS_MAX ? THREADS_MAX : (unsigned)cpus;
  for (int option = 0; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    switch (option) {
      case 'h':
        print_usage(&options, 0);
      case 't':
        options.threads = number(&options, optarg, 1, THREADS_MAX);
        break;
      case 'n':
        options.top = number(&options, optarg, 0, 1000000000);
        break;
      case 'v':
        options.verbose = true;
        break;
      case 'l':
        if (lock == NULL) fail(&options, 2, "its lock is a pthread mutex");
        options.lock = optarg;
        break;
      default:
        print_usage(&options, 2);
    }
  }
  options.paths = argv + optind;
  options.path_count = argc - optind;
  return options;
}
