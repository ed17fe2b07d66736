// SPDX-License-Identifier: BSD-3-Clause
// `muster run`: an unmodified program whose threads are placed, and whose mutexes are others. All
// is decided here and told to run/'s preload by the environment; then this process becomes the
// program.
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "barrier/registry.hpp"
#include "cli/command.hpp"
#include "cli/contention.hpp"
#include "cli/named_machine.hpp"
#include "cli/output.hpp"
#include "cli/program.hpp"
#include "cli/subcommands.hpp"
#include "machine/usable_cpus.hpp"
#include "placement/placer.hpp"
#include "topology/topology.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr const char* affinity_names[] = {"hierarchical", "none"};
constexpr const char* memory_names[] = {"default", "aware"};

struct Options {
  unsigned servers = 0;
  std::string affinity = "hierarchical";
  std::string memory = "default";
  std::string mutex;
  std::string barrier;
  bool bind_main = false;
  bool verbose = false;
  bool report = false;
  std::string machine;
  std::string json;
  std::vector<std::string> program;
};

template <class Names>
void check_name(const char* what, const std::string& name, const Names& names) {
  if (std::find(std::begin(names), std::end(names), name) != std::end(names)) return;
  throw Error(Status::unknown_name,
              fmt::format("no {} \"{}\"; there are: {}", what, name, fmt::join(names, ", ")));
}

// ---- the program ----

/// The file that the kernel would run; nothing where there is none. As execvp() looks.
std::optional<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return access(name.c_str(), F_OK) == 0 ? std::optional(name) : std::nullopt;
  }
  const char* const path = secure_getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (access(file.c_str(), X_OK) == 0 && fs::is_regular_file(file)) return file;
  }
  return std::nullopt;
}

std::string head_of(const std::string& path, std::size_t bytes, std::size_t from = 0) {
  std::ifstream file(path, std::ios::binary);
  std::string head(bytes, '\0');
  file.seekg(static_cast<std::streamoff>(from));
  file.read(head.data(), static_cast<std::streamsize>(bytes));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return head;
}

/// The dynamic loader that a program of our own architecture names; "" if it names none.
std::string loader_of(const std::string& path, const Elf64_Ehdr& header) {
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const std::string bytes =
        head_of(path, sizeof(Elf64_Phdr), header.e_phoff + std::size_t{i} * header.e_phentsize);
    Elf64_Phdr segment{};
    if (bytes.size() < sizeof segment) break;
    std::memcpy(&segment, bytes.data(), sizeof segment);
    if (segment.p_type != PT_INTERP) continue;
    const std::size_t bytes_of_name = std::min<std::size_t>(segment.p_filesz, PATH_MAX);
    const std::string name = head_of(path, bytes_of_name, segment.p_offset);
    return name.substr(0, name.find('\0'));
  }
  return {};
}

/// Null if it is no program for 64-bit machines.
std::optional<Elf64_Ehdr> elf_header(const std::string& path) {
  const std::string bytes = head_of(path, sizeof(Elf64_Ehdr));
  Elf64_Ehdr header{};
  if (bytes.size() < sizeof header || bytes.compare(0, SELFMAG, ELFMAG) != 0) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return std::nullopt;
  return header;
}

/// Whether the kernel gives it rights that its user has not; the loader then preloads nothing.
bool is_privileged(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return false;
  if ((file.st_mode & S_ISUID) != 0 && file.st_uid != getuid()) return true;
  if ((file.st_mode & S_ISGID) != 0 && (file.st_mode & S_IXGRP) != 0 && file.st_gid != getgid()) {
    return true;
  }
  return geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

/// The sanitizer that these names, each after a 0, tell of; "" if there is none. All of them have a
/// malloc, mutexes and threads of their own, and some insist on being the first.
std::string sanitizer_in(const std::string& names) {
  for (const auto& [name, text] :
       {std::pair{"asan", "AddressSanitizer"}, std::pair{"hwasan", "HWAddressSanitizer"},
        std::pair{"lsan", "LeakSanitizer"}, std::pair{"msan", "MemorySanitizer"},
        std::pair{"tsan", "ThreadSanitizer"}}) {
    for (const std::string& sign :
         {fmt::format("__{}_init", name), fmt::format("lib{}.so", name)}) {
      if (names.find('\0' + sign) != std::string::npos) return text;
    }
  }
  return {};
}

/// Names that a program of our own architecture has for the dynamic loader: functions, libraries.
std::string dynamic_names(const std::string& path, const Elf64_Ehdr& header) {
  const auto section = [&](std::size_t number) {
    const std::string bytes =
        head_of(path, sizeof(Elf64_Shdr), header.e_shoff + number * header.e_shentsize);
    Elf64_Shdr its{};
    if (bytes.size() == sizeof its) std::memcpy(&its, bytes.data(), sizeof its);
    return its;
  };
  const std::uintmax_t most = fs::file_size(path);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    if (const Elf64_Shdr symbols = section(i); symbols.sh_type == SHT_DYNSYM) {
      const Elf64_Shdr names = section(symbols.sh_link);
      return names.sh_size > most ? "" : head_of(path, names.sh_size, names.sh_offset);
    }
  }
  return {};
}

/// Why nothing can be preloaded into it; "" if it can. A script is as good as its interpreter.
std::string why_not(const std::string& path, int scripts = 0) {
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return {};  // the kernel says why it does not start
  if (is_privileged(path)) {
    return fmt::format("{} runs with another user's rights, so nothing is preloaded into it", path);
  }
  const std::string head = head_of(path, 256);
  if (head.starts_with("#!") && scripts < 4) {
    const std::size_t begin = head.find_first_not_of(" \t", 2);
    if (begin == std::string::npos) return {};
    return why_not(head.substr(begin, head.find_first_of(" \t\n", begin) - begin), scripts + 1);
  }
  if (!head.starts_with(ELFMAG)) return {};
  const auto own = elf_header("/proc/self/exe");
  const auto its = elf_header(path);
  if (!its || !own || its->e_machine != own->e_machine) {
    return fmt::format("{} is for another architecture than this muster", path);
  }
  const std::string own_loader = loader_of("/proc/self/exe", *own);
  if (fs::equivalent(path, own_loader, none)) return {};  // it loads the program that it is told
  const std::string loader = loader_of(path, *its);
  if (loader.empty()) {
    return fmt::format("{} is linked statically, so nothing can be preloaded into it", path);
  }
  if (loader != own_loader) {
    return fmt::format("{} is loaded by {}, and so has another C library", path, loader);
  }
  if (const std::string sanitizer = sanitizer_in(dynamic_names(path, *its)); !sanitizer.empty()) {
    return fmt::format(
        "{} is built with {}, which takes the place of the same functions: run it without muster "
        "run, or build it without",
        path, sanitizer);
  }
  return {};
}

// ---- the preloads ----

/// In the build tree, where `folder` has it, or where it was installed; "" if it is nowhere.
std::string find_library(const std::string& folder, const std::string& name) {
  std::string found = own_file({folder + "/" + name, "../lib/" + name, MUSTER_LIBDIR "/" + name});
  if (found.find_first_of(" :") == std::string::npos) return found;
  throw Error(Status::system, "LD_PRELOAD cannot name " + found +
                                  ": it parts libraries at blanks and colons; install elsewhere");
}

/// What LD_PRELOAD shall be: ours in front of what is preloaded already.
std::string preloads(bool report, bool aware, bool barriers) {
  const std::string name = report ? "libmuster_contention.so" : "libmuster_run.so";
  const std::string run = find_library("run", name);
  if (run.empty()) {
    throw Error(Status::system, name + " is neither beside this program nor installed");
  }
  std::vector<std::string> all{run};
  if (barriers) {
    all.push_back(find_library("run", "libmuster_barriers.so"));
    if (all.back().empty()) {
      throw Error(Status::unsupported, "--barrier: this build has no libmuster_barriers.so");
    }
  }
  if (aware) {
    all.push_back(find_library("src/allocation", "libmuster-malloc.so"));
    if (all.back().empty()) {
      throw Error(
          Status::unsupported,
          "--memory aware: this build has no libmuster-malloc.so (package libjemalloc-dev)");
    }
  }
  const char* const before = secure_getenv("LD_PRELOAD");
  std::istringstream rest(before != nullptr ? before : "");
  for (std::string library; std::getline(rest, library, ':');) {
    const std::string file = fs::path(library).filename();
    if (const std::string sanitizer = sanitizer_in('\0' + file); !sanitizer.empty()) {
      throw Error(Status::unsupported,
                  fmt::format("LD_PRELOAD has {} ({}), which takes the place of the same functions",
                              sanitizer, library));
    }
    // A `muster run` inside of another takes its place.
    const bool is_ours = file == "libmuster_run.so" || file == "libmuster_contention.so" ||
                         file == "libmuster_barriers.so";
    if (!library.empty() && !is_ours && std::find(all.begin(), all.end(), library) == all.end()) {
      all.push_back(library);
    }
  }
  return fmt::format("{}", fmt::join(all, ":"));
}

// ---- where threads go ----

struct Plan {
  std::vector<Placer::Server> servers;
  std::vector<unsigned> cores;       ///< for threads, nearest first; the servers' last
  std::vector<unsigned> numa_nodes;  ///< of the servers, by the system's numbers
};

Plan plan(const Topology& topology, unsigned servers) {
  if (!topology.is_this_machine()) {
    throw Error(Status::invalid,
                "threads and memory are placed on this machine only: unset MUSTER_TOPOLOGY");
  }
  Placer placer{CoreTree(topology)};
  Plan made;
  for (unsigned i = 0; i < servers; ++i)
    made.servers.push_back(placer.add_server(ServerPolicy::pack));
  for (const Placer::Server& server : made.servers) {
    const NumaCores& numa = placer.tree().numa_nodes()[placer.tree().numa_of(server.core)];
    if (numa.os_index) made.numa_nodes.push_back(*numa.os_index);
  }
  if (servers == 0) {
    made.cores = placer.tree().outwards_from(0, CoreTree::Itself::included);
    return made;
  }
  // As many threads as there are cores for them take one each, nearest first.
  const auto& on = placer.now().servers;
  const auto free = static_cast<unsigned>(std::count(on.begin(), on.end(), 0U));
  made.cores = placer.add_threads(free != 0 ? free : placer.tree().cores());
  // Who serves there says so (src/machine/preload.hpp). Else a core that all others have a thread
  // before is better than none.
  for (unsigned core = 0; core < on.size() && free != 0; ++core) {
    if (on[core] != 0) made.cores.push_back(core);
  }
  return made;
}

std::string cores_text(const Topology& topology, const std::vector<unsigned>& cores) {
  std::vector<std::string> all;
  for (const unsigned core : cores) {
    all.push_back(fmt::format("{}", fmt::join(topology.cores()[core].pus, ",")));
  }
  return fmt::format("{}", fmt::join(all, ";"));
}

// ---- the command ----

/// What stands after "--", to the letter: CLI11 would take "[a,b]" apart.
std::vector<std::string> words_after_dashes() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  bool after = false;
  for (std::string word; std::getline(file, word, '\0');) {
    if (after) words.push_back(word);
    after = after || word == "--";
  }
  return words;
}

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

/// The program shall find the file wherever it goes; and an old one is not added to.
std::string fresh_file(const std::string& path) {
  std::string absolute = fs::absolute(path);
  const int file = open(absolute.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) {
    throw Error(Status::system, fmt::format("--json: {}: {}", path, std::strerror(errno)));
  }
  close(file);
  return absolute;
}

[[noreturn]] void become(const std::vector<std::string>& program) {
  std::vector<char*> argv;
  for (const std::string& word : program) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  const int error = errno;
  const std::string why = std::strerror(error);
  std::fputs(fmt::format("muster: {}: {}\n", printable(program.front()), why).c_str(), stderr);
  std::_Exit(error == ENOENT ? 127 : 126);  // as shells say it
}

void tell(const Options& options, const Topology* topology, const Plan& made) {
  note("muster run: {}\n", printable(fmt::format("{}", fmt::join(options.program, " "))));
  if (topology != nullptr) {
    for (std::size_t i = 0; i < made.servers.size(); ++i) {
      note("  server {}: PUs {}{}\n", i,
           fmt::join(topology->cores()[made.servers[i].core].pus, ","),
           options.affinity == "none" ? "" : ", for threads last");
    }
    if (options.affinity != "none") {
      note("  threads: PUs {}, nearest first\n", cores_text(*topology, made.cores));
    }
    if (options.memory == "aware") {
      const std::set<unsigned> nodes(made.numa_nodes.begin(), made.numa_nodes.end());
      note("  memory: {} {}\n",
           nodes.size() == 1 ? "from the servers' NUMA node"
                             : "as by default, since the servers are on NUMA nodes",
           fmt::join(nodes, ","));
    }
  }
  if (!options.mutex.empty()) note("  mutexes: {}\n", options.mutex);
  if (!options.barrier.empty()) note("  barriers: {}\n", options.barrier);
}

/// The program as it is, watched; then what was seen. Never returns: the exit code is the
/// program's, as shells say it.
[[noreturn]] void become_watched(const Options& options) {
  if (!options.json.empty()) expect_writable(options.json);
  const char* const tmpdir = secure_getenv("TMPDIR");
  const std::string folder = fs::absolute(tmpdir != nullptr && *tmpdir != '\0' ? tmpdir : "/tmp");
  std::string file = folder + "/muster-run-XXXXXX";
  const int made = mkstemp(file.data());
  if (made < 0) {
    throw Error(Status::system, fmt::format("TMPDIR: {}: {}", folder, std::strerror(errno)));
  }
  close(made);
  set("MUSTER_RUN_JSON", file);
  // Ctrl-C is the program's: what it has done by then is told.
  const auto interrupt = std::signal(SIGINT, SIG_IGN);
  const auto quit = std::signal(SIGQUIT, SIG_IGN);
  const pid_t child = fork();
  if (child < 0) throw Error(Status::system, fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) {
    std::signal(SIGINT, interrupt);
    std::signal(SIGQUIT, quit);
    become(options.program);
  }
  static pid_t program = 0;
  program = child;
  for (const int signal : {SIGTERM, SIGHUP}) {
    std::signal(signal, [](int which) { kill(program, which); });
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::ifstream lines(file);
  unlink(file.c_str());
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    try {
      auto process = nlohmann::json::parse(line);
      predict_contention(process, options.machine);
      if (process.at("process") == child || process.at("waited") != 0) {
        note("{}", format_contention(process));
      }
      all += process.dump() + "\n";
    } catch (const nlohmann::json::exception&) {
      note("muster run: a line of the report is damaged, and left out\n");
    }
  }
  if (all.empty()) {
    note("muster run: no report: no process of the program ended by exit and could write one\n");
  } else {
    note(
        "not watched: read-write locks, spin locks, semaphores; Muster's own locks, of\n"
        "  which lock.explain() tells; threads that take no mutex\n");
  }
  if (!options.json.empty() && !all.empty()) write_file(options.json, all);
  std::_Exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

void check_report(const Options& options) {
  if (!options.machine.empty()) static_cast<void>(named_machine(options.machine));  // throws
  const bool changes = options.servers != 0 || options.memory != "default" || options.bind_main ||
                       !options.mutex.empty() || !options.barrier.empty();
  if (!changes) return;
  throw Error(Status::invalid,
              "--report watches the program as it is: without --servers, --memory, --mutex, "
              "--barrier and --bind-main");
}

void run(Options& options) {
  const std::vector<std::string> exactly = words_after_dashes();
  if (!exactly.empty()) {
    if (exactly.front() != options.program.front()) {
      throw Error(Status::invalid,
                  "a -- that is the program's own needs one before the program: muster run "
                  "[options] -- program arguments...");
    }
    options.program = exactly;
  }
  if (options.report) check_report(options);
  if (!options.report && !options.machine.empty()) {
    throw Error(Status::invalid, "--machine goes with --report: a program runs on this machine");
  }
  check_name("affinity", options.affinity, affinity_names);
  check_name("memory", options.memory, memory_names);
  if (!options.mutex.empty()) check_name("mutex", options.mutex, mutex_names);
  if (!options.barrier.empty()) parse_algorithm(options.barrier);
  const bool binds = options.affinity == "hierarchical" && !options.report;
  const bool aware = options.memory == "aware";
  if (aware && options.servers == 0) {
    throw Error(Status::invalid,
                "--memory aware takes memory from the servers' NUMA node: say --servers N");
  }
  if (!binds && !aware && options.servers != 0) {
    throw Error(Status::invalid, "--servers has threads go around cores: not with --affinity none");
  }
  if (!binds && options.bind_main) {
    throw Error(Status::invalid, "--bind-main binds the main thread: not with --affinity none");
  }
  const std::optional<std::string> file = find_program(options.program.front());
  if (file) {
    if (const std::string reason = why_not(*file); !reason.empty()) {
      throw Error(Status::unsupported, reason);
    }
  }
  set("LD_PRELOAD", preloads(options.report, aware, !options.barrier.empty()));
  for (const char* name :
       {"MUSTER_RUN_CORES", "MUSTER_RUN_MAIN", "MUSTER_RUN_MUTEX", "MUSTER_RUN_BARRIER",
        "MUSTER_RUN_CPUS", "MUSTER_RUN_REPORT", "MUSTER_RUN_JSON"}) {
    unsetenv(name);
  }
  std::optional<Topology> topology;
  Plan made;
  if (binds || aware) {
    topology = Topology::from_spec_or_environment("");
    made = plan(*topology, options.servers);
  }
  if (binds) set("MUSTER_RUN_CORES", cores_text(*topology, made.cores));
  if (aware) {
    if (made.numa_nodes.size() < made.servers.size()) {
      throw Error(Status::unsupported, "--memory aware: a server's core has no NUMA node's memory");
    }
    set("MUSTER_MEMORY_SERVERS", fmt::format("{}", fmt::join(made.numa_nodes, ",")));
  }
  if (!aware) {
    // Programs that this one starts: the preload leaves them alone, and need not be the second.
    const char* const theirs = secure_getenv("ASAN_OPTIONS");
    const std::string before = theirs != nullptr ? std::string(theirs) + ":" : "";
    set("ASAN_OPTIONS", before + "verify_asan_link_order=0");
  }
  if (options.bind_main) set("MUSTER_RUN_MAIN", "1");
  if (!options.mutex.empty()) set("MUSTER_RUN_MUTEX", options.mutex);
  if (!options.barrier.empty()) set("MUSTER_RUN_BARRIER", options.barrier);
  if (const auto quota = cpu_quota()) set("MUSTER_RUN_CPUS", fmt::format("{}", *quota));
  if (options.verbose) set("MUSTER_RUN_REPORT", "1");
  if (options.report) become_watched(options);
  if (!options.json.empty()) {
    const auto program = find_program(options.program.front());
    // Else it does not start, and what is in the file stays.
    if (program && access(program->c_str(), X_OK) == 0) {
      set("MUSTER_RUN_JSON", fresh_file(options.json));
    }
  }
  set("MUSTER_RUN_PID", fmt::format("{}", getpid()));
  if (options.verbose) tell(options, topology ? &*topology : nullptr, made);
  become(options.program);
}

}  // namespace

void add_run(Command& app) {
  const auto options = std::make_shared<Options>();
  Command* const command = app.add_subcommand(
      "run", "Run an unmodified program with its threads placed and its mutexes swapped");
  command
      ->add_option("--servers", options->servers,
                   "Cores for servers: threads go around them, and there last")
      ->check(Range(0U, 1U << 20))
      ->capture_default_str();
  command
      ->add_option(
          "--affinity", options->affinity,
          "Bind each new thread to a core: hierarchical (nearest to the servers, or to the "
          "first core), or none")
      ->words({std::begin(affinity_names), std::end(affinity_names)})
      ->capture_default_str();
  command
      ->add_option("--memory", options->memory,
                   "Where malloc takes memory: default, or aware (on the servers' NUMA node)")
      ->words({std::begin(memory_names), std::end(memory_names)})
      ->capture_default_str();
  command
      ->add_option(
          "--mutex", options->mutex,
          fmt::format("What pthread mutexes are: {} (as they are, counted); default: left alone",
                      fmt::join(std::rbegin(mutex_names), std::rend(mutex_names), ", ")))
      ->words({std::begin(mutex_names), std::end(mutex_names)});
  command
      ->add_flag("--barrier{auto}", options->barrier,
                 "Barriers are Muster's: of pthreads, OpenMP and ggml; =NAME: OpenMP's "
                 "are of this algorithm")
      ->listed({"algorithm"});
  command->add_flag("--bind-main", options->bind_main, "The main thread is placed, too");
  command->add_flag("--verbose", options->verbose,
                    "Say on standard error what is done and, when a process ends, what happened");
  command->add_flag("--report", options->report,
                    "Change nothing; say at the end which mutexes threads waited for, how long, "
                    "who had taken them, and what would help by the model");
  add_machine_option(*command, options->machine, "--machine",
                     "this machine; with --report, the machine that is modelled");
  command->add_option("--json", options->json,
                      "Write what happened to this file, a JSON object in a line for each process");
  command->add_option("program", options->program, "After --: the program and its arguments")
      ->required();
  command->footer(
      "The exit code is the program's; 127 if there is none of that name, 126 if it cannot be run. "
      "Critical sections are not delegated: doc/run.md.");
  command->callback([options] { run(*options); });
}

}  // namespace muster
