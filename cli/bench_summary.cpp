// SPDX-License-Identifier: BSD-3-Clause
// `muster bench summary`: what the result files in a folder say, in three sentences.
#include "bench/summary.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"

namespace muster {
namespace {

constexpr std::array kFiles{"barrier.json", "lock.json", "mpi.json", "sim.json", "sim-lock.json"};

void run(const std::string& folder) {
  check_folder(folder);
  bench::ResultSummary summary;
  bool any = false;
  for (const char* const name : kFiles) {
    const std::string path = folder + "/" + name;
    if (!std::filesystem::exists(path)) continue;
    any = true;
    bench::add_results(summary, read_results(path), path);
  }
  if (!any) {
    throw Error(Status::invalid,
                fmt::format("{} has none of {}: `muster bench barrier --output {}` writes one",
                            folder, fmt::join(kFiles, ", "), folder));
  }
  fmt::print("{}\n", bench::findings_to_text(summary));
  for (const std::string& sentence : bench::sentences(summary)) {
    fmt::print("{}\n", wrapped(sentence));
  }
}

}  // namespace

void add_bench_summary(Command& group) {
  const auto folder = std::make_shared<std::string>();
  Command* const command = group.add_subcommand(
      "summary", "Say what the result files in a folder show, in three sentences");
  command
      ->add_option("folder", *folder,
                   "Where `--output` of bench barrier, lock and mpi, sim barrier and lock went")
      ->required();
  command->callback([folder] { run(*folder); });
}

}  // namespace muster
