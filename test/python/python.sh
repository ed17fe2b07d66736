#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# python.sh <source> <scratch> <muster>: the wheel as pip makes it, installed to a folder, and its
# tests with each python3 here that can take it.
set -euo pipefail
source=$1 scratch=$2
export MUSTER=$3 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
skip() { echo "skipped: $*"; exit 77; }
can_build() {
  "$1" -c 'import setuptools, wheel, importlib.util, os, sysconfig
assert importlib.util.find_spec("pip")
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null
}
for python in /usr/bin/python3 python3; do
  ! can_build $python || break
done
can_build $python ||
  skip "the wheel (packages python3-dev, python3-pip, python3-setuptools, python3-wheel)"

# CPython's own tests of multiprocessing.Barrier, with ours in its place. One that lets everybody
# through at once has to fail them: else they did not run ours.
cpython_tests() {
  local module=$2
  $1 -c "import test.$module" 2>/dev/null || {
    echo "skipped: $module with $1 (CPython's testsuite)"
    return
  }
  # From 3.12 on a package.
  ! $1 -c "import test.$module.test_processes" 2>/dev/null || module+=.test_processes
  run_tests "$1" "$module" pass && grep -E '^Ran [1-9]' "$scratch/said" ||
    { cat "$scratch/said"; exit 1; }
  ! run_tests "$1" "$module" "def wait(self, timeout=None): return 0" .test_barrier ||
    { echo "$module passes with a barrier that lets all through" >&2; exit 1; }
}
run_tests() {  # python, module, body of the class in multiprocessing.Barrier's place, which test
  mkdir -p "$scratch/instead"
  cat >"$scratch/instead/sitecustomize.py" <<END
import multiprocessing, muster
class Barrier(muster.Barrier):
    $3
multiprocessing.Barrier = Barrier
END
  PYTHONPATH=$scratch/site:$scratch/instead $1 -m unittest -v "test.$2" \
    -k "WithProcessesTestBarrier${4:-}" >"$scratch/said" 2>&1
}

# A copy, since setuptools leaves files beside what it builds; kept, for the next time. With times:
# what a user's own build has left there is not newer than what has changed since.
tree=$scratch/source
mkdir -p "$tree"
for folder in python src include CMakeLists.txt; do
  cp -ru --preserve=timestamps "$source/$folder" "$tree/"
done
rm -rf "$scratch/wheel" "$scratch/site"
$python -m pip wheel --quiet --no-index --no-build-isolation --no-deps -w "$scratch/wheel" \
  "$tree/python"
ls "$scratch/wheel"
needed=$(unzip -p "$scratch"/wheel/*.whl 'muster/_barrier*' >"$scratch/module.so" &&
  objdump -p "$scratch/module.so" | awk '$1 == "NEEDED" { print $2 }' |
  grep -vE '^(libc|libm|libstdc\+\+|libgcc_s|ld-linux.*|libpthread)\.so' || true)
[ -z "$needed" ] || { echo "the module needs $needed" >&2; exit 1; }
$python -m pip install --quiet --no-index --no-deps --target "$scratch/site" "$scratch"/wheel/*.whl
cd "$scratch"
for other in $(printf '%s\n' $python python3 | sort -u); do
  $other -c 'import sys, sysconfig
sys.exit(sys.version_info < (3, 9) or sysconfig.get_config_var("Py_GIL_DISABLED") == 1)' || continue
  $other --version
  PYTHONPATH=$scratch/site $other "$source/test/python/test_muster.py"
  for way in fork spawn forkserver; do
    cpython_tests $other test_multiprocessing_$way
  done
done
# A wheel of its own: the interpreter has no limited API.
free_threaded=
for other in python3.13t python3.14t python3.15t; do
  can_build $other || continue
  free_threaded=$other
  rm -rf "$scratch/wheel-t" "$scratch/site-t"
  $other -m pip wheel --quiet --no-index --no-build-isolation --no-deps -w "$scratch/wheel-t" \
    "$tree/python"
  $other -m pip install --quiet --no-index --no-deps --target "$scratch/site-t" \
    "$scratch"/wheel-t/*.whl
  PYTHONPATH=$scratch/site-t $other "$source/test/python/test_muster.py"
done
[ -n "$free_threaded" ] || echo "skipped: a free-threaded CPython (there is none)"
