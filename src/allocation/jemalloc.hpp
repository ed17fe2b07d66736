// SPDX-License-Identifier: BSD-3-Clause
// jemalloc's own names, je_malloc() and so on, as this library contains them: Debian's position-
// independent jemalloc with its exported names prefixed (jemalloc.names), so that neither the
// process's malloc nor a jemalloc that the program brings is touched.
#pragma once

#ifndef JEMALLOC_NO_RENAME
#define JEMALLOC_NO_RENAME
#endif
#include <jemalloc/jemalloc.h>
