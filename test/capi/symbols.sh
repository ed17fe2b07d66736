#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# symbols.sh <libmuster.so> <header>...: the library's name is libmuster.so.0.1, it exports what the
# headers declare and nothing else, and a call that stays inside goes through no table.
set -euo pipefail
library=$1
shift
objdump -p "$library" | grep -E '^ *SONAME +libmuster\.so\.0\.1$' || {
  echo "its SONAME is not libmuster.so.0.1" >&2
  exit 1
}
exported=$(nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort)
declared=$(sed -n 's/^MUSTER_API .*[ *]\(muster_[a-z_]*\)(.*/\1/p' "$@" | sort)
[ -n "$declared" ] || { echo "no declarations found in $*" >&2; exit 1; }
diff <(echo "$declared") <(echo "$exported") || {
  echo "left: declared in the headers; right: exported by the library" >&2
  exit 1
}
echo "$(wc -l <<<"$exported") functions"
