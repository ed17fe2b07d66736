#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# install.sh <build> <prefix>: installs what was built, without debugging information, and says what
# programs need to find the library.
set -euo pipefail
build=$1 prefix=$2
cmake --install "$build" --prefix "$prefix" --strip >/dev/null
library=$(grep -m1 '/libmuster\.so\.[0-9.]*$' "$build/install_manifest.txt")
folder=$(dirname "$library")
files=$(grep -c '' "$build/install_manifest.txt")  # its last line has no end
echo "Installed: $files files in ${DESTDIR:-}$prefix (make uninstall removes them)"
[ -z "${DESTDIR:-}" ] || exit 0
# What the loader knows without its cache: folders of its own, and those of its configuration.
if /sbin/ldconfig -v -N 2>/dev/null | grep -q "^$(realpath "$folder"):"; then
  /sbin/ldconfig -p | grep -q "=> $folder/libmuster\.so" ||
    echo "Programs find libmuster after: sudo ldconfig"
else
  echo "Programs find libmuster with: export LD_LIBRARY_PATH=$folder"
fi
