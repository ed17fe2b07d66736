// SPDX-License-Identifier: BSD-3-Clause
// Counts the words of files in threads that share one hash table: under a pthread mutex. The same
// program after it was ported: word_count.c.
#include <pthread.h>

#include "words.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool count_word(struct table* table, struct word word) {
  pthread_mutex_lock(&lock);
  struct entry* entry = table_find(table, word);
  if (entry != NULL) ++entry->count;
  pthread_mutex_unlock(&lock);
  return entry != NULL;
}

int main(int argc, char** argv) {
  const struct options options = parse_options(argc, argv, NULL);
  return count_words(&options, count_word);
}
