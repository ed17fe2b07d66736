// SPDX-License-Identifier: BSD-3-Clause
// `muster report`: one page of what the result files in a folder say.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "bench/html_report.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"
#include "topology/text_file.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string folder;
  std::string output;
  bool json = false;
};

void run(const Options& options) {
  check_folder(options.folder);
  std::error_code none;
  bench::ReportSource source;
  source.folder = fs::path(options.folder).lexically_normal().string();
  for (const std::string& name : bench::reported_results()) {
    const std::string path = options.folder + "/" + name + ".json";
    if (fs::exists(path, none)) source.results.emplace(name, read_results(path));
  }
  if (const std::string path = options.folder + "/waits.jsonl"; fs::exists(path, none)) {
    std::istringstream lines(read_text_file(path, "result file"));
    for (std::string line; std::getline(lines, line);) {
      source.waits.push_back(nlohmann::ordered_json::parse(line, nullptr, false));
      if (!source.waits.back().is_object())
        throw Error(Status::invalid, path + ": a line that MUSTER_REPORT has not written");
    }
  }
  if (source.results.empty() && source.waits.empty()) {
    throw Error(Status::invalid,
                fmt::format("{0} has none of {1}.json: `muster measure --output {0}` writes one",
                            options.folder, fmt::join(bench::reported_results(), ".json, ")));
  }
  for (const auto& entry : fs::directory_iterator(options.folder, none)) {
    if (entry.path().extension() != ".svg") continue;
    source.pictures.emplace(entry.path().stem().string(),
                            read_text_file(entry.path().string(), "picture"));
  }
  const std::string output =
      options.output.empty() ? (fs::path(options.folder) / "report.html").string() : options.output;
  write_and_tell(output, bench::html_report(source), " (open it in a browser)");
  if (!options.json) return;
  nlohmann::ordered_json told{{"report", output},
                              {"results", nlohmann::ordered_json::array()},
                              {"pictures", nlohmann::ordered_json::array()},
                              {"jobs", source.waits.size()}};
  for (const auto& [name, result] : source.results) told["results"].push_back(name);
  for (const auto& [name, svg] : source.pictures) told["pictures"].push_back(name);
  fmt::print("{}", format_json(told));
}

}  // namespace

void add_report(Command& app) {
  const auto options = std::make_shared<Options>();
  Command* const command =
      app.add_subcommand("report", "Make one page of a folder's results, to show to others");
  command
      ->add_option(
          "folder", options->folder,
          "Where `--output` of measure, bench barrier, lock and mpi, sim barrier, lock and "
          "validate went; doctor.json; waits.jsonl, by MUSTER_REPORT")
      ->required();
  command->add_option("--output", options->output,
                      "The HTML file (default: report.html in the folder, made anew each time)");
  command->add_flag("--json", options->json, "Print what the page is made of, one JSON object");
  command->footer(
      "The page holds its pictures and needs no network. It has what it finds: the machine, the "
      "heat map, groups (SVGs of `muster topo`), barriers, MPI, locks, predicted beside measured, "
      "and the commands that measure it again.");
  command->callback([options] { run(*options); });
}

}  // namespace muster
