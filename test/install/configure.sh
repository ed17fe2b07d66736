#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# configure.sh <source> <cmake>: a tree with sanitizers can be made as the documents say, outside of
# the sources, too, and without ccache where that cannot write its cache.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
export HOME=/proc CCACHE_DIR=/proc/none
unset CCACHE_DISABLE
said=$("$2" -S "$1" -B "$tree" -DMUSTER_SANITIZE=address,undefined 2>&1) || {
  echo "$said" >&2
  exit 1
}
if grep -rq --include=rules.ninja --include=build.make bin/ccache "$tree"; then
  echo "ccache cannot write, and serves" >&2
  exit 1
fi
if ! grep -q -- "-ffile-prefix-map=$tree=" "$tree/compile_commands.json"; then
  echo "what is installed names the folder it was built in" >&2
  exit 1
fi
