#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# interfaces.sh <C compiler> <source>: component.c compiles for each coll interface that it is
# written for, and takes that one's ways. For those of Open MPI 5.0 and later there are no headers
# here: what differs there, as far as component.c depends on it, is laid over the headers of 4.1.
# This shows that the code of the guards is C; not that it works there.
set -uo pipefail
compiler=$1 source=$2
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
command -v mpicc.openmpi >/dev/null || skip "package libopenmpi-dev"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
includes=(-I"$source" -I"$source/include")
for folder in $(mpicc.openmpi --showme:incdirs); do
  includes+=(-isystem "$folder" -isystem "$folder/openmpi"
    -isystem "$folder/opal/mca/hwloc/hwloc201/hwloc/include")
done
flags=(-std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE)

# compile <overlay> <coll interface, as 2,4,0>
compile() {
  local object=$scratch/$1.o text
  "$compiler" "${flags[@]}" -I"$scratch/$1" "${includes[@]}" -c "$source/mpi/component.c" \
    -o "$object" || fail "it does not compile for the interface $2"
  text=$("$compiler" "${flags[@]}" -I"$scratch/$1" "${includes[@]}" -P -E \
    "$source/mpi/component.c" | tr -s ' \n' ' ')
  IFS=, read -r major minor release <<<"$2"
  for number in "major_version = $major" "minor_version = $minor" "release_version = $release"; do
    grep -q "mca_type_$number\b" <<<"$text" || fail "another interface than $2"
  done
}

overlay=$scratch/2.0
mkdir -p "$overlay"
compile 2.0 2,0,0

# 5.0: another number, PMIx's own names, and headers of threads that are included, but not there.
overlay=$scratch/2.4
mkdir -p "$overlay/ompi/mca/coll" "$overlay/opal/mca/pmix"
cat >"$overlay/ompi_config.h" <<'END'
#include_next <ompi_config.h>
#undef OMPI_MAJOR_VERSION
#define OMPI_MAJOR_VERSION 5
#define MCA_threads_mutex_base_include_HEADER "opal/mca/threads/pthreads/threads_pthreads_mutex.h"
END
cat >"$overlay/ompi/mca/coll/coll.h" <<'END'
#include_next <ompi/mca/coll/coll.h>
#undef MCA_COLL_BASE_VERSION_2_0_0
#define MCA_COLL_BASE_VERSION_2_4_0 OMPI_MCA_BASE_VERSION_2_1_0("coll", 2, 4, 0)
#include MCA_threads_mutex_base_include_HEADER
END
cat >"$overlay/opal/mca/pmix/pmix-internal.h" <<'END'
#include "opal/mca/pmix/pmix.h"
#undef OPAL_PMIX_LOCALITY_STRING
#define PMIX_LOCALITY_STRING "pmix.locstr"
#define PMIX_STRING OPAL_STRING
END
compile 2.4 2,4,0
grep -q ' disable$' <<<"$(nm "$scratch/2.4.o")" && fail "2.4.0 restores nothing in disable"

# Later: modules save and install functions by two macros, and put back what was there.
cp -r "$overlay" "$scratch/3.0"
overlay=$scratch/3.0
cat >"$overlay/ompi/mca/coll/coll.h" <<'END'
#include_next <ompi/mca/coll/coll.h>
#undef MCA_COLL_BASE_VERSION_2_0_0
#define MCA_COLL_BASE_VERSION_3_0_0 OMPI_MCA_BASE_VERSION_2_1_0("coll", 3, 0, 0)
#define MCA_COLL_SAVE_API(comm, which, function, module, whose) \
  ((function) = (comm)->c_coll->coll_##which,                   \
   (module) = (comm)->c_coll->coll_##which##_module, (void)(whose))
#define MCA_COLL_INSTALL_API(comm, which, function, module, whose) \
  ((comm)->c_coll->coll_##which = (function),                      \
   (comm)->c_coll->coll_##which##_module = (module), (void)(whose))
END
compile 3.0 3,0,0
grep -q ' disable$' <<<"$(nm "$scratch/3.0.o")" || fail "3.0.0 has to restore what was there"
exit 0
