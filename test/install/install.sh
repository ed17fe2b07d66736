#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# install.sh <build> <scratch> <cmake>: installs the build into a prefix, and builds and runs a
# C and a C++ program against what is there, found by find_package and by pkg-config.
set -euo pipefail
build=$1
scratch=$2
cmake=$3
here=$(cd "$(dirname "$0")" && pwd)
prefix=$scratch/prefix
rm -rf "$prefix" "$scratch/consumer"
fail() { echo "$*" >&2; exit 1; }

"$cmake" --install "$build" --prefix "$prefix" >/dev/null
library=$(find "$prefix" -name libmuster.so.0.1)
[ -n "$library" ] || fail "no libmuster.so.0.1 was installed"
libdir=$(dirname "$library")
export LD_LIBRARY_PATH=$libdir

echo "-- shared object: name, and nothing exported but the C functions"
objdump -p "$library" | grep -E '^ *SONAME +libmuster\.so\.0\.1$' || fail "another SONAME"
exported=$(nm -D --defined-only "$library" | awk '{ print $3 }')
grep -q '^muster_' <<<"$exported" || fail "it exports no function"
strangers=$(grep -v '^muster_' <<<"$exported" || true)
[ -z "$strangers" ] || fail "it also exports: $strangers"

echo "-- binary"
"$prefix/bin/muster" --version
"$prefix/bin/muster" check --algorithms mcs --participants 2 >/dev/null ||
  fail "muster check does not find its program"
if [ -e "$libdir/libmuster_run.so" ]; then
  said=$("$prefix/bin/muster" run --mutex cna -- sh -c 'echo $LD_PRELOAD')
  [ "$said" = "$(realpath "$libdir/libmuster_run.so")" ] || fail "muster run preloads $said"
fi

echo "-- documents, examples, licence; and no word of where it was built"
for file in LICENSE README.md doc/mpi.md examples/threads.c; do
  [ -n "$(find "$prefix/share/doc" -path "*/$file")" ] || fail "no $file in $prefix/share/doc"
done
for page in man1/muster.1 man3/muster.3 man3/muster_barrier_wait.3 man7/muster.7; do
  [ -s "$prefix/share/man/$page" ] || fail "no $page in $prefix/share/man"
  ! command -v groff >/dev/null || [ -z "$(cd "$prefix/share/man" &&
    groff -man -ww -Tutf8 -z "$page" 2>&1)" ] || fail "$page is not whole"
done
functions=$(sed -nE 's/^(MUSTER_API|static __inline) .*[ *](muster_[a-z_]*)\(.*/\2/p' \
  "$prefix"/include/muster/*.h)
for name in $functions; do
  [ -s "$prefix/share/man/man3/$name.3" ] || fail "no manual page of $name()"
  grep -q "$name(" "$prefix/share/man/man3/muster.3" || fail "muster.3 has no $name()"
done
source=$(cd "$here/../.." && pwd)
while IFS= read -r file; do
  ! grep -qF "$source" "$file" || fail "$file names $source"
done < <(find "$prefix" -type f -not -path '*/modulefiles/*')  # these name the prefix, in there

echo "-- module files: what they name is there"
[ -n "$(find "$prefix/share/modulefiles/muster" -type f)" ] || fail "no module file"
for module in "$prefix"/share/modulefiles/*/*; do
  grep -qx "set prefix \"$prefix\"" "$module" || fail "$module does not name $prefix"
  while IFS= read -r file; do
    [ -e "$prefix/$file" ] || fail "$module: no $file"
  done < <(sed -n 's/^prepend-path .*"$prefix\(.*\)"$/\1/p' "$module")
done

echo "-- headers alone, as strictly as a user may compile them"
printf '#include <muster/muster.h>\nint main(void) { return 0; }\n' >"$scratch/alone.c"
printf '#include <muster/muster.hpp>\nint main() {}\n' >"$scratch/alone.cpp"
strict="-Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only -I$prefix/include"
$CC -std=c11 $strict "$scratch/alone.c"
$CC -ansi $strict "$scratch/alone.c"
$CXX -std=c++17 $strict "$scratch/alone.cpp"
if command -v clang++ >/dev/null; then
  clang -std=c11 $strict "$scratch/alone.c"
  clang++ -std=c++17 $strict "$scratch/alone.cpp"
else
  echo "skipped: the headers under clang (package clang)"
fi
for wanted in 'muster 14 17' 'mutex 14 17' 'lock 17 20'; do
  read -r header standard needed <<<"$wanted"
  said=$(echo "#include <muster/$header.hpp>" | $CXX -std=c++$standard -x c++ -fsyntax-only \
    -I"$prefix/include" - 2>&1) && fail "$header.hpp: compiled as C++$standard"
  grep -q "hpp is C++$needed" <<<"$said" || fail "$said"
  [ "$(grep -c 'error:' <<<"$said")" = 1 ] || fail "$header.hpp: more than one error: $said"
done

echo "-- find_package"
# The target raises the standard of who asks for an older one than its headers want.
for standard in "" -DCMAKE_CXX_STANDARD=14; do
  "$cmake" -S "$here/consumer" -B "$scratch/consumer" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_BUILD_TYPE=Release $standard >/dev/null
  "$cmake" --build "$scratch/consumer" >/dev/null
  "$scratch/consumer/consumer_c"
  "$scratch/consumer/consumer_cpp"
done
said=$("$cmake" -S "$here/consumer" -B "$scratch/consumer" "-Dcomponents=COMPONENTS;none" 2>&1) &&
  fail "find_package: it has a component none"
grep -q 'it has no component none' <<<"$said" || fail "$said"

echo "-- pkg-config"
export PKG_CONFIG_PATH=$libdir/pkgconfig
flags=$(pkg-config --cflags --libs muster)
$CC -std=c11 "$here/consumer/consumer.c" -o "$scratch/by_pkg_config_c" $flags
$CXX "$here/consumer/consumer.cpp" -o "$scratch/by_pkg_config_cpp" $flags
"$scratch/by_pkg_config_c"
"$scratch/by_pkg_config_cpp"

echo "-- ThreadSanitizer, which sees the program and not the library"
if echo 'int main() {}' | $CXX -fsanitize=thread -x c++ - -o "$scratch/races" 2>/dev/null &&
  "$scratch/races"; then
  $CXX -std=c++20 -g -fsanitize=thread "$here/consumer/races.cpp" -o "$scratch/races" $flags
  "$scratch/races"
  said=$("$scratch/races" unguarded 2>&1) && fail "it has not seen a race"
  grep -q 'data race' <<<"$said" || fail "$said"
else
  echo "skipped: the compiler has no ThreadSanitizer"
fi

if [ -e "$prefix/include/muster/memory.h" ]; then
  echo "-- memory on the servers' NUMA node: linked, and preloaded after a move"
  for header in memory.h memory.hpp; do
    printf '#include <muster/%s>\nint main(void) { return 0; }\n' $header >"$scratch/alone.cpp"
    $CXX -std=c++20 $strict "$scratch/alone.cpp"
  done
  printf '#include <muster/memory.h>\nint main(void) { return 0; }\n' >"$scratch/alone.c"
  $CC -std=c11 $strict "$scratch/alone.c"
  $CC -std=c11 "$here/consumer/memory.c" -o "$scratch/memory" \
    $(pkg-config --cflags --libs muster-memory)
  "$scratch/memory" linked
else
  echo "skipped: memory on the servers' NUMA node (package libjemalloc-dev)"
fi

echo "-- moved: neither file names the prefix it was installed to"
mv "$prefix" "$prefix-moved"
export LD_LIBRARY_PATH=${libdir/"$prefix"/"$prefix-moved"}
export PKG_CONFIG_PATH=$LD_LIBRARY_PATH/pkgconfig
include=$(pkg-config --variable=includedir muster)
[ -e "$include/muster/muster.h" ] || fail "pkg-config points to where it was: $include"
preload=$LD_LIBRARY_PATH/libmuster-malloc.so
if [ -e "$preload" ]; then
  $CC -std=c11 -DPRELOADED "$here/consumer/memory.c" -o "$scratch/preloaded"
  env -u LD_LIBRARY_PATH LD_PRELOAD="$preload" MUSTER_MEMORY_SERVERS=0 \
    "$scratch/preloaded" preloaded
fi
rm -rf "$prefix-moved"

echo "-- installed and removed as make does"
cp -r "$build/install_manifest.txt" "$scratch/manifest"
"$here/../../cmake/install.sh" "$build" "$prefix" | tee "$scratch/said"
grep -q "LD_LIBRARY_PATH=$prefix" "$scratch/said" || fail "it does not say how programs find it"
"$prefix/bin/muster" --version
"$prefix/bin/muster" check --algorithms mcs --participants 2 >/dev/null ||
  fail "muster check does not find its program"
"$here/../../cmake/uninstall.sh" "$build"
[ ! -e "$prefix" ] || fail "left: $(find "$prefix" -type f | head -3)"
mv "$scratch/manifest" "$build/install_manifest.txt"
