#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# embedded.sh <source> <scratch> <cmake>: libmuster inside another project, and as an archive that
# is installed. Neither needs what the programs here need, and the other project keeps its settings.
set -euo pipefail
source=$1
scratch=$2
cmake=$3
consumer=$source/test/install/consumer
rm -rf "$scratch"
mkdir -p "$scratch/parent"
fail() { echo "$*" >&2; exit 1; }
# The same flags as this tree's: then ccache has it all.
release=(-DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS_RELEASE=-O2 -g1 -DNDEBUG"
  "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -g1 -DNDEBUG")
without=(--no-warn-unused-cli -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON
  -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON
  -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON)

echo "-- added to a project"
cat >"$scratch/parent/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES C CXX)
add_subdirectory($source muster)
if(DEFINED CMAKE_CXX_STANDARD OR CMAKE_POSITION_INDEPENDENT_CODE OR NOT TARGET muster::muster)
  message(FATAL_ERROR "the parent's settings are no longer its own")
endif()
get_property(targets DIRECTORY $source PROPERTY BUILDSYSTEM_TARGETS)
if(targets)
  message(FATAL_ERROR "the parent has to see these, too: \${targets}")
endif()
add_executable(consumer_c $consumer/consumer.c)
add_executable(consumer_cpp $consumer/consumer.cpp)
target_link_libraries(consumer_c PRIVATE muster::muster)
target_link_libraries(consumer_cpp PRIVATE muster::muster)
install(TARGETS consumer_c)
END
"$cmake" -S "$scratch/parent" -B "$scratch/plain" >/dev/null
for setting in 'CMAKE_BUILD_TYPE:STRING=' 'CMAKE_CXX_FLAGS_RELEASE:STRING=-O3 -DNDEBUG'; do
  grep -qx -- "$setting" "$scratch/plain/CMakeCache.txt" || fail "the parent lost $setting"
done
! grep -q '^BUILD_SHARED_LIBS' "$scratch/plain/CMakeCache.txt" || fail "the parent's libraries"
"$cmake" -S "$scratch/parent" -B "$scratch/built" "${release[@]}" "${without[@]}" >/dev/null
"$cmake" --build "$scratch/built" >/dev/null
"$scratch/built/consumer_c"
"$scratch/built/consumer_cpp"
programs=$(find "$scratch/built" -type f -perm -u+x ! -path '*CMakeFiles*' | wc -l)
[ "$programs" = 2 ] || fail "$programs programs and shared libraries were built: 2 are the parent's"
"$cmake" --install "$scratch/built" --prefix "$scratch/prefix" >/dev/null
[ "$(find "$scratch/prefix" -type f | wc -l)" = 1 ] || fail "it installs more than the parent's"
mkdir "$scratch/in_c"
cat >"$scratch/in_c/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(in_c LANGUAGES C)
add_subdirectory($source muster)
END
said=$("$cmake" -S "$scratch/in_c" -B "$scratch/built_c" 2>&1) && fail "it is added without C++"
grep -q 'LANGUAGES C CXX' <<<"$said" || fail "$said"

echo "-- an archive, installed"
rm -rf "$scratch/built" "$scratch/prefix"
"$cmake" -S "$source" -B "$scratch/archive" -DBUILD_SHARED_LIBS=OFF "${release[@]}" \
  "${without[@]}" >/dev/null
"$cmake" --build "$scratch/archive" >/dev/null
"$cmake" --install "$scratch/archive" --prefix "$scratch/prefix" >/dev/null
[ -z "$(find "$scratch/prefix" -name '*.so*')" ] || fail "a shared library"
"$cmake" -S "$consumer" -B "$scratch/found" -DCMAKE_PREFIX_PATH="$scratch/prefix" >/dev/null
"$cmake" --build "$scratch/found" >/dev/null
"$scratch/found/consumer_c"
"$scratch/found/consumer_cpp"
printf '%s\n' 'cmake_minimum_required(VERSION 3.22)' 'project(in_c LANGUAGES C)' \
  'find_package(muster REQUIRED)' >"$scratch/in_c/CMakeLists.txt"
said=$("$cmake" -S "$scratch/in_c" -B "$scratch/found_c" \
  -DCMAKE_PREFIX_PATH="$scratch/prefix" 2>&1) && fail "the archive is found without C++"
grep -q 'LANGUAGES C CXX' <<<"$said" || fail "$said"
pc=$(dirname "$(find "$scratch/prefix" -name muster.pc)")
PKG_CONFIG_PATH=$pc $CC "$consumer/consumer.c" -o "$scratch/by_pkg_config" \
  $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs muster)
"$scratch/by_pkg_config"
said=$("$cmake" -S "$source" -B "$scratch/both" -DBUILD_SHARED_LIBS=OFF -DMUSTER_MPI=ON 2>&1) &&
  fail "it configures what it cannot build"
grep -q 'BUILD_SHARED_LIBS has to be ON' <<<"$said" || fail "$said"

echo "-- without the programs"
"$cmake" -S "$source" -B "$scratch/library" -DMUSTER_PROGRAMS=OFF "${without[@]}" >/dev/null
rm -rf "$scratch"
