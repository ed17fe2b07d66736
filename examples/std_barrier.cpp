// SPDX-License-Identifier: BSD-3-Clause
// Where std::barrier was: threads compute in steps, and a completion function runs between them.
#include <cstdio>
#include <muster/muster.hpp>
#include <thread>
#include <vector>

int main() {
  constexpr unsigned participants = 4;
  constexpr long steps = 1000;
  std::vector<long> partial(participants);
  long total = 0;
  // Runs once a step, after all have arrived and before any goes on.
  muster::barrier sync(participants, [&] {
    for (const long part : partial) total += part;
  });
  std::vector<std::thread> threads;
  for (unsigned rank = 0; rank < participants; ++rank) {
    threads.emplace_back([&, rank] {
      for (long step = 0; step < steps; ++step) {
        partial[rank] = step * participants + rank;
        sync.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const long n = steps * participants;
  std::printf("sum of 0 to %ld: %ld\n", n - 1, total);
  return total == n * (n - 1) / 2 ? 0 : 1;
}
