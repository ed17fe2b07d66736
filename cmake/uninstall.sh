#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# uninstall.sh <build>: removes what was installed from there last, below DESTDIR if that is set,
# and the folders that are empty then.
set -euo pipefail
manifest=$1/install_manifest.txt
[ -f "$manifest" ] || { echo "Nothing was installed from $1." >&2; exit 1; }
count=0
while IFS= read -r file || [ -n "$file" ]; do
  [ -e "${DESTDIR:-}$file" ] || [ -L "${DESTDIR:-}$file" ] || continue
  rm -f "${DESTDIR:-}$file"
  rmdir -p --ignore-fail-on-non-empty "$(dirname "${DESTDIR:-}$file")" 2>/dev/null || true
  count=$((count + 1))
done <"$manifest"
rm -f "$manifest"
echo "Removed: $count files"
