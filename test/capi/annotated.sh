#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# annotated.sh <source>: clang's thread safety analysis knows muster::mutex and muster::lock.
set -uo pipefail
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
command -v clang++ >/dev/null || skip "package clang"
command=(clang++ -std=c++20 -fsyntax-only -Wall -Wextra -Werror -Wthread-safety -I"$1/include"
  "$1/test/capi/annotated.cpp")
"${command[@]}" || fail "what is guarded is refused"
said=$("${command[@]}" -DFORGETS 2>&1) && fail "what is not guarded passes"
"${command[@]}" -DWRITES 2>/dev/null && fail "a section that reads beside others writes"
for mutex in guard lock; do
  grep -q "requires holding mutex '$mutex'" <<<"$said" || fail "$said"
done
