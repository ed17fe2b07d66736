#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# tidy.sh <source> <build>: clang-tidy over every source the build compiles and, through them, our
# headers. Not over the tests themselves: they run under sanitizers, and are half of the text.
# A source is looked at again only when it, what it includes or the settings have changed: what was
# clean before is known by a hash, kept in the user's cache directory.
set -euo pipefail
source_dir=$1
build_dir=$2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/muster/tidy
command -v clang-tidy >/dev/null || { echo "skipped: package clang-tidy"; exit 77; }
mkdir -p "$cache" "$build_dir/tidy"
cd "$source_dir"

# It must object to a planted offence, or its silence means nothing.
planted=$build_dir/tidy/planted.cpp
echo 'int planted(const char* a) { return *(int*)(a + 1); }' >"$planted"
if clang-tidy --quiet --config-file=.clang-tidy "$planted" -- -std=c++20 >/dev/null 2>&1; then
  echo "clang-tidy accepts a planted offence" >&2
  exit 1
fi

settings=$({ clang-tidy --version; cat .clang-tidy; } | sha256sum)
export build_dir cache settings source_dir

check_one() {
  local file=$1 hash output
  # The preprocessed text, comments too, stands for the source and everything it includes.
  hash=$({ echo "$settings"; preprocessed "$file"; } | sha256sum | cut -d' ' -f1)
  [ -e "$cache/$hash" ] && return 0
  if output=$(clang-tidy --quiet -p "$build_dir" "$file" 2>/dev/null); then
    touch "$cache/$hash"
  else
    echo "$output"
    return 1
  fi
}
preprocessed() {
  local command
  command=$(awk -v file="$1" '
    /"command":/ { command = $0 }
    /"file":/ && index($0, "\"" file "\"") { print command; exit }' \
    "$build_dir/compile_commands.json" |
    sed -e 's/^ *"command": "//' -e 's/",$//' -e 's/\\"/"/g' -e 's/ -o [^ ]*//' \
      -e 's/ -c / -E -C /')
  (cd "$build_dir" && eval "$command" 2>/dev/null) | sed "s#$source_dir##g; s#$build_dir##g"
}
export -f check_one preprocessed

sed -n "s#^ *\"file\": \"\($source_dir/[^\"]*\)\".*#\1#p" "$build_dir/compile_commands.json" |
  grep -v -e "^$build_dir/" -e "^$source_dir/test/" | sort -u >"$build_dir/tidy/sources"
xargs -P "$(nproc)" -I{} bash -c 'set -euo pipefail; check_one {}' <"$build_dir/tidy/sources"
echo "$(wc -l <"$build_dir/tidy/sources") sources"
