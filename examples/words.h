// SPDX-License-Identifier: BSD-3-Clause
// Counting the words of files in threads: what word_count_pthread.c and word_count.c share, which
// is everything but the lock. A word is a longest run of ASCII letters, in lower case.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct options {
  const char* program;
  const char* lock;  // --lock; NULL for a program without it
  unsigned threads;
  unsigned top;
  bool verbose;
  char** paths;
  int path_count;
};

struct word {
  const char* letters;  // not terminated
  size_t length;
  unsigned hash;
};

struct entry {
  struct entry* next;
  unsigned long count;
  unsigned hash;
  char word[];
};

// Not thread-safe.
struct table {
  struct entry** buckets;
  size_t bucket_count;
  size_t different;
};

// The word's entry, made if there is none; NULL without memory.
struct entry* table_find(struct table* table, struct word word);

// Ends the program with 2 where the command line is wrong. `lock`: the default of --lock; NULL: no
// such option.
struct options parse_options(int argc, char** argv, const char* lock);

// Counts with `count_word`, which all threads call with one table, and prints. Returns the
// program's status.
int count_words(const struct options* options, bool (*count_word)(struct table*, struct word));

// Says what is wrong, and ends the program.
_Noreturn void fail(const struct options* options, int status, const char* what);
