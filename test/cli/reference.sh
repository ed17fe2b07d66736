#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# reference.sh <muster>: the manual page is troff without a fault, has every command and option, and
# shells complete by the scripts. What a shell that is not here would say is printed as left out.
set -uo pipefail
muster=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
without=()

"$muster" man >"$scratch/muster.1" || fail "no manual page"
for wanted in '.SS muster bench lock' '.SS muster run' '.B \-\-participants' '.SH SEE ALSO'; do
  grep -qF -- "$wanted" "$scratch/muster.1" || fail "the manual page has no $wanted"
done
if command -v groff >/dev/null; then
  said=$(groff -man -ww -Tutf8 -z "$scratch/muster.1" 2>&1)
  [ -z "$said" ] || fail "$said"
else
  without+=(groff)
fi

"$muster" completion bash >"$scratch/bash" || fail "no completion for bash"
# completes <expected word> <words so far>...
completes() {
  local expected=$1
  shift
  # shellcheck disable=SC2016
  bash -c 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _muster
    printf "%s\n" "${COMPREPLY[@]}"' "$scratch/bash" "$@" >"$scratch/completed"
  grep -qxF -- "$expected" "$scratch/completed" ||
    fail "$* gives $(tr '\n' ' ' <"$scratch/completed"), not $expected"
}
completes bench muster be
completes barrier muster bench b
completes --participants muster bench barrier --part
completes --participants muster bench barrier --seconds 3 --part
completes --machine muster sim lock --m
completes reproduce muster sim ''
for shell in zsh fish; do
  "$muster" completion $shell >"$scratch/$shell" || fail "no completion for $shell"
  grep -q 'muster bench lock' "$scratch/$shell" || fail "$shell does not know bench lock"
  if command -v $shell >/dev/null; then
    $shell -n "$scratch/$shell" || fail "$shell cannot read it"
  else
    without+=("$shell")
  fi
done
"$muster" completion csh 2>"$scratch/err" && fail "a shell that nobody knows"
grep -q 'no command "csh"' "$scratch/err" || fail "$(cat "$scratch/err")"
echo "left out, since they are not here: ${without[*]:-nothing}"
