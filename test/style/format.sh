#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# format.sh <source>: every C and C++ source is as clang-format leaves it (`make format`).
set -euo pipefail
cd "$1"
command -v clang-format >/dev/null || { echo "skipped: package clang-format"; exit 77; }

# A sentence about a check that cannot fail is worth nothing: it must object to this.
if printf 'int   a ;\n' | clang-format --dry-run -Werror --assume-filename=a.cpp 2>/dev/null; then
  echo "clang-format accepts what is not formatted" >&2
  exit 1
fi
find . -path ./build -prune -o -path ./env -prune -o -path ./.git -prune -o -type f \
  \( -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.hpp' \) -print0 |
  xargs -0 -n 8 -P "$(nproc)" clang-format --dry-run -Werror
