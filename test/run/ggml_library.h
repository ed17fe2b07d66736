/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stddef.h>

enum { threads_max = 16 };
struct ggml_threadpool;

typedef struct {
  void (*body)(struct ggml_threadpool*, int thread, int threads, void* data);
  void* data;
} graph;

/* As struct ggml_cplan begins. */
typedef struct {
  size_t work_size;
  unsigned char* work;
  int threads;
  struct ggml_threadpool* pool;
} plan;

void ggml_barrier(struct ggml_threadpool* pool);
struct ggml_threadpool* ggml_threadpool_new(const int* threads);
void ggml_threadpool_free(struct ggml_threadpool* pool);
int ggml_graph_compute(graph* its, plan* how);
long ggml_own_barriers(void); /* of the library, that all threads came to */
