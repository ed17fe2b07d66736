#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# packages.sh <source> <scratch>: what cmake/packages.sh does where a package cannot be had: it asks
# apt once, says what is left out, and a second run touches no apt. No real apt is called.
set -euo pipefail
rm -rf "$2"
mkdir -p "$2/cmake" "$2/bin"
cp "$1/cmake/packages.sh" "$2/cmake/"
cd "$2"
calls=$PWD/calls
for command in apt-get dpkg-query dpkg; do
  printf '#!/bin/sh\necho "%s $*" >>%s\n[ "$1" = --print-architecture ] && echo amd64\n' \
    "$command" "$calls" >"bin/$command"  # all else fails: nothing is installed
done
printf '#!/bin/sh\necho 0\n' >bin/id  # root, so far as the script can see
chmod +x bin/*
run() {
  : >"$calls"
  PATH=$PWD/bin:$PATH bash cmake/packages.sh build test >output
}
fail() {
  echo "$1"
  cat output "$calls"
  exit 1
}

printf '%s\n' '# comment' 'build liba everything' 'test libb the tests' 'soak libc more' \
  >cmake/packages.txt
run
grep -q '^apt-get .*update' "$calls" || fail "no apt-get update"
grep -q '^apt-get .*install .*liba' "$calls" || fail "liba was not asked for"
! grep -q libc "$calls" || fail "libc is for another purpose"
grep -q 'libb  *left out: the tests' output || fail "what is left out is not said"
grep -q 'rm build/packages.failed' output || fail "how to try again is not said"

run
! grep -q '^apt-get' "$calls" || fail "the second run touches apt"
grep -q 'libb  *left out: the tests' output || fail "the second run does not say what is left out"

echo 'test libd the rest' >>cmake/packages.txt
run
grep -q '^apt-get .*install .*libd' "$calls" || fail "a new package was not asked for"
! grep -q '^apt-get .*install .*liba' "$calls" || fail "an old one was asked for again"

rm build/packages.failed
run
grep -q '^apt-get .*install .*liba' "$calls" || fail "not tried again"
