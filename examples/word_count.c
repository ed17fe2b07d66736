// SPDX-License-Identifier: BSD-3-Clause
// Counts the words of a text in threads that share one hash table: a program that had a pthread
// mutex around its table, and has a lock that executes the table's sections now. What changed is in
// table_add(): the lines between lock and unlock have become a function and its argument.
//
//   word_count [file] [kind of lock]      without a file: a text of its own, which it checks
#include <ctype.h>
#include <muster/lock.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, BUCKETS = 4096 };

struct entry {
  struct entry* next;
  unsigned long count;
  char word[];
};

struct table {
  muster_lock* lock;  // was: pthread_mutex_t mutex
  struct entry* buckets[BUCKETS];
  unsigned long words;
  unsigned long different;
};

static unsigned hash(const char* word) {
  unsigned h = 2166136261U;
  for (; *word != '\0'; ++word) h = (h ^ (unsigned char)*word) * 16777619U;
  return h % BUCKETS;
}

struct add {
  struct table* table;
  const char* word;
};

// Was between pthread_mutex_lock() and pthread_mutex_unlock().
static void add_section(void* argument) {
  const struct add* request = argument;
  struct table* table = request->table;
  struct entry** at = &table->buckets[hash(request->word)];
  while (*at != NULL && strcmp((*at)->word, request->word) != 0) at = &(*at)->next;
  if (*at == NULL) {
    struct entry* fresh = calloc(1, sizeof *fresh + strlen(request->word) + 1);
    if (fresh == NULL) abort();
    strcpy(fresh->word, request->word);
    *at = fresh;
    ++table->different;
  }
  ++(*at)->count;
  ++table->words;
}

static void table_add(struct table* table, const char* word) {
  struct add request = {table, word};
  if (muster_execute(table->lock, add_section, &request) != MUSTER_OK) {
    fprintf(stderr, "%s\n", muster_last_error());
    exit(1);
  }
}

struct part {
  struct table* table;
  const char* begin;
  const char* end;
};

static void* count_part(void* argument) {
  const struct part* part = argument;
  char word[64];
  size_t length = 0;
  for (const char* c = part->begin; c <= part->end; ++c) {
    if (c < part->end && isalpha((unsigned char)*c)) {
      if (length + 1 < sizeof word) word[length++] = (char)tolower((unsigned char)*c);
    } else if (length > 0) {
      word[length] = '\0';
      table_add(part->table, word);
      length = 0;
    }
  }
  return NULL;
}

// Each part ends between two words.
static void count(struct table* table, const char* text, size_t length) {
  pthread_t threads[THREADS];
  struct part parts[THREADS];
  const char* begin = text;
  for (int t = 0; t < THREADS; ++t) {
    const char* end = text + length * (size_t)(t + 1) / THREADS;
    if (end < begin) end = begin;
    while (end < text + length && isalpha((unsigned char)*end)) ++end;
    parts[t] = (struct part){table, begin, end};
    begin = end;
    if (pthread_create(&threads[t], NULL, count_part, &parts[t]) != 0) exit(1);
  }
  for (int t = 0; t < THREADS; ++t) pthread_join(threads[t], NULL);
}

static char* read_file(const char* path, size_t* length) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char* text = NULL;
  size_t size = 0;
  *length = 0;
  for (size_t got = 1; got > 0; *length += got) {
    if (*length == size) {
      size = size == 0 ? 65536 : 2 * size;
      char* more = realloc(text, size);
      if (more == NULL) abort();
      text = more;
    }
    got = fread(text + *length, 1, size - *length, file);
  }
  fclose(file);
  return text;
}

int main(int argc, char** argv) {
  static const char line[] = "A section stays where the data is, and the data stays in a cache.\n";
  enum { REPEATS = 4000, WORDS = 14, DIFFERENT = 10 };
  size_t length = 0;
  char* text = NULL;
  if (argc > 1) {
    text = read_file(argv[1], &length);
    if (text == NULL) {
      fprintf(stderr, "%s cannot be read\n", argv[1]);
      return 1;
    }
  } else {
    text = malloc(sizeof line * REPEATS);
    if (text == NULL) return 1;
    for (int i = 0; i < REPEATS; ++i, length += sizeof line - 1) {
      memcpy(text + length, line, sizeof line);
    }
  }

  static struct table table;
  muster_lock_options options;
  muster_lock_options_init(&options);
  options.kind = argc > 2 ? argv[2] : "auto";
  if (muster_lock_create(&table.lock, &options) != MUSTER_OK) {
    fprintf(stderr, "%s\n", muster_last_error());
    return 1;
  }
  count(&table, text, length);
  char why[2048];
  muster_lock_explain(table.lock, why, sizeof why, NULL);
  printf("%lu words, %lu different\n%s", table.words, table.different, why);
  muster_lock_destroy(table.lock);

  const int right =
      argc > 1 || (table.words == (unsigned long)WORDS * REPEATS && table.different == DIFFERENT);
  for (int b = 0; b < BUCKETS; ++b) {
    for (struct entry* entry = table.buckets[b]; entry != NULL;) {
      struct entry* next = entry->next;
      free(entry);
      entry = next;
    }
  }
  free(text);
  return right ? 0 : 1;
}
