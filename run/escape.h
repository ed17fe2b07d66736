/* SPDX-License-Identifier: BSD-3-Clause */
/* What reports print: counts, and names that somebody else chose, for a terminal or JSON. */
#pragma once

#include <stdint.h>
#include <stdio.h>

/* What ends the word after a count. */
static inline const char* s_after(uint64_t count) { return count == 1 ? "" : "s"; }

/* What is neither printable ASCII nor fit for a JSON string as "\\", `escape` and two hexadecimal
 * digits: "x" for people, "u00" for JSON. */
static inline void print_escaped(int file, const char* text, const char* escape) {
  for (; *text != '\0'; ++text) {
    const unsigned char c = (unsigned char)*text;
    if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
      dprintf(file, "\\%s%02x", escape, c);
    } else {
      dprintf(file, "%c", c);
    }
  }
}
