/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory where the servers are: RCLAwareMalloc [P17], on jemalloc. Of the library muster-memory,
 * which can be used without libmuster.
 *
 *   muster_memory_follow_servers();            once: from now on, blocks follow libmuster's servers
 *   int* data = muster_alloc(1000 * sizeof *data);
 *   muster_free(data);
 *
 * - No server: default allocation, and what is allocated is remembered.
 * - All servers on one NUMA node: blocks come from there. With the first server, what was allocated
 *   before moves there, page by page.
 * - Servers on several NUMA nodes: default allocation, and the binding is lifted; pages stay where
 *   they are.
 *
 * A block stays what it is when servers come and go: it may be used, resized and freed by any
 * thread at any time. Binding is a preference: where the NUMA node is full, another one serves. On
 * one NUMA node, or where the kernel or a sandbox forbids it, nothing is bound and all else works;
 * muster_memory_explain() says so.
 *
 * Everything here is thread-safe, and usable before and after a fork. Blocks are not malloc's: free
 * them with muster_free(). LD_PRELOAD=libmuster-malloc.so makes malloc() and its family these. The
 * library has 2.7 KB of static thread-local storage, jemalloc's: link it or preload it; dlopen()
 * may refuse it. MALLOC_CONF in the environment is jemalloc's.
 *
 * [P17]: A. Paznikov, "Optimization method of remote core locking", Tomsk State Univ. J. of Control
 * and Computer Science 38, 2017.
 */
#ifndef MUSTER_MEMORY_H
#define MUSTER_MEMORY_H

#include "muster/muster.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A block of at least that many bytes, aligned as malloc()'s; NULL with errno ENOMEM. Of 0 bytes:
 * a block of its own. */
MUSTER_API void* muster_alloc(size_t bytes);
/** All zero. NULL also if the product is more than can be addressed. */
MUSTER_API void* muster_alloc_zeroed(size_t count, size_t bytes);
/** NULL with errno EINVAL if `alignment` is no power of two. */
MUSTER_API void* muster_alloc_aligned(size_t alignment, size_t bytes);
/** As realloc(): the block, or another one with its contents, and then perhaps on another NUMA
 * node; NULL with errno ENOMEM, and the block as it was. 0 bytes: frees it, and returns NULL. */
MUSTER_API void* muster_realloc(void* block, size_t bytes);
/** NULL is ignored. errno stays. */
MUSTER_API void muster_free(void* block);
/** Bytes that the block really has; 0 of NULL. */
MUSTER_API size_t muster_usable_size(const void* block);

/** The NUMA node, by the operating system's number, for which the block was allocated; -1: default
 * allocation, or none of ours. Where its pages are is the kernel's to say (move_pages). */
MUSTER_API int muster_memory_numa(const void* block);

/** Tells where all servers are now: their NUMA nodes by the operating system's numbers (as
 * /sys/devices/system/node counts), each once or once a server; none: there is no server. A number
 * that stands for no NUMA node, or for one without memory for this process: default allocation.
 * A machine of one NUMA node takes any number, and binds nothing.
 * Returns when memory is where it should be: at the first server, after all pages of older blocks
 * have been moved.
 * MUSTER_EINVAL: no list. */
MUSTER_API int muster_memory_servers(const unsigned* numa_nodes, unsigned count);

/** Has libmuster call muster_memory_servers() whenever one of its servers starts or closes. So it
 * does in a fork's child, for the child's own servers; until the child starts one or places a
 * thread, memory is where it was.
 * MUSTER_ENOTSUP: this process has no libmuster whose symbols all may use (a plugin's own, loaded
 * with RTLD_LOCAL, is none). Else what muster_server_set_observer() returns. */
MUSTER_API int muster_memory_follow_servers(void);

/** What has been done so far. */
typedef struct muster_memory_counters {
  int numa_node;     /**< where blocks come from; -1: default allocation */
  uint64_t bindings; /**< how often memory was bound to a NUMA node */
  uint64_t lifts;    /**< how often that was lifted */
  /* Pages of all migrations. */
  uint64_t pages_moved;
  uint64_t pages_already_there;
  uint64_t pages_not_there_yet; /**< never touched, or given back: they will come to lie there */
  uint64_t pages_refused;       /**< shared with a child, locked, no room, ... */
  int first_refusal;            /**< errno of the first page that was refused */
  uint64_t regions_refused;     /**< mappings that the kernel refused to bind */
  int first_region_refusal;     /**< errno of the first one */
  uint64_t bytes;               /**< address space of all blocks, used and unused */
  uint64_t bytes_bound;         /**< of these, bound to a NUMA node now */
  uint64_t threads_adrift;      /**< how often a thread got no arena, and allocates as by default */
} muster_memory_counters;
/** `size`: sizeof *counters. More members may come after these. MUSTER_EINVAL: no place. */
MUSTER_API int muster_memory_get_counters(muster_memory_counters* counters, size_t size);

/** What is bound where, and why, as text. As muster_barrier_explain(). */
MUSTER_API int muster_memory_explain(char* text, size_t bytes, size_t* needed);

#ifdef __cplusplus
}
#endif

#endif /* MUSTER_MEMORY_H */
