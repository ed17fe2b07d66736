/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program expects of what it calls: else it ends at once, whoever waits. */
#pragma once

#include <stdio.h>
#include <unistd.h>

static inline void expect(int holds, const char* what, const char* file, int line) {
  if (holds) return;
  fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
  _exit(1);
}
#define EXPECT(condition) expect(condition, #condition, __FILE__, __LINE__)
