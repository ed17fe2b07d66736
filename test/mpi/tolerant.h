/* SPDX-License-Identifier: BSD-3-Clause */
/* Before component.c: an older Open MPI's headers, as if it could tolerate faults. */
#include <stdbool.h>
#define OPAL_ENABLE_FT_MPI 1
extern bool ompi_ftmpi_enabled;
