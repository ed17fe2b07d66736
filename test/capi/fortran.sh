#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# fortran.sh <source> <scratch> <library>: the module for Fortran, its example, and that its options
# are those of C.
set -euo pipefail
source=$1 scratch=$2/fortran library=$3
command -v gfortran >/dev/null || {
  echo "skipped: the module for Fortran (package gfortran)"
  exit 77
}
mkdir -p "$scratch"
cat >"$scratch/options.f90" <<'END'
program options
  use, intrinsic :: iso_c_binding
  use muster
  type(muster_options) :: defaults
  defaults%first_episode = 7
  call muster_options_init(defaults)
  if (c_sizeof(defaults) /= defaults%size) error stop "another size"
  if (defaults%participants /= 1 .or. defaults%first_episode /= 0) error stop "other places"
end program
END
for program in "$source/examples/threads.f90" "$scratch/options.f90"; do
  gfortran -std=f2018 -Wall -Wextra -Werror -fopenmp -J"$scratch" \
    "$source/include/muster/muster.f90" "$program" -o "$scratch/program" \
    "$library" -Wl,-rpath,"$(dirname "$library")"
  "$scratch/program"
done
