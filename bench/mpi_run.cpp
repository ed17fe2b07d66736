// SPDX-License-Identifier: BSD-3-Clause
#include "bench/mpi_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>

#include "bench/child.hpp"
#include "bench/measure.hpp"
#include "bench/report.hpp"
#include "bench/stop.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"
#include "machine/usable_cpus.hpp"

namespace muster::bench {

std::string find_in_path(const std::string& name) {
  const char* const path = secure_getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = folder + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using Environment = std::vector<std::pair<std::string, std::string>>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Outcome {
  bool in_time = false;
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// Runs a program in a group of its own, which is killed as a whole when its time is up.
Outcome run_program(const Words& words, double timeout_s) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0)
    throw Error(Status::system, "no pipe: out of descriptors?");
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    // However we end: a launcher that is asked to takes its ranks along.
    if (follow_parent(self, SIGTERM)) become(words, out[1], err[1]);
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  Outcome outcome;
  const std::int64_t deadline = clock_ns() + static_cast<std::int64_t>(timeout_s * 1e9);
  std::array<pollfd, 2> watched{{{out[0], POLLIN, 0}, {err[0], POLLIN, 0}}};
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    const std::int64_t left_ms = (deadline - clock_ns()) / 1'000'000;
    if (left_ms <= 0) break;
    const int ready = poll(watched.data(), watched.size(), static_cast<int>(left_ms));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      std::array<char, 4096> text{};
      const ssize_t got = read(watched[i].fd, text.data(), text.size());
      if (got > 0) {
        (i == 0 ? outcome.out : outcome.err).append(text.data(), static_cast<std::size_t>(got));
      } else {
        watched[i].fd = -1;
      }
    }
  }
  outcome.in_time = watched[0].fd < 0 && watched[1].fd < 0;
  if (!outcome.in_time) kill(-child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  close(out[0]);
  close(err[0]);
  return outcome;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// The first line that has words: Open MPI rules its messages off.
std::string first_words(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (std::any_of(line.begin(), line.end(), [](unsigned char c) { return std::isalnum(c); }))
      return line;
  }
  return {};
}

/// The first file below `folder` whose name passes; "" if there is none.
std::string find_below(const std::string& folder,
                       const std::function<bool(const fs::path&)>& passes) {
  std::error_code none;
  std::vector<std::string> found;
  for (fs::recursive_directory_iterator at(folder, none), end; at != end; at.increment(none)) {
    if (none) break;
    if (!at->is_directory(none) && passes(at->path())) found.push_back(at->path());
  }
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return found.empty() ? std::string{} : found.front();
}

std::string version_in(const std::string& text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) continue;
    const std::size_t end = text.find_first_not_of("0123456789.", at);
    std::string number = text.substr(at, end - at);
    if (number.find('.') != std::string::npos) return number;
    at = end == std::string::npos ? text.size() : end;
  }
  return "?";
}

std::string version_of(const std::string& launcher) {
  const Outcome told = run_program({launcher, "--version"}, 20);
  return version_in(told.out.empty() ? told.err : told.out);
}

std::string library_beside(const Words& folders, const Words& names) {
  for (const std::string& folder : folders) {
    for (const std::string& name : names) {
      std::error_code none;
      if (fs::exists(folder + "/" + name, none)) return folder + "/" + name;
    }
  }
  return {};
}

void add_debian(std::vector<MpiInstallation>& mpis) {
  Words folders{"/usr/lib64", "/usr/lib"};
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/usr/lib", none)) {
    if (entry.path().filename().string().find("-linux-gnu") != std::string::npos)
      folders.insert(folders.begin(), entry.path());
  }
  const auto add = [&](const char* family, const char* name, const Words& launchers,
                       const Words& libraries) {
    for (const std::string& launcher_name : launchers) {
      const std::string launcher = find_in_path(launcher_name);
      const std::string library = library_beside(folders, libraries);
      if (launcher.empty() || library.empty()) continue;
      mpis.push_back(
          {fmt::format("{} {}", name, version_of(launcher)), family, launcher, library, {}});
      return;
    }
  };
  add("openmpi", "Open MPI", {"mpirun.openmpi"}, {"libmpi.so.40"});
  add("mpich", "MPICH", {"mpirun.mpich", "mpiexec.hydra"}, {"libmpich.so.12"});
}

void add_peer(std::vector<MpiInstallation>& mpis, const std::string& folder) {
  const std::string what = fs::path(folder).filename();
  MpiInstallation mpi;
  const auto named = [](const char* name) {
    return [name](const fs::path& path) {
      return path.filename() == name && path.parent_path().filename() == "bin";
    };
  };
  mpi.launcher = find_below(folder, named(what == "openmpi" ? "mpirun" : "mpiexec.hydra"));
  if (mpi.launcher.empty()) mpi.launcher = find_below(folder, named("mpirun"));
  mpi.library = find_below(folder, [](const fs::path& path) {
    return path.filename().string().starts_with("libmpi.so.");
  });
  if (mpi.launcher.empty() || mpi.library.empty()) return;
  mpi.family = what == "impi-rt" ? "intel" : what;
  const std::string prefix = fs::path(mpi.launcher).parent_path().parent_path();
  if (mpi.family == "intel") mpi.environment = {{"I_MPI_ROOT", prefix}, {"FI_PROVIDER", "shm"}};
  if (mpi.family == "openmpi") mpi.environment = {{"OPAL_PREFIX", prefix}};
  const char* const name = mpi.family == "intel"     ? "Intel MPI"
                           : mpi.family == "openmpi" ? "Open MPI"
                                                     : "MPICH";
  mpi.name = fmt::format("{} {}", name, version_of(mpi.launcher));
  mpis.push_back(mpi);
}

/// A file of this build or installation; "" if there is none.
std::string own_file(const Words& places) {
  std::error_code none;
  const fs::path here = fs::read_symlink("/proc/self/exe", none).parent_path();
  for (const std::string& place : places) {
    const fs::path file = here / place;
    if (fs::exists(file, none)) return fs::canonical(file, none);
  }
  return {};
}

std::string worker() {
  return own_file({"bench/muster-bench-mpi", "../libexec/muster/muster-bench-mpi"});
}
std::string preload() {
  const char* const set = secure_getenv("MUSTER_MPI_PRELOAD");
  return set != nullptr
             ? set
             : own_file({"mpi/libmuster_mpi_preload.so", "../lib/libmuster_mpi_preload.so",
                         MUSTER_LIBDIR "/libmuster_mpi_preload.so"});
}
std::string component() { return own_file({"mpi/mca_coll_muster.so"}); }

Words mca(std::string name, std::string value) {
  return {"--mca", std::move(name), std::move(value)};
}

void add_openmpi(std::vector<MpiContender>& all, const MpiInstallation& mpi) {
  const fs::path info = fs::path(mpi.launcher).parent_path() / "ompi_info";
  const Outcome told = run_program({info, "--parsable", "--path", "pkglibdir"}, 20);
  const Outcome components = run_program({info, "--parsable"}, 20);
  const auto has = [&](const std::string& name) {
    return components.out.find("mca:coll:" + name + ":") != std::string::npos;
  };
  int number = 0;
  for (const char* name :
       {"linear", "double ring", "recursive doubling", "bruck", "two ranks", "tree"}) {
    Words arguments = mca("coll_tuned_use_dynamic_rules", "1");
    for (const auto& word : mca("coll_tuned_barrier_algorithm", std::to_string(++number)))
      arguments.push_back(word);
    all.push_back({&mpi, fmt::format("tuned {}", name), false, arguments, {}});
  }
  for (const char* name : {"sm", "xhc", "acoll"}) {
    if (!has(name)) continue;
    all.push_back({&mpi, name, false, mca(fmt::format("coll_{}_priority", name), "100"), {}});
  }
  std::string folder = told.out.substr(0, told.out.find('\n'));
  folder = folder.substr(folder.rfind(':') + 1);
  // It has to be of the same interface as the Open MPI: the one it was built against.
  if (!component().empty() && mpi.launcher.starts_with("/usr/")) {
    const std::string path = folder + ":" + fs::path(component()).parent_path().string();
    all.push_back({&mpi, "muster (component)", true, mca("mca_base_component_path", path), {}});
  }
}

std::vector<MpiContender> contenders_of(const MpiInstallation& mpi, const MpiRunOptions& options) {
  std::vector<MpiContender> all{{&mpi, "default", false, {}, {}}};
  if (mpi.family == "openmpi") {
    add_openmpi(all, mpi);
  } else if (mpi.family == "mpich") {
    for (const char* name : {"release_gather", "mpir"}) {
      all.push_back({&mpi, name, false, {}, {{"MPIR_CVAR_BARRIER_POSIX_INTRA_ALGORITHM", name}}});
    }
  } else {
    for (const auto& [number, name] : {std::pair{1, "dissemination"},
                                       {2, "recursive doubling"},
                                       {5, "binomial"},
                                       {7, "shm flat"},
                                       {8, "shm k-nomial"}}) {
      all.push_back({&mpi, name, false, {}, {{"I_MPI_ADJUST_BARRIER", std::to_string(number)}}});
    }
  }
  if (!preload().empty())
    all.push_back({&mpi, "muster (preload)", true, {}, {{"LD_PRELOAD", preload()}}});
  if (!options.own_algorithms) {
    std::erase_if(all, [](const MpiContender& c) { return !c.ours && c.name != "default"; });
  }
  for (std::size_t at = 0; at < all.size() && options.report; ++at) {
    if (!all[at].ours) continue;
    MpiContender reporting = all[at];
    reporting.name += ", report";
    reporting.reports = true;
    reporting.environment.emplace_back("MUSTER_REPORT", "/dev/null");
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(++at), std::move(reporting));
  }
  return all;
}

bool can_have(const MpiContender& contender, unsigned ranks) {
  if (ranks == 1) return !contender.ours;  // nobody to wait for: MPI's own serves
  return ranks == 2 || contender.name != "tuned two ranks";
}

/// The number after `name=` in `text`; NaN if there is none.
double value_of(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(" " + name + "=");
  return at == std::string::npos ? nan : std::atof(text.c_str() + at + name.size() + 2);
}

/// By the counters that ranks printed: all barriers were ours.
bool are_ours(const std::string& err) {
  std::istringstream lines(err);
  double own = 0;
  double theirs = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("counters:") == std::string::npos) continue;
    own += value_of(line, "inside");
    theirs += value_of(line, "theirs");
  }
  return own > 0 && theirs == 0;
}

/// Why a launch counts for nothing; "" if it counts.
std::string fault_of(const MpiContender& contender, const Outcome& outcome) {
  if (!outcome.in_time) return "did not finish in time";
  if (outcome.out.find("result ") == std::string::npos) {
    return fmt::format("ended with {}: {}", outcome.exit_code,
                       first_words(outcome.err.substr(0, 400)));
  }
  return why_not_ours(contender, outcome.err);
}

void launch(MpiSamples& samples, const MpiRunOptions& options) {
  Words command = mpi_command(samples.contender, samples.ranks);
  command.push_back(fmt::format("{}", options.seconds));
  const Outcome outcome = run_program(command, options.timeout_s);
  const std::string fault = fault_of(samples.contender, outcome);
  if (!fault.empty() && samples.why.empty()) samples.why = fault;
  const std::string line =
      fault.empty() ? first_line(outcome.out.substr(outcome.out.find("result "))) : "";
  samples.latency.push_back(value_of(line, "mean"));
  samples.least.push_back(value_of(line, "least"));
  samples.greatest.push_back(value_of(line, "greatest"));
  samples.cycle.push_back(value_of(line, "cycle"));
  samples.skew.push_back(value_of(line, "skew"));
  samples.fetch.push_back(value_of(line, "fetch"));
  samples.fetch_median.push_back(value_of(line, "fetch_median"));
  samples.count.push_back(value_of(line, "count"));
}

std::array<std::vector<double>*, 8> values_of(MpiSamples& samples) {
  return {&samples.latency, &samples.least, &samples.greatest,     &samples.cycle,
          &samples.skew,    &samples.fetch, &samples.fetch_median, &samples.count};
}

std::vector<double> rounds_that_count(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return values;
}

/// After the first round: whoever is too far from the best among as many ranks.
void find_hopeless(std::vector<MpiSamples>& all, double times) {
  std::map<unsigned, double> best;
  for (const MpiSamples& samples : all) {
    const double latency = samples.latency.front();
    if (!std::isnan(latency))
      best[samples.ranks] =
          std::fmin(best.try_emplace(samples.ranks, latency).first->second, latency);
  }
  for (MpiSamples& samples : all)
    samples.hopeless = samples.latency.front() > times * best[samples.ranks];
}

/// As many rounds as all have; where that is none, the first of those that have had it.
void keep_whole_rounds(std::vector<MpiSamples>& all) {
  std::size_t rounds = std::numeric_limits<std::size_t>::max();
  for (const MpiSamples& samples : all) rounds = std::min(rounds, samples.latency.size());
  std::erase_if(all, [](const MpiSamples& samples) { return samples.latency.empty(); });
  for (MpiSamples& samples : all) {
    for (auto* values : values_of(samples)) values->resize(std::max<std::size_t>(1, rounds));
  }
}

}  // namespace

bool ranks_are_bound(unsigned ranks) { return ranks <= usable_cpus(); }

std::vector<std::string> mpi_command(const MpiContender& contender, unsigned ranks) {
  const MpiInstallation& mpi = *contender.mpi;
  const bool bound = ranks_are_bound(ranks);
  Words words{"env"};
  Environment environment = mpi.environment;
  environment.insert(environment.end(),
                     {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
  if (mpi.family == "intel") environment.emplace_back("I_MPI_PIN", bound ? "1" : "0");
  for (const auto& [name, value] : environment) words.push_back(name + "=" + value);
  words.insert(words.end(), {mpi.launcher, "-n", std::to_string(ranks)});
  if (mpi.family == "openmpi")
    words.insert(words.end(), {"--oversubscribe", "--bind-to", bound ? "core" : "none"});
  if (mpi.family == "mpich") words.insert(words.end(), {"-bind-to", bound ? "core" : "none"});
  const Words& more = contender.launcher_arguments;
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("env");  // for the ranks, not for the launcher
  for (const auto& [name, value] : contender.environment) words.push_back(name + "=" + value);
  if (contender.ours) words.emplace_back("MUSTER_MPI_COUNTERS=1");
  words.insert(words.end(), {worker(), mpi.library});
  return words;
}

MpiService try_launcher(const Words& launcher, const Environment& environment,
                        const std::string& library) {
  constexpr double timeout_s = 30;
  if (worker().empty())
    throw Error(Status::unsupported, "muster-bench-mpi is not beside this program: build it");
  Words words = launcher;
  words.insert(words.end(), {"env", "MUSTER_MPI_COUNTERS=1", "MUSTER_VERBOSE=1",
                             "OMPI_MCA_coll_muster_verbose=1"});
  for (const auto& [name, value] : environment) words.push_back(name + "=" + value);
  words.insert(words.end(), {worker(), library, "0.05"});
  const Outcome outcome = run_program(words, timeout_s);
  const std::size_t result = outcome.out.find("result ");
  if (!outcome.in_time || result == std::string::npos) {
    throw Error(Status::invalid,
                outcome.in_time
                    ? fmt::format("{} ended with {}: {}", launcher.front(), outcome.exit_code,
                                  first_words(outcome.err.substr(0, 400)))
                    : fmt::format("{} did not end in {} s", launcher.front(), timeout_s));
  }
  MpiService service;
  const std::string told = first_line(outcome.out.substr(result));
  service.mean_us = value_of(told, "mean");
  service.ranks = static_cast<unsigned>(value_of(told, "ranks"));
  service.cpus = static_cast<unsigned>(value_of(told, "cpus"));
  const auto after = [&](const std::string& words_before) {
    const std::size_t at = outcome.err.find(words_before);
    return at == std::string::npos ? std::string{}
                                   : first_line(outcome.err.substr(at + words_before.size()));
  };
  service.placed = after("; placements ");
  service.ours = are_ours(outcome.err);
  if (!service.ours) service.why = after("the MPI's own barrier serves: ");
  return service;
}

std::string mpi_preload() { return preload(); }

std::string default_peers() { return own_file({"../peers"}); }

std::string why_not_ours(const MpiContender& contender, const std::string& err) {
  return !contender.ours || are_ours(err)
             ? ""
             : "the barriers were not ours: set MUSTER_VERBOSE=1 to see why";
}

std::vector<MpiInstallation> find_mpis(const std::string& peers) {
  std::vector<MpiInstallation> mpis;
  add_debian(mpis);
  for (const char* name : {"openmpi", "mpich", "impi-rt"}) {
    if (!peers.empty()) add_peer(mpis, peers + "/" + name);
  }
  return mpis;
}

std::vector<MpiContender> find_contenders(const MpiRunOptions& options,
                                          std::vector<MpiInstallation>& mpis) {
  if (worker().empty())
    throw Error(Status::unsupported, "muster-bench-mpi is not beside this program: build it");
  mpis = find_mpis(options.peers);
  if (mpis.empty()) {
    throw Error(Status::unsupported,
                "no MPI found: install openmpi-bin or mpich, or run make peers");
  }
  std::vector<MpiContender> found;
  for (const MpiInstallation& mpi : mpis) {
    for (const MpiContender& contender : contenders_of(mpi, options)) {
      const std::string full = mpi.name + " " + contender.name;
      const bool fits =
          options.ranks.empty() || std::any_of(options.ranks.begin(), options.ranks.end(),
                                               [&](unsigned r) { return can_have(contender, r); });
      if (fits && full.find(options.only) != std::string::npos) {
        found.push_back(contender);
      }
    }
  }
  if (found.empty())
    throw Error(Status::unknown_name, fmt::format("nothing is named like \"{}\"", options.only));
  return found;
}

MpiRunResults run_mpi(const MpiRunOptions& options,
                      const std::function<void(const Progress&)>& report) {
  MpiRunResults results;
  const std::vector<MpiContender> contenders = find_contenders(options, results.mpis);
  for (const unsigned ranks : options.ranks) {
    for (const MpiContender& contender : contenders) {
      if (!can_have(contender, ranks)) continue;
      MpiSamples samples;
      samples.contender = contender;
      samples.ranks = ranks;
      results.samples.push_back(samples);
    }
  }
  const std::int64_t start_ns = clock_ns();
  const double launches = static_cast<double>(options.rounds * results.samples.size());
  double launches_done = 0;
  for (unsigned round = 0; round < options.rounds; ++round) {
    for (MpiSamples& samples : results.samples) {
      const double share = launches_done / launches;
      launches_done += 1;
      report({share,
              share > 0 ? 1e-9 * static_cast<double>(clock_ns() - start_ns) * (1 / share - 1) : 0,
              fmt::format("round {} of {}: {}, {}, {}", round + 1, options.rounds,
                          counted(samples.ranks, "ranks"), samples.contender.mpi->name,
                          samples.contender.name)});
      if (samples.why.empty() && !samples.hopeless) {
        launch(samples, options);
      } else {  // what failed once, or takes too long, is not waited for again
        for (auto* values : values_of(samples)) values->push_back(nan);
      }
      results.stopped = stop_asked();
      if (results.stopped) break;
    }
    if (results.stopped) break;
    if (round == 0) find_hopeless(results.samples, options.hopeless);
  }
  if (results.stopped) keep_whole_rounds(results.samples);
  return results;
}

double median_of_rounds(const std::vector<double>& values) {
  const std::vector<double> good = rounds_that_count(values);
  return good.empty() ? nan : median(good);
}

double mean_of_rounds(const std::vector<double>& values) {
  const std::vector<double> good = rounds_that_count(values);
  return std::accumulate(good.begin(), good.end(), 0.0) / static_cast<double>(good.size());
}

const MpiSamples* best_peer(const MpiRunResults& results, unsigned ranks) {
  const MpiSamples* best = nullptr;
  for (const MpiSamples& samples : results.samples) {
    if (samples.contender.ours || samples.ranks != ranks) continue;
    const double latency = median_of_rounds(samples.latency);
    if (std::isnan(latency)) continue;
    if (best == nullptr || latency < median_of_rounds(best->latency)) best = &samples;
  }
  return best;
}

PairedDifference report_cost(const MpiRunResults& results, const MpiSamples& reporting) {
  if (!reporting.contender.reports) return {};
  for (const MpiSamples& samples : results.samples) {
    const MpiContender& without = samples.contender;
    if (without.mpi == reporting.contender.mpi && samples.ranks == reporting.ranks &&
        without.name + ", report" == reporting.contender.name)
      return paired_difference(reporting.latency, samples.latency, 1);
  }
  return {};
}

}  // namespace muster::bench
