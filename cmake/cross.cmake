# SPDX-License-Identifier: BSD-3-Clause
# Debian's cross compilers: MUSTER_ARCH, from the preset, is aarch64, s390x, riscv64 or ppc64le.
# Tests run under qemu-user. Packages: g++-<architecture>-linux-gnu, qemu-user, hwloc (for aarch64
# libhwloc-dev:arm64, after dpkg --add-architecture; others: cmake/foreign-hwloc.sh builds it).
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MUSTER_ARCH)
string(REPLACE ppc64le powerpc64le triplet ${MUSTER_ARCH}-linux-gnu)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${MUSTER_ARCH})
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})

# Debian keeps arm64's libraries under this root, so no sysroot; those of the cross compilers are
# below /usr/<triplet>, where qemu looks first.
# The emulator forks with whatever its threads hold: glib's own allocator then waits for ever in the
# child; malloc does not.
set(CMAKE_CROSSCOMPILING_EMULATOR env G_SLICE=always-malloc qemu-${MUSTER_ARCH})
if(NOT MUSTER_ARCH STREQUAL aarch64)
  list(APPEND CMAKE_CROSSCOMPILING_EMULATOR -L /usr/${triplet})
endif()

# On aarch64: atomics inline as LSE or LL/SC are the compiler's choice (-moutline-atomics, its
# default).
set(foreign ${CMAKE_CURRENT_LIST_DIR}/../build/foreign/${MUSTER_ARCH}/lib/pkgconfig)
set(ENV{PKG_CONFIG_LIBDIR} ${foreign}:/usr/lib/${triplet}/pkgconfig:/usr/share/pkgconfig)
