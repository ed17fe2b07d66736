// SPDX-License-Identifier: BSD-3-Clause
// What doc/delegation.md shows in C: calls, a server, and a queue with a condition.
#include <muster/lock.h>
#include <pthread.h>
#include <stdio.h>

// A queue of the caller's items.

struct item {
  struct item* next;
  long value;
};

struct queue {
  muster_lock* lock;
  muster_cond* filled;
  struct item* first;
  struct item** end;
};

struct call {
  struct queue* queue;
  struct item* item;
};

static void push_section(void* argument) {
  struct call* call = argument;
  *call->queue->end = call->item;
  call->queue->end = &call->item->next;
  muster_cond_signal(call->queue->filled);
}

static void pop_section(void* argument) {
  struct call* call = argument;
  struct queue* queue = call->queue;
  while (queue->first == NULL) muster_cond_wait(queue->filled);
  call->item = queue->first;
  queue->first = call->item->next;
  if (queue->first == NULL) queue->end = &queue->first;
}

static void push(struct queue* queue, struct item* item) {
  item->next = NULL;
  struct call call = {queue, item};
  muster_lock_execute(queue->lock, push_section, &call);
}

static struct item* pop(struct queue* queue) {
  struct call call = {queue, NULL};
  muster_lock_execute(queue->lock, pop_section, &call);
  return call.item;
}

enum { PRODUCERS = 2, ITEMS = 1000 };

struct producer {
  pthread_t thread;
  struct queue* queue;
  struct item items[ITEMS];
};

static void* produce(void* argument) {
  struct producer* self = argument;
  for (int i = 0; i < ITEMS; ++i) {
    self->items[i].value = i + 1;
    push(self->queue, &self->items[i]);
  }
  return NULL;
}

static int queue_is_right(void) {
  static struct producer producers[PRODUCERS];
  struct queue queue = {.end = &queue.first};
  if (muster_lock_create(&queue.lock, NULL) != MUSTER_OK) return 0;
  if (muster_cond_create(&queue.filled, queue.lock) != MUSTER_OK) return 0;
  for (int p = 0; p < PRODUCERS; ++p) {
    producers[p].queue = &queue;
    if (pthread_create(&producers[p].thread, NULL, produce, &producers[p]) != 0) return 0;
  }
  long sum = 0;
  for (int i = 0; i < PRODUCERS * ITEMS; ++i) sum += pop(&queue)->value;
  for (int p = 0; p < PRODUCERS; ++p) pthread_join(producers[p].thread, NULL);
  muster_cond_destroy(queue.filled);
  muster_lock_destroy(queue.lock);
  printf("queue: %ld\n", sum);
  return queue.first == NULL && sum == (long)PRODUCERS * ITEMS * (ITEMS + 1) / 2;
}

// Calls.

struct add {
  long* total;
  long value;
};

static void add(void* argument) {
  const struct add* request = argument;
  *request->total += request->value;
}

static int calls_are_right(void) {
  long total = 0;
  struct add request = {&total, 1};
  struct add later = {&total, 2};

  muster_lock* lock = NULL;
  muster_lock_create(&lock, NULL);           // "auto"
  muster_lock_execute(lock, add, &request);  // add(&request) has run when this returns
  muster_lock_post(lock, add, &later);       // or: some time; `later` has to live until then
  muster_lock_destroy(lock);                 // after what was posted

  printf("calls: %ld\n", total);
  return total == 3;
}

static int server_is_right(void) {
  long total = 0;
  struct add request = {&total, 1};

  muster_server* server = NULL;
  muster_server_start(&server, NULL);  // "pack", "spread", or CPUs: "3", "2-3"

  muster_lock_options options;
  muster_lock_options_init(&options);
  options.kind = "rcl";  // or "auto"
  options.server = server;
  muster_lock* lock = NULL;
  muster_lock_create(&lock, &options);
  muster_lock_execute(lock, add, &request);  // by the server

  const int placed = muster_thread_bind(lock, NULL);  // near the server of its lock
  muster_thread_unbind();                             // as it was; so does the thread's end

  muster_server_destroy(server);  // what was posted is executed; its locks go on

  muster_lock_execute(lock, add, &request);
  muster_lock_destroy(lock);
  printf("server: %ld\n", total);
  return placed == MUSTER_OK && total == 2;
}

int main(void) {
  const int right = calls_are_right() && server_is_right() && queue_is_right();
  if (!right) fprintf(stderr, "%s\n", muster_last_error());
  return right ? 0 : 1;
}
