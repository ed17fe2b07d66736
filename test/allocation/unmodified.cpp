// SPDX-License-Identifier: BSD-3-Clause
// A program that has never heard of Muster, run with libmuster-malloc preloaded: its blocks are
// that library's, on the NUMA node that MUSTER_MEMORY_SERVERS names. It asks through dlsym(), to
// be told whether anybody is there.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

int failures = 0;
int (*home)(const void*);

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("wrong: %s\n", what);
  ++failures;
}

/// Ours, aligned, usable; and freed.
void check_block(void* block, std::size_t alignment, std::size_t bytes, const char* what) {
  check(block != nullptr, what);
  check(reinterpret_cast<std::uintptr_t>(block) % alignment == 0, what);
  check(malloc_usable_size(block) >= bytes, what);
  check(home(block) == 0, what);
  std::memset(block, 1, bytes);
  free(block);
}

void check_family() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  check_block(malloc(100), 16, 100, "malloc");
  check_block(calloc(10, 10), 16, 100, "calloc");
  check_block(realloc(malloc(10), 100), 16, 100, "realloc");
  check_block(reallocarray(nullptr, 10, 10), 16, 100, "reallocarray");
  check_block(aligned_alloc(64, 128), 64, 128, "aligned_alloc");
  check_block(memalign(100, 100), 128, 100, "memalign");
  check_block(valloc(100), page, 100, "valloc");
  check_block(pvalloc(page + 1), page, 2 * page, "pvalloc");
  void* block = nullptr;
  check(posix_memalign(&block, 4096, 100) == 0, "posix_memalign");
  check_block(block, 4096, 100, "posix_memalign");
  check(posix_memalign(&block, 24, 100) == EINVAL, "posix_memalign of 24");
  check(posix_memalign(&block, 2, 100) == EINVAL, "posix_memalign of 2");
  std::size_t many = 2;
  asm("" : "+r"(many));  // the compiler knows better than to try
  check(reallocarray(nullptr, SIZE_MAX / 2, many + 1) == nullptr && errno == ENOMEM,
        "reallocarray overflows");
  check(malloc_usable_size(nullptr) == 0, "malloc_usable_size of nothing");
  auto number = std::make_unique<long>(1);
  check(home(number.get()) == 0, "operator new");
  struct alignas(256) Wide {
    char data[256];
  };
  const auto wide = std::make_unique<Wide>();
  check(home(wide.get()) == 0, "aligned operator new");
  char* const copy = strdup("what the C library allocates");
  check(home(copy) == 0, "strdup");
  free(copy);
}

/// Before all others, and so run beside all that ours would hold.
void allocate_in_another_thread() {
  std::thread([] { std::vector<std::string>(1000, std::string(100, 'x')); }).join();
}
[[gnu::used, gnu::section(".preinit_array")]] void (*const first_of_all)() = [] {
  pthread_atfork(allocate_in_another_thread, nullptr, nullptr);
};

void check_fork() {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::string> lines(1000, std::string(100, 'x'));
    _exit(home(lines.data()) == 0 ? 0 : 1);
  }
  int status = -1;
  check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "fork");
}

/// An odd number of bytes for each constructor that runs before main().
const std::string early(1001, 'e');

}  // namespace

int main() {
  home = reinterpret_cast<int (*)(const void*)>(dlsym(RTLD_DEFAULT, "muster_memory_numa"));
  if (home == nullptr) {
    std::puts("nobody is preloaded");
    return 2;
  }
  check_family();
  std::vector<std::future<std::size_t>> sums;
  for (unsigned i = 0; i < 8; ++i) {
    sums.push_back(std::async(std::launch::async, [i] {
      std::vector<std::string> lines;
      for (unsigned line = 0; line < 1000; ++line) lines.emplace_back(line % (i + 2), 'x');
      check(home(lines.data()) == 0, "a thread's blocks");
      return lines.size();
    }));
  }
  for (auto& sum : sums) check(sum.get() == 1000, "threads");
  check_fork();
  check(early.size() == 1001, "an early block");
  std::puts(failures == 0 ? "all is as it should be" : "something is wrong");
  return failures == 0 ? 0 : 1;
}
