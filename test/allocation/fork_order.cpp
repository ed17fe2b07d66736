// SPDX-License-Identifier: BSD-3-Clause
// A fork handler that is registered before any library's constructor runs, and so runs beside all
// that libmuster-memory's hold, waits for a thread that allocates. A hang ends with a signal.
#include <muster/memory.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace {

void allocate() {
  for (std::size_t bytes = 8; bytes < 1'000'000; bytes *= 2) muster_free(muster_alloc(bytes));
}

void in_another_thread() { std::thread(allocate).join(); }

[[gnu::used, gnu::section(".preinit_array")]] void (*const first_of_all)() = [] {
  pthread_atfork(in_another_thread, in_another_thread, in_another_thread);
};

}  // namespace

int main() {
  allocate();
  alarm(200);
  const pid_t child = fork();
  if (child == 0) {
    alarm(200);
    allocate();
    _exit(0);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
