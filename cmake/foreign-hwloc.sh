#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# foreign-hwloc.sh <architecture>: builds hwloc for it from Debian's source, into
# build/foreign/<architecture>; nothing is installed. Debian's cross compilers come without it, and
# its own package would need the architecture added to this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
arch=$1
triplet=${arch/ppc64le/powerpc64le}-linux-gnu
here=$PWD/build/foreign
[ ! -e "$here/$arch/lib/pkgconfig/hwloc.pc" ] || exit 0
mkdir -p "$here/lists/partial" "$here/archives/partial" "$here/$arch.build"
cd "$here"
if ! ls hwloc-*/configure >/dev/null 2>&1; then
  echo "Fetching the source of hwloc (log: build/foreign/log)"
  # From where this machine has its own packages.
  apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Identifier: Packages' |
    awk -v name="$(. /etc/os-release; echo "$VERSION_CODENAME")" '
      $2 == name && $3 == "main" { print "deb-src", $0; exit }' >sources.list
  apt=(apt-get -q -o "Dir::Etc::sourcelist=$here/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$here/lists" -o "Dir::Cache::archives=$here/archives"
    -o "Dir::Cache::srcpkgcache=" -o "Dir::Cache::pkgcache=" -o APT::Sandbox::User=)
  { "${apt[@]}" update && "${apt[@]}" source --download-only hwloc; } >log 2>&1
  tar -xf hwloc_*.orig.tar.*
fi
echo "Building hwloc for $arch (log: build/foreign/$arch.log)"
cd "$arch.build"
{
  ../hwloc-*/configure --host="$triplet" --prefix="$here/$arch" --enable-static --disable-shared \
    --with-pic --disable-libxml2 --disable-pci --disable-libudev --disable-opencl --disable-cuda \
    --disable-nvml --disable-rsmi --disable-levelzero --disable-gl --disable-cairo --disable-plugins
  make -j"$(nproc)" -C include install
  make -j"$(nproc)" -C hwloc install
  mkdir -p "$here/$arch/lib/pkgconfig"
  cp hwloc.pc "$here/$arch/lib/pkgconfig"
} >"../$arch.log" 2>&1
