#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# symbols.sh <library> <header>...: the library is named for its minor version, and exports what the
# headers declare and nothing else.
set -euo pipefail
library=$1
shift
name=$(basename "$library" | sed 's/\.[0-9]*$//')  # libmuster.so.0.1
objdump -p "$library" | grep -E "^ *SONAME +$name\$" || {
  echo "its SONAME is not $name" >&2
  exit 1
}
exported=$(nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort)
declared=$(sed -n 's/^MUSTER_API .*[ *]\(muster_[a-z_]*\)[(;].*/\1/p' "$@" | sort)
[ -n "$declared" ] || { echo "no declarations found in $*" >&2; exit 1; }
diff <(echo "$declared") <(echo "$exported") || {
  echo "left: declared in the headers; right: exported by the library" >&2
  exit 1
}
echo "$(wc -l <<<"$exported") symbols"
