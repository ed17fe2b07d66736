#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# abi.sh <source> <libmuster.so> <scratch> [--write]: what programs are compiled against is what
# libmuster.abi says: the library's name and symbols, and of the C headers each type, field, size,
# constant and function. GCC writes these down for languages that call C; so no debug information
# is needed. --write: says it anew.
set -euo pipefail
source=$1 library=$2 scratch=$3
export LC_ALL=C
baseline=$source/test/install/libmuster.abi
if ! ${CC:-cc} -dM -E -x c /dev/null | awk '
    $2 == "__x86_64__" { x86 = 1 } $2 == "__GNUC__" { gnu = 1 } $2 == "__clang__" { clang = 1 }
    END { exit !(x86 && gnu && !clang) }'; then
  echo "skipped: libmuster.abi is GCC's, on x86-64"
  exit 77
fi
rm -rf "$scratch"
mkdir -p "$scratch"

# abi <include folder> <library>: memory.h is libmuster-memory's.
abi() {
  readelf -d "$2" | sed -n 's/.*(SONAME).*\[\(.*\)\]/library \1/p'
  nm -D --defined-only "$2" | awk '{ print "symbol", $NF, $(NF - 1) }' | sort
  (cd "$1" && printf '#include <%s>\n' muster/*.h) | grep -v memory.h >"$scratch/all.c"
  ${CC:-cc} -I "$1" "-fdump-go-spec=$scratch/declared" -S -o /dev/null "$scratch/all.c"
  grep -i '^[a-z]* _[a-z_]*muster_' "$scratch/declared" | sort
}

if [ "${4:-}" = --write ]; then
  abi "$source/include" "$library" >"$baseline"
  exit
fi
abi "$source/include" "$library" | diff -u "$baseline" - || {
  echo "Lines with - were promised: without them programs break, unless the library's name changes"
  echo "(the minor VERSION in CMakeLists.txt). Say it anew: $0 $1 $2 $3 --write"
  exit 1
}

# A field that is wider, and a library without symbols, would be seen.
cp -r "$source/include" "$scratch/include"
sed -i 's/unsigned participants;/unsigned long participants;/' "$scratch/include/muster/muster.h"
! abi "$scratch/include" "$library" | cmp -s "$baseline" - || { echo "no struct is seen"; exit 1; }
${CC:-cc} -shared -Wl,-soname,"$(basename "$library")" -o "$scratch/empty.so" -x c /dev/null
! abi "$source/include" "$scratch/empty.so" | cmp -s "$baseline" - ||
  { echo "no symbol is seen"; exit 1; }
