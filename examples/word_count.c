// SPDX-License-Identifier: BSD-3-Clause
// Counts the words of files in threads that share one hash table: word_count_pthread.c with its
// critical section as a function that the lock executes.
#include <muster/lock.h>
#include <stdio.h>

#include "words.h"

static muster_lock* lock;

struct request {
  struct table* table;
  struct word word;
  bool counted;
};

static void count_section(void* argument) {
  struct request* request = argument;
  struct entry* entry = table_find(request->table, request->word);
  if (entry != NULL) ++entry->count;
  request->counted = entry != NULL;
}

static bool count_word(struct table* table, struct word word) {
  struct request request = {table, word, false};
  return muster_lock_execute(lock, count_section, &request) == MUSTER_OK && request.counted;
}

int main(int argc, char** argv) {
  const struct options options = parse_options(argc, argv, "auto");
  muster_lock_options lock_options;
  muster_lock_options_init(&lock_options);
  lock_options.kind = options.lock;
  const int made = muster_lock_create(&lock, &lock_options);
  if (made != MUSTER_OK) fail(&options, made == MUSTER_EUNKNOWN ? 2 : 1, muster_last_error());

  const int status = count_words(&options, count_word);
  if (options.verbose) {
    char what_it_did[2048];
    muster_lock_explain(lock, "text", what_it_did, sizeof what_it_did, NULL);
    fputs(what_it_did, stderr);
  }
  muster_lock_destroy(lock);
  return status;
}
