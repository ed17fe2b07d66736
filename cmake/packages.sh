#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# packages.sh <purpose>...: installs what packages.txt lists for these purposes and is not there.
# Where that cannot be done it says what is left out, and the build goes on with what there is.
# When nothing is missing it asks dpkg only, and is done. What could not be had is remembered in
# build/packages.failed and not asked for again: a second run touches no apt. Remove that file, or
# `make clean`, to try once more.
set -uo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
log=$top/build/packages.log
failed=$top/build/packages.failed

# Prints "<purpose> <package> <what>" for each listed package of these purposes not installed.
missing() {
  local purpose package what status host
  host=$(dpkg --print-architecture)
  while read -r purpose package what; do
    [[ " $* " == *" $purpose "* ]] || continue
    # The cross suite needs an x86-64 host: on aarch64 the release suite is that suite.
    [[ $what == *aarch64* && $host != amd64 ]] && continue
    status=$(dpkg-query -W -f='${db:Status-Status} ' "$package" 2>/dev/null)
    [[ $status == *"installed "* && $status != *"not-installed "* ]] ||
      echo "$purpose $package $what"
  done < <(grep -v '^#' "$top/cmake/packages.txt")
}

if ! command -v dpkg-query >/dev/null; then
  echo "This is no Debian: whatever cmake/packages.txt lists has to be there already."
  exit 0
fi
# Of those the ones that were not asked for in vain before.
hopeful() {
  missing "$@" | awk -v failed="$failed" '
    BEGIN { while ((getline line < failed) > 0) known[line] = 1 }
    !($2 in known)'
}

lacking=$(missing "$@")
[ -n "$lacking" ] || exit 0
wanted=$(hopeful "$@")

as_root=none
if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root="sudo -n"
fi

apt() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 "$@" \
    >>"$log" 2>&1 </dev/null
}

if [ "$as_root" != none ] && [ -n "$wanted" ]; then
  mkdir -p "$top/build"
  : >"$log"
  echo "Installing $(wc -l <<<"$wanted") Debian packages (log: build/packages.log)"
  if [[ $wanted == *:arm64* && $(dpkg --print-foreign-architectures) != *arm64* ]]; then
    $as_root dpkg --add-architecture arm64
  fi
  apt update
  # One purpose at a time, so that what a later one lacks does not stop an earlier one.
  for purpose in "$@"; do
    mapfile -t packages < <(hopeful "$purpose" | awk '{ print $2 }')
    [ ${#packages[@]} = 0 ] && continue
    apt install -y --no-install-recommends "${packages[@]}" && continue
    for package in "${packages[@]}"; do
      apt install -y --no-install-recommends "$package"
    done
  done
  hopeful "$@" | awk '{ print $2 }' >"$failed.new"
  cat "$failed.new" >>"$failed"
  rm "$failed.new"
fi

lacking=$(missing "$@")
if [ -n "$lacking" ]; then
  [ "$as_root" = none ] && echo "Neither root nor sudo without a password: installing nothing."
  echo "Going on without these packages:"
  while read -r _ package what; do
    printf '  %-22s left out: %s\n' "$package" "$what"
  done <<<"$lacking"
  [ "$as_root" = none ] || echo "To try to install them again: rm build/packages.failed"
fi
exit 0
