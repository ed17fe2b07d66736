#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# packages.sh <purpose>...: installs what packages.txt lists for these purposes and is not there,
# and says so before. It upgrades nothing, removes nothing and adds no architecture: a package that
# would need that is left out, with the reason. Where nothing can be installed the build goes on
# with what there is.
#
#   MUSTER_INSTALL=no   installs nothing
#   MUSTER_INSTALL=all  upgrades and adds an architecture where a package needs it; still removes
#                       nothing
#
# When nothing is missing it asks dpkg only, and is done. What could not be had is remembered in
# build/packages.failed and not asked for again: a second run touches no apt. Remove that file, or
# `make clean`, to try once more.
set -uo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
log=$top/build/packages.log
failed=$top/build/packages.failed
install=${MUSTER_INSTALL:-yes}
case $install in
  yes | no | all) ;;
  *) echo "MUSTER_INSTALL=$install: it is yes, no or all." >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "This is no Debian: whatever cmake/packages.txt lists has to be there already."
  exit 0
fi

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
# Of those the ones that were not asked for in vain before.
hopeful() {
  missing "$@" | awk -v failed="$failed" -v install="$install" '
    BEGIN { while ((getline line < failed) > 0) { split(line, word); known[word[1]] = word[2] } }
    !($2 in known) || (install == "all" && known[$2] == "yes")'
}

lacking=$(missing "$@")
[ -n "$lacking" ] || exit 0

as_root=none
if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root="sudo -n"
fi

apt() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 "$@" </dev/null
}

# try <package>...: 0: installed. 1: cannot be had. 2: only by what nobody asked for (${unasked}).
try() {
  local plan new
  unasked=
  if [ "$install" != all ] && [[ " $* " == *:arm64* ]] &&
    [[ $(dpkg --print-foreign-architectures) != *arm64* ]]; then
    unasked="needs the architecture arm64"
    return 2
  fi
  plan=$(apt -s install --no-install-recommends "$@" 2>>"$log") || return 1
  unasked=$(awk '/^Remv / { removed = removed " " $2 }
    /^Inst [^ ]+ \[/ { upgraded = upgraded " " $2 }
    END { if (removed) printf "removes%s; ", removed
          if (upgraded) printf "upgrades%s; ", upgraded }' <<<"$plan")
  unasked=${unasked%; }
  case $install:$unasked in *:*removes* | yes:?*) return 2 ;; esac
  new=$(awk '/^Inst / { print $2 }' <<<"$plan" | paste -sd ' ')
  echo "Installing: $new${unasked:+ ($unasked)}" | fold -s -w 100
  apt install -y --no-install-recommends --no-remove "$@" >>"$log" 2>&1 || return 1
}

if [ "$install" != no ] && [ "$as_root" != none ] && [ -n "$(hopeful "$@")" ]; then
  mkdir -p "$top/build"
  : >"$log"
  echo "Asking apt for $(hopeful "$@" | wc -l) Debian packages (log: build/packages.log)"
  if [ "$install" = all ] && [[ $(hopeful "$@") == *:arm64* ]] &&
    [[ $(dpkg --print-foreign-architectures) != *arm64* ]]; then
    echo "Adding the architecture arm64"
    $as_root dpkg --add-architecture arm64
  fi
  apt update >>"$log" 2>&1
  # One purpose at a time, so that what a later one lacks does not stop an earlier one.
  for purpose in "$@"; do
    mapfile -t packages < <(hopeful "$purpose" | awk '{ print $2 }')
    [ ${#packages[@]} = 0 ] && continue
    try "${packages[@]}" && continue
    for package in "${packages[@]}"; do
      try "$package"
      case $? in
        1) echo "$package all" ;;  # MUSTER_INSTALL=all would not help
        2) echo "$package $install $unasked" ;;
      esac >>"$failed.new"
    done
  done
  [ ! -e "$failed.new" ] || { cat "$failed.new" >>"$failed"; rm "$failed.new"; }
fi

lacking=$(missing "$@")
if [ -n "$lacking" ]; then
  [ "$install" != no ] || echo "MUSTER_INSTALL=no: installing nothing."
  [ "$as_root" = none ] && echo "Neither root nor sudo without a password: installing nothing."
  echo "Going on without these packages:"
  while read -r _ package what; do
    why=$(awk -v package="$package" '$1 == package { sub(/^[^ ]+ [^ ]+ ?/, ""); why = $0 }
      END { print why }' "$failed" 2>/dev/null)
    printf '  %-22s left out: %s%s\n' "$package" "$what" "${why:+ ($why)}"
  done <<<"$lacking"
  [ "$install" != all ] && grep -q '^[^ ]* yes ' "$failed" 2>/dev/null &&
    echo "To have also what needs an upgrade or an architecture: MUSTER_INSTALL=all"
  [ "$as_root" = none ] || echo "To try to install them again: rm build/packages.failed"
fi
exit 0
