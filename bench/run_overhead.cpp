// SPDX-License-Identifier: BSD-3-Clause
// What the preload of `muster run` costs a program, and what its mutexes do when many want one:
//
//   muster-bench-run <muster> [ROUNDS] [MILLISECONDS]    9 rounds of 200 ms by default
//
// In each round every way runs once, in another order each time; a ratio is to the same round's run
// without the preload. Medians, and from where to where.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Way {
  const char* name;
  const char* options;  ///< of `muster run`; null: without it
};
constexpr Way ways[] = {
    {"alone", nullptr},
    {"affinity none", "--affinity none"},
    {"affinity", ""},
    {"pthread", "--affinity none --mutex pthread"},
    {"spin-then-park", "--affinity none --mutex spin-then-park"},
    {"mcs", "--affinity none --mutex mcs"},
    {"cna", "--affinity none --mutex cna"},
};
constexpr std::size_t way_count = std::size(ways);

double measure(const std::string& command) {
  FILE* const output = popen(command.c_str(), "r");
  double ns = 0;
  const bool read = output != nullptr && std::fscanf(output, "%lf", &ns) == 1;
  if (output == nullptr || pclose(output) != 0 || !read) throw std::runtime_error(command);
  return ns;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void report(const std::string& what, const std::vector<std::vector<double>>& rounds) {
  for (std::size_t w = 0; w < way_count; ++w) {
    std::vector<double> ns;
    std::vector<double> ratios;
    for (const std::vector<double>& round : rounds) {
      ns.push_back(round[w]);
      ratios.push_back(round[w] / round[0]);
    }
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    fmt::print("{:<12} {:<16} {:>12.2f} {:>8.3f}   {:.3f} to {:.3f}\n", what, ways[w].name,
               median(ns), median(ratios), *least, *most);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string muster = argc > 1 ? argv[1] : "";
  const long rounds = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 9;
  const long ms = argc > 3 ? std::strtol(argv[3], nullptr, 10) : 200;
  if (!std::filesystem::exists(muster) || rounds < 1 || ms < 1) {
    fmt::print(
        "muster-bench-run <muster> [ROUNDS] [MILLISECONDS]    9 rounds of 200 ms by default\n");
    return muster == "--help" ? 0 : 2;
  }
  muster = std::filesystem::absolute(muster);
  const std::string worker =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster-bench-run-worker";
  const std::string cpus = std::to_string(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  const std::pair<std::string, std::string> operations[] = {
      {"lock", ""},    {"recursive", ""}, {"create", ""},  {"cond", ""},
      {"crowd", cpus}, {"crowd", "8"},    {"crowd", "64"},
  };
  fmt::print("{:<12} {:<16} {:>12} {:>8}   all rounds\n", "operation", "way", "median, ns",
             "ratio");
  for (const auto& [what, threads] : operations) {
    std::vector<std::vector<double>> all;
    for (long round = 0; round < rounds; ++round) {
      std::vector<double> ns(way_count);
      for (std::size_t turn = 0; turn < way_count; ++turn) {
        const std::size_t w = (turn + static_cast<std::size_t>(round)) % way_count;
        const std::string work = fmt::format("{} {} {} {}", worker, what, ms, threads);
        ns[w] = measure(ways[w].options == nullptr
                            ? work
                            : fmt::format("{} run {} -- {}", muster, ways[w].options, work));
      }
      all.push_back(std::move(ns));
    }
    report(threads.empty() ? what : what + " " + threads, all);
  }
  return 0;
}
