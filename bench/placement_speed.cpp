// SPDX-License-Identifier: BSD-3-Clause
// How long the placement functions take on 1,024 PUs: wanted, 50 us with 1,024 threads. And how
// long a thread takes to learn on which PU it runs, as `following` asks at each wait: wanted, 1 ns.
//
//   muster-bench-placement [REPETITIONS]    1,000 by default; medians and 95th percentiles
//
// Migration, the other half of RCLAwareMalloc: muster-bench-allocation --migrate MIB.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <vector>

#include "machine/current_pu.hpp"
#include "placement/placer.hpp"

namespace {

using namespace muster;
using Clock = std::chrono::steady_clock;

constexpr unsigned threads = 1024;

/// `prepare` makes what `body` uses up, and is not timed.
void report(std::string_view name, unsigned repetitions, const std::function<Placer()>& prepare,
            const std::function<void(Placer&)>& body) {
  std::vector<double> us;
  for (unsigned i = 0; i < repetitions; ++i) {
    Placer placer = prepare();
    const auto begin = Clock::now();
    body(placer);
    us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::sort(us.begin(), us.end());
  fmt::print("{:<48} {:>10.2f} {:>10.2f}\n", name, us[repetitions / 2], us[repetitions * 19 / 20]);
}

/// With the loop around it.
double current_pu_ns(unsigned repetitions) {
  constexpr unsigned calls = 10'000;
  CurrentPu pu;
  std::vector<double> ns;
  for (unsigned i = 0; i < repetitions; ++i) {
    const auto begin = Clock::now();
    for (unsigned n = 0; n < calls; ++n) asm volatile("" : : "r"(pu.now()) : "memory");
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / calls);
  }
  std::sort(ns.begin(), ns.end());
  return ns[repetitions / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const long wanted = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 1000;
  if (argc > 2 || wanted < 1) {
    fmt::print("muster-bench-placement [REPETITIONS]    1,000 by default\n");
    return argc == 2 && std::string_view(argv[1]) == "--help" ? 0 : 2;
  }
  const auto repetitions = static_cast<unsigned>(wanted);
  const CoreTree tree(Topology::from_synthetic("package:8 numa:4 l3:4 l2:4 core:2 pu:1"));
  const auto empty = [&] { return Placer(tree); };
  const auto with_server = [&] {
    Placer placer(tree);
    placer.add_server(ServerPolicy::pack);
    return placer;
  };
  const auto full = [&] {
    Placer placer = with_server();
    placer.add_threads(threads);
    return placer;
  };
  fmt::print("{} cores, {} levels; wanted: less than 50 us each\n", tree.cores(),
             tree.levels().size());
  fmt::print("{:<48} {:>10} {:>10}\n", "", "median, us", "95 %, us");
  report("first server, with its memory decision", repetitions, empty,
         [](Placer& placer) { placer.add_server(ServerPolicy::pack); });
  report("second server, beside 1,024 threads", repetitions, full,
         [](Placer& placer) { placer.add_server(ServerPolicy::spread); });
  report("1,024 threads at once, after a server", repetitions, with_server,
         [](Placer& placer) { placer.add_threads(threads); });
  report("one more thread", repetitions, full, [](Placer& placer) { placer.add_thread(); });
  report("server and 1,024 threads", repetitions, empty, [](Placer& placer) {
    placer.add_server(ServerPolicy::pack);
    placer.add_threads(threads);
  });
  fmt::print("where a thread runs, median of {} times 10,000: {:.2f} ns (wanted: at most 1)\n",
             repetitions, current_pu_ns(repetitions));
  return 0;
}
