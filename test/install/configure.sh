#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# configure.sh <source> <scratch> <cmake>: a tree with sanitizers can be made as the documents say,
# and one without ccache where that cannot write its cache.
set -euo pipefail
tree=$2
rm -rf "$tree"
export HOME=/proc CCACHE_DIR=/proc/none
unset CCACHE_DISABLE
said=$("$3" -S "$1" -B "$tree" -DMUSTER_SANITIZE=address,undefined 2>&1) || {
  echo "$said" >&2
  exit 1
}
if grep -rq --include=rules.ninja --include=build.make bin/ccache "$tree"; then
  echo "ccache cannot write, and serves" >&2
  exit 1
fi
rm -rf "$tree"
