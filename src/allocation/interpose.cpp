// SPDX-License-Identifier: BSD-3-Clause
// malloc() and its family by muster_alloc(): libmuster-malloc.so, for programs that are not
// changed. operator new is libstdc++'s and calls malloc().
//
// Any of these may be called before a constructor has run: by the dynamic linker, by dlsym(), by
// other preloaded libraries. Nothing here or below needs one.
#include <dlfcn.h>
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "machine/keep_errno.hpp"
#include "muster/memory.h"

extern "C" {

[[gnu::weak]] void __tsan_init();

/// Before anything else. AddressSanitizer refuses by itself.
MUSTER_API void muster_malloc_starts() {
  if (__tsan_init == nullptr) return;
  constexpr std::string_view why =
      "muster: this program is built with ThreadSanitizer, which has a malloc of its own: run it "
      "without libmuster-malloc.so\n";
  // It has functions of its own for these, too, and they are not ready.
  syscall(SYS_write, STDERR_FILENO, why.data(), why.size());
  syscall(SYS_exit_group, EXIT_FAILURE);
}

MUSTER_API void* malloc(size_t bytes) noexcept { return muster_alloc(bytes); }

MUSTER_API void* calloc(size_t count, size_t bytes) noexcept {
  return muster_alloc_zeroed(count, bytes);
}

MUSTER_API void* realloc(void* block, size_t bytes) noexcept {
  return muster_realloc(block, bytes);
}

MUSTER_API void* reallocarray(void* block, size_t count, size_t bytes) noexcept {
  size_t product = 0;
  if (__builtin_mul_overflow(count, bytes, &product)) {
    errno = ENOMEM;
    return nullptr;
  }
  return muster_realloc(block, product);
}

MUSTER_API void free(void* block) noexcept { muster_free(block); }

MUSTER_API void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return muster_alloc_aligned(alignment, bytes);
}

/// glibc takes the next power of two where it is given none.
MUSTER_API void* memalign(size_t alignment, size_t bytes) noexcept {
  if (alignment > SIZE_MAX / 2 + 1) {
    errno = EINVAL;
    return nullptr;
  }
  return muster_alloc_aligned(std::bit_ceil(alignment), bytes);
}

MUSTER_API int posix_memalign(void** block, size_t alignment, size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || !std::has_single_bit(alignment)) return EINVAL;
  const muster::KeepErrno of_caller;
  void* const made = muster_alloc_aligned(alignment, bytes);
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

MUSTER_API void* valloc(size_t bytes) noexcept {
  return muster_alloc_aligned(static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes);
}

MUSTER_API void* pvalloc(size_t bytes) noexcept {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (bytes > SIZE_MAX - page) {
    errno = ENOMEM;
    return nullptr;
  }
  return muster_alloc_aligned(page, (bytes + page - 1) / page * page);
}

MUSTER_API size_t malloc_usable_size(void* block) noexcept { return muster_usable_size(block); }

/// What pthread_atfork() calls, which each library has of its own. jemalloc's handlers are to be
/// the first, and so around the fork alone: it holds all of its locks, and others' handlers may
/// wait for threads that end.
MUSTER_API int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(),
                                 void* library) {
  using Register = int(void (*)(), void (*)(), void (*)(), void*);
  static constinit std::atomic<Register*> next{nullptr};
  static constinit std::atomic_flag begun{};
  Register* theirs = next.load(std::memory_order_relaxed);
  if (theirs == nullptr) {
    theirs = reinterpret_cast<Register*>(dlsym(RTLD_NEXT, "__register_atfork"));
    next.store(theirs, std::memory_order_relaxed);
  }
  if (!begun.test_and_set(std::memory_order_relaxed)) muster_free(muster_alloc(1));
  return theirs(prepare, parent, child, library);
}

}  // extern "C"

namespace {

/// MUSTER_MEMORY_SERVERS: the NUMA nodes of servers that nobody tells us of, "0" or "1,1".
void set_servers_from_environment(const char* text) {
  constexpr unsigned most = 1024;
  unsigned numa_nodes[most];
  unsigned count = 0;
  const char* at = text;
  for (;;) {
    char* end = nullptr;
    errno = 0;
    const unsigned long number = std::strtoul(at, &end, 10);
    const bool digits = *at >= '0' && *at <= '9';
    if (!digits || errno != 0 || number > UINT32_MAX || count == most) break;
    numa_nodes[count++] = static_cast<unsigned>(number);
    if (*end == '\0') {
      muster_memory_servers(numa_nodes, count);
      return;
    }
    if (*end != ',') break;
    at = end + 1;
  }
  std::fprintf(stderr,
               "muster: MUSTER_MEMORY_SERVERS is ignored: it has to be the servers' NUMA nodes, "
               "such as \"0\" or \"1,1\"\n");
}

/// A program that has servers of libmuster's is followed.
[[gnu::constructor]] void start() {
  const char* const text = secure_getenv("MUSTER_MEMORY_SERVERS");
  if (text != nullptr && *text != '\0') set_servers_from_environment(text);
  const int followed = muster_memory_follow_servers();
  if (followed == MUSTER_OK || followed == MUSTER_ENOTSUP) return;
  std::fprintf(stderr, "muster: malloc does not follow this program's servers (status %d)\n",
               followed);
}

}  // namespace
