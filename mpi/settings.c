/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/library.h"

int number_in(const char* variable) {
  const char* const text = secure_getenv(variable);
  char* end = NULL;
  const long number = text != NULL ? strtol(text, &end, 10) : 0;
  if (text == NULL || (*end == '\0' && number >= 0 && number <= 1000)) return (int)number;
  fprintf(stderr, "muster: %s is ignored: it takes a number, such as 1\n", variable);
  return 0;
}

const char* report_asked_for(void) {
  const char* const text = secure_getenv("MUSTER_REPORT");
  return text == NULL || text[0] == '\0' || strcmp(text, "0") == 0 ? NULL : text;
}

uint32_t message_barrier_asked_for(const mpi_settings* settings) {
  const char* const* const names = libmuster.message_barrier_names();
  for (uint32_t i = 0; settings->barrier != NULL && names[i] != NULL; ++i) {
    if (strcmp(settings->barrier, names[i]) == 0) return i + 1;
  }
  return 0;
}

void algorithm_asked_for(const mpi_settings* settings, char* text, size_t bytes) {
  const char* const name =
      settings->barrier != NULL && settings->barrier[0] != '\0' ? settings->barrier : "auto";
  const char* const levels = settings->levels != NULL ? settings->levels : "";
  const int family = (int)strcspn(name, ":");
  const char* const families[] = {"auto", "topo", "topo-counter", "scheduled"};
  bool takes_levels = false;
  for (size_t n = 0; n < sizeof families / sizeof *families; ++n) {
    takes_levels = takes_levels || ((int)strlen(families[n]) == family &&
                                    strncmp(name, families[n], (size_t)family) == 0);
  }
  if (levels[0] == '\0' || !takes_levels) {
    snprintf(text, bytes, "%s", name);
  } else if (strcmp(name, "auto") == 0) {
    snprintf(text, bytes, "topo-%s", levels);
  } else {
    snprintf(text, bytes, "%.*s-%s%s", family, name, levels, name + family);
  }
  for (char* at = text; *at != '\0'; ++at) {
    if (*at == ',') *at = '-';
  }
}
