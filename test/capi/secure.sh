#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# secure.sh <program> <folder> <muster, or -> <library>...: nothing that the caller's environment
# says is done by a program whose rights the caller has not, and nobody is told what stands in a
# file.
set -euo pipefail
program=$1
privileged=$2/privileged
secret=$2/secret
muster=$3
shift 3
fail() { echo "$*" >&2; exit 1; }

for library in "$@"; do
  undefined=$(nm -D --undefined-only "$library")
  ! grep -w getenv <<<"$undefined" || fail "$library: take secure_getenv"
  ! grep -wE 'strto(d|f|ld)|atof' <<<"$undefined" ||
    fail "$library: the program's locale says how a number is read: take std::from_chars"
done

printf 'root:secret\033]0;title\a\n' >"$secret"
ask() {
  env MUSTER_TOPOLOGY="$secret" MUSTER_WATCHDOG=$'often\033' HWLOC_SYNTHETIC="core:7 pu:1" "$@" 2>&1
}
said=$(ask "$program")
grep -q "MUSTER_TOPOLOGY: topology file" <<<"$said" || fail "no word of the file: $said"
! grep -q "root" <<<"$said" || fail "what stands in a file is told: $said"
said=$(ask env -u MUSTER_TOPOLOGY "$program")
grep -qF 'MUSTER_WATCHDOG="often\x1b" is ignored' <<<"$said" || fail "nothing or too much: $said"

for value in nan inf -1 1e-300 1e10 5s; do
  said=$(MUSTER_WATCHDOG=$value "$program" 2>&1)
  grep -qF "MUSTER_WATCHDOG=\"$value\" is ignored" <<<"$said" || fail "no word of $value: $said"
done
for value in '' 0 0.001 1e9; do
  said=$(MUSTER_WATCHDOG=$value "$program" 2>&1)
  ! grep MUSTER_WATCHDOG <<<"$said" || fail "$value is refused"
done

profiled() {
  MUSTER_PROFILE="$secret" "$1" explain --machine kunpeng920-2s -p 8 --map-by core 2>&1
}
if [ "$muster" != - ]; then
  ! said=$(profiled "$muster") || fail "a profile that is none is taken: $said"
  grep -q "MUSTER_PROFILE: .*line 1" <<<"$said" || fail "no word of the profile: $said"
  ! grep -q "root" <<<"$said" || fail "what stands in a profile is told: $said"
fi

# Of another group: root may take any, others one of their own.
group=$(id -G | tr ' ' '\n' | grep -vx "$(id -g)" | head -n 1) || [ "$(id -u)" != 0 ] || group=65534
[ -n "$group" ] || { echo "skipped: no group to give the program the rights of"; exit 77; }
privilege() {
  cp "$1" "$privileged"
  chgrp "$group" "$privileged"
  chmod 2755 "$privileged"
}
privilege "$program"
"$privileged" secure || { echo "skipped: the kernel gives no program other rights here"; exit 77; }
said=$(ask "$privileged")
expected=$(env -u MUSTER_TOPOLOGY -u MUSTER_WATCHDOG "$program" 2>&1)
rm "$privileged"
[ "$said" = "$expected" ] || fail "expected: $expected"$'\n'"said: $said"
if [ "$muster" != - ]; then
  privilege "$muster"
  said=$(profiled "$privileged") || fail "a privileged program reads a profile: $said"
  rm "$privileged"
fi
