#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vm.sh <build tree> <init> <program>[,<argument>...]...: boots Debian's cloud kernel on a machine
# of four NUMA nodes that is not there (qemu, emulated: no KVM, no root), straight into <init>,
# which runs the programs; +<program> and +<library> are only there. Exits with 77 where qemu or the
# kernel cannot be had.
#
# Functional evidence only: an emulator's times mean nothing.
set -euo pipefail
build=$1 init=$2
shift 2
work=$build/test/numa/vm
log=$work/serial.log

skip() { echo "skipped: $1"; exit 77; }
[ "$(uname -m)" = x86_64 ] || skip "the four-node machine is x86-64; this is $(uname -m)"
command -v qemu-system-x86_64 >/dev/null || skip "package qemu-system-x86"
command -v cpio >/dev/null || skip "package cpio"

# The kernel is unpacked, never installed: this machine keeps its own.
kernel_dir=${MUSTER_CLOUD_KERNEL:-$build/cloud-kernel}
kernel() { find "$kernel_dir" /boot -name 'vmlinuz-*-cloud-amd64' 2>/dev/null | sort -V | tail -1; }
if [ -z "$(kernel)" ]; then
  command -v apt-get >/dev/null || skip "no apt-get to download linux-image-cloud-amd64 with"
  package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
    awk '/Depends: linux-image/ { print $2; exit }')
  [ -n "$package" ] || skip "package linux-image-cloud-amd64 (apt does not know it)"
  mkdir -p "$kernel_dir"
  (
    cd "$kernel_dir"
    apt-get -q download "$package" && dpkg-deb --fsys-tarfile ./"$package"_*.deb |
      tar -x --wildcards './boot/vmlinuz-*'
    rm -f ./*.deb
  ) >"$kernel_dir/download.log" 2>&1 || skip "package linux-image-cloud-amd64 (no download)"
fi
kernel=$(kernel)
[ -n "$kernel" ] || skip "package linux-image-cloud-amd64 (no kernel inside)"

# What Open MPI's launcher and ranks load by name, of what a job on one host needs.
parts_of_openmpi() {
  local folder
  folder=$(ompi_info --path pkglibdir | sed -n 's/.*: *//p')
  printf "+$folder/mca_%s.so\n" allocator_basic allocator_bucket bml_r2 btl_self btl_vader \
    coll_basic coll_libnbc coll_tuned errmgr_default_app errmgr_default_hnp ess_hnp ess_pmi \
    grpcomm_direct iof_hnp odls_default oob_tcp plm_isolated pmix_ext3x pml_ob1 \
    reachable_weighted regx_fwd rmaps_round_robin rml_oob routed_direct rtc_hwloc schizo_ompi \
    shmem_mmap state_app state_hnp
}
for command in "$@"; do
  if [[ $command == +*/mpirun.openmpi ]]; then
    mapfile -t parts < <(parts_of_openmpi)
    set -- "$@" "${parts[@]}"
  fi
done

# The root file system: the programs and the libraries that they name.
begin=$SECONDS
rm -rf "$work"
root=$work/root
mkdir -p "$root"/{bin,dev,proc,sys,tmp}
install_stripped() { cp -L "$1" "$2"; strip --strip-debug "$2" 2>/dev/null || true; }
install_stripped "$init" "$root/init"
files=("$init")
commands=0
for command in "$@"; do
  program=${command%%,*}
  program=${program#+}
  files+=("$program")
  case $program in
    "$build"/*/mca_*.so) folder=tmp/.openmpi/components ;; # where `make install-openmpi` puts it
    "$build"/*.so) folder=lib ;;
    "$build"/*) folder=bin ;;
    *) folder=$(dirname "$program") ;; # the system's own stays where it is
  esac
  mkdir -p "$root/$folder"
  install_stripped "$program" "$root/$folder/$(basename "$program")"
  [[ $command == +* ]] && continue
  commands=$((commands + 1))
  arguments=
  [[ $command == *,* ]] && arguments=" ${command#*,}"
  echo "/bin/$(basename "$program")${arguments//,/ }" >>"$root/commands"
done
ldd "${files[@]}" | awk '/=> \// { print $3 } /^\t\/lib/ { print $1 }' | sort -u |
  while read -r library; do
    case $library in
      "$build"/*) target=/lib/x86_64-linux-gnu/$(basename "$library") ;;
      *) target=$library ;;
    esac
    mkdir -p "$root$(dirname "$target")"
    install_stripped "$library" "$root$target"
  done
(cd "$root" && find . | cpio -o -H newc --quiet) >"$work/initramfs"

# Two packages of two NUMA nodes of two CPUs; CPU numbers alternate between a package's NUMA nodes,
# so that whoever takes neighbours for close is found out.
machine=(-smp 8,sockets=2,cores=4,threads=1 -m 1024M)
for numa in 0 1 2 3; do
  machine+=(-object "memory-backend-ram,id=memory$numa,size=256M"
    -numa "node,nodeid=$numa,memdev=memory$numa")
done
for cpu in 0 1 2 3 4 5 6 7; do
  socket=$((cpu / 4))
  machine+=(-numa
    "cpu,node-id=$((socket * 2 + cpu % 2)),socket-id=$socket,core-id=$((cpu % 4)),thread-id=0")
done
for distance in 0,1,12 0,2,20 0,3,22 1,2,22 1,3,20 2,3,12; do
  IFS=, read -r from to value <<<"$distance"
  machine+=(-numa "dist,src=$from,dst=$to,val=$value")
done

# One host thread for all CPUs: with one each, a waiting CPU's spinning starves the others.
timeout "${MUSTER_VM_TIMEOUT:-1500}" qemu-system-x86_64 \
  -accel tcg,thread=single -cpu max -nodefaults -no-user-config -display none -serial stdio \
  -no-reboot "${machine[@]}" -kernel "$kernel" -initrd "$work/initramfs" \
  -append "console=ttyS0 quiet panic=-1 numa_balancing=disable tsc=unstable" </dev/null 2>&1 |
  tr -d '\r' >"$log" || true
cat "$log"
echo "$(basename "$kernel"): $((SECONDS - begin)) s in all"
grep -q "^vm: $commands commands, all passed$" "$log"
