#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds every suite and runs all of them in one ctest. The closing line is ctest's own; what was
# skipped, and why, is counted just before it.
#
#   release     every test, the style checks and the installation
#   asan        tests labelled memory or concurrency, AddressSanitizer and UBSan
#   tsan        tests labelled concurrency, ThreadSanitizer
#   tsan-clang  those labelled races, clang's ThreadSanitizer
#   aarch64     tests labelled concurrency, cross-compiled, under qemu-user
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
suites=$top/build/test
rm -rf "$suites"
mkdir -p "$suites"
testfile=$suites/CTestTestfile.cmake

# A suite that cannot be built here stays in the list, as a skipped test with its reason.
leave_out() {
  echo "  left out: $1 ($2)"
  cat >>"$testfile" <<END
add_test($1 sh -c "echo 'skipped: $2'; exit 77")
set_tests_properties($1 PROPERTIES SKIP_RETURN_CODE 77)
END
}

why_not_aarch64() {
  local lib=/usr/lib/aarch64-linux-gnu
  [ "$(uname -m)" = x86_64 ] || { echo "only from x86-64; this is $(uname -m)"; return; }
  command -v aarch64-linux-gnu-g++ >/dev/null || { echo "package g++-aarch64-linux-gnu"; return; }
  command -v qemu-aarch64 >/dev/null || { echo "package qemu-user"; return; }
  [ -e $lib/pkgconfig/hwloc.pc ] || { echo "package libhwloc-dev:arm64"; return; }
  [ -e $lib/libstdc++.so.6 ] || { echo "package libstdc++6:arm64"; return; }
}

why_not_tsan_clang() {
  command -v clang++ >/dev/null || { echo "package clang"; return; }
  echo 'int main() {}' | clang++ -fsanitize=thread -x c++ - -o "$suites/probe" 2>/dev/null ||
    echo "package libclang-rt-dev"
}

for preset in release asan tsan tsan-clang aarch64; do
  reason=
  [ $preset = aarch64 ] && reason=$(why_not_aarch64)
  [ $preset = tsan-clang ] && reason=$(why_not_tsan_clang)
  if [ -n "$reason" ]; then
    leave_out $preset "$reason"
    continue
  fi
  cmake/build.sh $preset
  echo "subdirs(\"$top/build/$preset\")" >>"$testfile"
  # An empty suite would pass in silence: labels gone wrong are a failure.
  if ctest --test-dir build/$preset -N | grep -q '^Total Tests: 0'; then
    echo "add_test($preset.has-tests false)" >>"$testfile"
  fi
done

# ctest prints its verdict and then the lists; here the verdict comes last.
status=0
ctest --test-dir "$suites" -j "$(nproc)" --output-on-failure --no-label-summary \
  --no-tests=error 2>&1 |
  awk '/^[0-9]+% tests passed/ { verdict = $0; next }
       /^Total Test time/ { time = $0; next }
       /^Errors while running CTest|^Output from these|^Use "--rerun/ { next }
       { print; fflush() }
       END { print verdict > "'"$suites"'/verdict"; print time > "'"$suites"'/time" }' || status=$?

awk -f test/skipped.awk "$suites/Testing/Temporary/LastTest.log"
cat "$suites/time" "$suites/verdict"
exit $status
