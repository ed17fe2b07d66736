// SPDX-License-Identifier: BSD-3-Clause
// Two threads of a C++ program meet where std::barrier would stand.
#include <iostream>
#include <muster/muster.hpp>
#include <thread>

int main() {
  int episodes = 0;
  muster::barrier sync(2, [&]() noexcept { ++episodes; });
  const auto participant = [&] {
    for (int i = 0; i < 100; ++i) sync.arrive_and_wait();
  };
  std::thread other(participant);
  participant();
  other.join();
  std::cout << "C++: " << episodes << " episodes\n";
  return episodes == 100 ? 0 : 1;
}
