/* SPDX-License-Identifier: BSD-3-Clause */
/* openmp_ggml <threads> <graphs>: small multiplications one after another, as ggml's own test of
 * its barrier has them, by a ggml that somebody else built (a Python wheel's). It prints the mean
 * microseconds of a graph of 2,000 of them. To build, with the libraries of the wheel pywhispercpp
 * and the headers of ggml-python's sources (vendor/ggml/include):
 *   gcc -O2 -I$HEADERS bench/openmp_ggml.c -o ggml $LIBRARIES/libggml-cpu.so \
 *     $LIBRARIES/libggml-base.so -Wl,-rpath,$LIBRARIES:$LIBRARIES/pywhispercpp.libs \
 *     -Wl,--allow-shlib-undefined */
#include <ggml-cpu.h>
#include <ggml.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int threads = atoi(argv[1]);
  const int graphs = atoi(argv[2]);
  struct ggml_init_params parameters = {.mem_size = (size_t)64 << 20};
  struct ggml_context* context = ggml_init(parameters);
  struct ggml_tensor* out = ggml_new_tensor_1d(context, GGML_TYPE_F32, 64);
  for (int i = 0; i < 1000; ++i) {
    out = ggml_mul_mat(context, ggml_new_tensor_2d(context, GGML_TYPE_Q4_0, 64, 128), out);
    out = ggml_mul_mat(context, ggml_new_tensor_2d(context, GGML_TYPE_Q4_0, 128, 64), out);
  }
  struct ggml_cgraph* graph = ggml_new_graph_custom(context, 1 << 14, false);
  ggml_build_forward_expand(graph, out);
  struct ggml_cplan plan = ggml_graph_plan(graph, threads, NULL);
  plan.work_data = malloc(plan.work_size + 1);
  ggml_graph_compute(graph, &plan);
  const double from = seconds_now();
  for (int i = 0; i < graphs; ++i) ggml_graph_compute(graph, &plan);
  printf("%.1f\n", 1e6 * (seconds_now() - from) / graphs);
  free(plan.work_data);
  ggml_free(context);
  return 0;
}
