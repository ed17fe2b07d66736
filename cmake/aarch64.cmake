# SPDX-License-Identifier: BSD-3-Clause
# Debian's cross compiler for aarch64; tests run under qemu-user.
# Packages: g++-aarch64-linux-gnu, qemu-user, libhwloc-dev:arm64 (dpkg --add-architecture arm64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# Debian keeps both architectures under one root, so no sysroot: qemu finds arm64's loader there.
# The emulator forks with whatever its threads hold: glib's own allocator then waits for ever in the
# child; malloc does not.
set(CMAKE_CROSSCOMPILING_EMULATOR env G_SLICE=always-malloc qemu-aarch64)

# Atomics inline as LSE or LL/SC are the compiler's choice (-moutline-atomics, its default).
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
