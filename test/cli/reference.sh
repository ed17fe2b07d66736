#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# reference.sh <muster>: the manual page is troff without a fault, and has every command and option.
set -uo pipefail
muster=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

"$muster" man >"$scratch/muster.1" || fail "no manual page"
for wanted in '.SS muster bench lock' '.SS muster run' '.B \-\-participants' '.SH SEE ALSO'; do
  grep -qF -- "$wanted" "$scratch/muster.1" || fail "the manual page has no $wanted"
done
if command -v groff >/dev/null; then
  said=$(groff -man -ww -Tutf8 -z "$scratch/muster.1" 2>&1)
  [ -z "$said" ] || fail "$said"
else
  echo "skipped: whether the manual page is troff (package groff)"
fi

"$muster" completion csh 2>"$scratch/err" && fail "a shell that nobody knows"
grep -q 'no command "csh"' "$scratch/err" || fail "$(cat "$scratch/err")"
