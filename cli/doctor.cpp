// SPDX-License-Identifier: BSD-3-Clause
// `muster doctor`: what on this machine will cost, and what helps.
#include "bench/doctor.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/mpi_run.hpp"
#include "bench/report.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"
#include "machine/usable_cpus.hpp"

namespace muster {
namespace {

using bench::Check;
using bench::Diagnosis;
using bench::Verdict;
using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> only;
  bool mpi = false;
  std::string mpirun;
  std::string library;
  bool json = false;
  bool strict = false;
};

std::vector<Check> checks_for(const std::vector<std::string>& names) {
  const std::vector<Check>& all = bench::all_checks();
  for (const std::string& name : names) {
    if (std::none_of(all.begin(), all.end(), [&](const Check& c) { return c.name == name; })) {
      std::string known;
      for (const Check& check : all) known += fmt::format(" {}", check.name);
      throw Error(Status::unknown_name, fmt::format("no check \"{}\"; there are:{}", name, known));
    }
  }
  std::vector<Check> wanted;
  for (const Check& check : all) {
    if (names.empty() || std::find(names.begin(), names.end(), check.name) != names.end())
      wanted.push_back(check);
  }
  return wanted;
}

// ---- MPI ----

/// How its barrier does, or ours under it.
std::string time_of(const bench::MpiService& service) {
  std::string text = fmt::format("{} a barrier", bench::format_ns(1000 * service.mean_us));
  if (!service.placed.empty()) text += ", placements " + service.placed;
  return text;
}

Diagnosis finding_of(const std::string& name, const std::string& library,
                     const bench::MpiService& as_is, const bench::MpiService* preloaded) {
  Diagnosis finding;
  finding.check = name;
  finding.measured.emplace_back("as_it_is_us", as_is.mean_us);
  if (as_is.ours) {
    finding.found = fmt::format("Muster serves ({}).", time_of(as_is));
    const unsigned cpus = affinity_cpus();
    if (as_is.cpus < cpus || as_is.ranks > cpus || as_is.ranks < 2) return finding;
    finding.verdict = Verdict::costs;
    finding.found +=
        fmt::format(" But a rank of {} may run on any of {} CPUs, so nobody knows who is near.",
                    as_is.ranks, as_is.cpus);
    finding.remedy =
        "Bind each rank to a core: --bind-to core (Open MPI), -bind-to core (MPICH), I_MPI_PIN=1 "
        "(Intel MPI), --cpu-bind=cores (srun).";
    return finding;
  }
  finding.found = fmt::format("Its own barrier serves ({}){}.", time_of(as_is),
                              as_is.why.empty() ? "" : ": " + as_is.why);
  if (as_is.ranks < 2) finding.found += " One rank has nothing to wait for: ask with two.";
  if (preloaded == nullptr || as_is.ranks < 2) return finding;
  if (!preloaded->ours) {
    finding.found +=
        fmt::format(" The preload does not: {}.",
                    preloaded->why.empty() ? "the ranks did not load it" : preloaded->why);
    return finding;
  }
  const bool gains = preloaded->mean_us < as_is.mean_us;
  finding.measured.emplace_back("preloaded_us", preloaded->mean_us);
  finding.found += fmt::format(" Preloaded, Muster would ({}){}.", time_of(*preloaded),
                               gains ? "" : ": no faster this time");
  if (!gains) return finding;
  finding.verdict = Verdict::costs;
  const bool others = name.starts_with("MPICH") || name.starts_with("Intel MPI") ||
                      library.find("mpich") != std::string::npos;
  finding.remedy =
      std::string(others ? ""
                         : "For all jobs of an Open MPI: its component, by make install-openmpi in "
                           "Muster's sources or Debian's package libmuster-openmpi. ") +
      "For one job, into its ranks' environment: LD_PRELOAD=" + bench::mpi_preload();
  return finding;
}

Diagnosis examine_launcher(const std::string& name, const std::vector<std::string>& command,
                           const std::string& library) {
  Diagnosis failed;
  failed.check = name;
  failed.verdict = Verdict::unknown;
  try {
    const bench::MpiService as_is = bench::try_launcher(command, {}, library);
    if (as_is.ours || bench::mpi_preload().empty())
      return finding_of(name, library, as_is, nullptr);
    const bench::MpiService preloaded =
        bench::try_launcher(command, {{"LD_PRELOAD", bench::mpi_preload()}}, library);
    return finding_of(name, library, as_is, &preloaded);
  } catch (const Error& error) {
    failed.found = error.what();
    return failed;
  }
}

/// The library of the MPI whose launcher that is, by any of its names.
std::string library_of(const std::string& launcher) {
  const bool has_path = launcher.find('/') != std::string::npos;
  const std::string file = has_path ? launcher : bench::find_in_path(launcher);
  for (const bench::MpiInstallation& mpi : bench::find_mpis("")) {
    char* const left = realpath(mpi.launcher.c_str(), nullptr);
    char* const right = realpath(file.c_str(), nullptr);
    const bool same = left != nullptr && right != nullptr && std::string(left) == right;
    std::free(left);
    std::free(right);
    if (same) return mpi.library;
  }
  throw Error(Status::invalid,
              fmt::format("which MPI \"{}\" starts is not known: name its library, "
                          "--mpi-library /path/to/libmpi.so",
                          launcher));
}

/// `--mpirun`, if it is given.
struct Launcher {
  std::vector<std::string> command;
  std::string library;
};

Launcher launcher_asked_for(const Options& options) {
  Launcher asked;
  std::istringstream words(options.mpirun);
  for (std::string word; words >> word;) asked.command.push_back(word);
  if (asked.command.empty()) {
    if (!options.library.empty()) throw Error(Status::invalid, "--mpi-library goes with --mpirun");
    return asked;
  }
  asked.library = options.library.empty() ? library_of(asked.command.front()) : options.library;
  const bool has_path = asked.library.find('/') != std::string::npos;  // else the loader looks
  if (!has_path) return asked;
  char head[SELFMAG]{};
  if (std::filesystem::is_regular_file(asked.library))
    std::ifstream(asked.library, std::ios::binary).read(head, SELFMAG);
  if (std::string_view(head, SELFMAG) != ELFMAG)
    throw Error(Status::invalid, fmt::format("{} is no library", asked.library));
  return asked;
}

std::vector<Diagnosis> examine_mpis(const Options& options, const Launcher& asked) {
  std::vector<Diagnosis> findings;
  if (!asked.command.empty()) {
    findings.push_back(examine_launcher(asked.command.front(), asked.command, asked.library));
  }
  if (!options.mpi) return findings;
  const std::vector<bench::MpiInstallation> mpis = bench::find_mpis("");
  for (const bench::MpiInstallation& mpi : mpis) {
    const bench::MpiContender as_is{&mpi, "default", false, {}, {}};
    std::vector<std::string> command = bench::mpi_command(as_is, 2);
    command.resize(command.size() - 3);  // its env, worker and library
    findings.push_back(examine_launcher(mpi.name, command, mpi.library));
  }
  if (mpis.empty()) {
    Diagnosis none;
    none.check = "mpi";
    none.found = "No MPI was found: openmpi-bin and mpich are Debian's; others by --mpirun.";
    findings.push_back(none);
  }
  return findings;
}

// ---- telling ----

const char* word_for(Verdict verdict) {
  return verdict == Verdict::fine ? "fine" : verdict == Verdict::costs ? "costs" : "unknown";
}

std::string to_text(const Diagnosis& finding) {
  constexpr std::size_t name_width = 13;
  constexpr std::size_t indent = 21;
  std::string text = fmt::format("{:<{}}", finding.check, name_width);
  if (finding.check.size() >= name_width) text += fmt::format("\n{:{}}", "", name_width);
  text += fmt::format("{:<{}}", word_for(finding.verdict), indent - name_width);
  const std::string remedy = finding.remedy.empty() ? "" : "\n-> " + finding.remedy;
  return text + wrapped(finding.found + remedy, indent) + "\n";
}

Json to_json(const Diagnosis& finding) {
  Json json{{"check", finding.check},
            {"verdict", word_for(finding.verdict)},
            {"found", finding.found},
            {"remedy", finding.remedy.empty() ? Json(nullptr) : Json(finding.remedy)},
            {"measured", Json::object()}};
  for (const auto& [name, value] : finding.measured) json["measured"][name] = value;
  return json;
}

void run(const Options& options) {
  const std::vector<Check> checks = checks_for(options.only);
  const Launcher asked = launcher_asked_for(options);
  const bench::Instruments instruments;
  ProgressLine progress;
  Json all{{"findings", Json::array()}};
  unsigned costs = 0;
  const auto tell = [&](const Diagnosis& finding) {
    progress.clear();
    costs += finding.verdict == Verdict::costs ? 1 : 0;
    if (options.json) {
      all["findings"].push_back(to_json(finding));
    } else {
      fmt::print("{}", to_text(finding));
      std::fflush(stdout);
    }
  };
  double seconds = 0;
  double done = 0;
  for (const Check& check : checks) seconds += check.seconds;
  for (const Check& check : checks) {
    progress.show(seconds > 0 ? done / seconds : 0, std::string(check.about));
    done += check.seconds;
    tell(bench::examine(check, instruments));
  }
  for (const Diagnosis& finding : examine_mpis(options, asked)) tell(finding);
  if (options.json) {
    fmt::print("{}", format_json(all));
  } else if (costs == 0) {
    fmt::print("\nNothing here costs more than it need.\n");
  } else {
    fmt::print("\n{} of these cost{}. What \"->\" says helps.\n", costs, costs == 1 ? "s" : "");
  }
  std::fflush(stdout);
  if (options.strict && costs > 0) std::exit(1);
}

}  // namespace

void add_doctor(Command& app) {
  const auto options = std::make_shared<Options>();
  Command* const command = app.add_subcommand(
      "doctor", "Say what on this machine makes synchronization slow, and what helps (2 to 6 s)");
  std::string about;
  std::vector<std::string> names;
  for (const Check& check : bench::all_checks()) {
    about += fmt::format("\n  {:<12}{}", check.name, check.about);
    names.emplace_back(check.name);
  }
  command->add_option("--only", options->only, "These checks alone, separated by commas")
      ->words(names)
      ->delimiter(',');
  command->add_flag("--mpi", options->mpi,
                    "Try each MPI found here, too: whether Muster serves its barriers (2 s each)");
  command->add_option("--mpirun", options->mpirun,
                      "Try this launcher with these options, such as \"mpirun -n 4\"");
  command->add_option("--mpi-library", options->library,
                      "The libmpi that its programs load (default: Debian's of that launcher)");
  command->add_flag("--strict", options->strict, "Exit with 1 if anything costs");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer("Checks:" + about);
  command->callback([options] { run(*options); });
}

}  // namespace muster
