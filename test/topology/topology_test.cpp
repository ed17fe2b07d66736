// SPDX-License-Identifier: BSD-3-Clause
#include "topology/topology.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <hwloc.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>

#include "describe.hpp"

namespace {

std::atomic<unsigned> bindings{0};

/// hwloc's, as far as the tests know.
std::mutex of_hwloc;
std::atomic<bool> stays_in_hwloc{false};
std::atomic<bool> is_in_hwloc{false};

}  // namespace

/// Instead of the C library's: hwloc's calls are counted.
extern "C" int sched_setaffinity(pid_t thread, std::size_t bytes, const cpu_set_t* cpus) noexcept {
  ++bindings;
  return static_cast<int>(syscall(SYS_sched_setaffinity, thread, bytes, cpus));
}

/// hwloc's, which may take as long with its mutex as its plugins do.
extern "C" int hwloc_topology_init(hwloc_topology_t* made) {
  static const auto real =
      reinterpret_cast<int (*)(hwloc_topology_t*)>(dlsym(RTLD_NEXT, "hwloc_topology_init"));
  const std::scoped_lock lock(of_hwloc);
  is_in_hwloc = true;
  while (stays_in_hwloc) sched_yield();
  is_in_hwloc = false;
  return real(made);
}

namespace muster {
namespace {

std::vector<std::string> names(const ActiveLevels& active) {
  std::vector<std::string> result;
  for (const Level& level : active.levels) result.push_back(level.name);
  return result;
}

// The error's text; fails the test if there is no error of that status.
template <class Action>
std::string error_of(Status status, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), status) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

// A file of its own that goes away.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& content, const std::string& ending = ".xml") {
    std::string name = ::testing::TempDir() + "muster-topology-XXXXXX" + ending;
    const int descriptor = mkstemps(name.data(), static_cast<int>(ending.size()));
    EXPECT_GE(descriptor, 0);
    close(descriptor);
    path = name;
    std::ofstream(path) << content;
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { std::filesystem::remove(path); }

  std::string path;
};

// Units of a level do not overlap, agree with unit_of_pu, and have their cores.
void expect_consistent(const Topology& topology) {
  for (const Level& level : topology.levels()) {
    PuSet seen;
    for (const Unit& unit : level.units) {
      EXPECT_FALSE(unit.pus.empty()) << level.name;
      EXPECT_TRUE(unit.pus.is_subset_of(topology.pus())) << level.name;
      EXPECT_FALSE(unit.pus.intersects(seen)) << level.name << " " << unit.id;
      seen |= unit.pus;
      EXPECT_EQ(level.unit_of_binding(unit.pus), unit.id) << level.name;
      for (const unsigned core : unit.cores) {
        EXPECT_EQ(level.unit_of(topology.cores()[core].pus.front()), unit.id) << level.name;
      }
    }
    for (const unsigned pu : (topology.pus() - seen).to_vector()) {
      EXPECT_EQ(level.unit_of(pu), kOutside) << level.name;
    }
  }
}

TEST(Topology, ThisMachine) {
  const Topology topology = Topology::this_machine();
  EXPECT_TRUE(topology.is_this_machine());
  EXPECT_FALSE(topology.cores().empty());
  expect_consistent(topology);
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  for (const unsigned pu : topology.pus().to_vector()) EXPECT_TRUE(CPU_ISSET(pu, &allowed)) << pu;
}

/// The calling thread is not moved to all CPUs in turn, unless the system tells too little.
TEST(Topology, ThisMachineIsReadWithoutBinding) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "hwloc asks the CPUs themselves on x86 alone";
#elif HWLOC_API_VERSION < 0x00020500
  GTEST_SKIP() << "hwloc before 2.5 moves the thread";
#endif
  bindings = 0;
  const Topology told = Topology::this_machine();
  if (std::filesystem::exists("/sys/devices/system/cpu/cpu0/cache/index3")) {
    EXPECT_EQ(bindings, 0U);
  } else {
    EXPECT_GT(bindings, 0U) << "a machine without an L3, or a system that does not tell of it";
  }
  bindings = 0;
  ASSERT_EQ(setenv("HWLOC_COMPONENTS", "-linux", 1), 0);
  const Topology found = Topology::this_machine();
  ASSERT_EQ(unsetenv("HWLOC_COMPONENTS"), 0);
  EXPECT_GT(bindings, 0U) << "the CPUs were not asked";
  EXPECT_EQ(found.pus(), told.pus());
  EXPECT_EQ(found.cores().size(), told.cores().size());
}

TEST(Topology, ThisMachineAsThisThreadMayUseIt) {
  const Topology host = Topology::this_machine(Topology::Cpus::of_host);
  if (host.pus().count() < 2) GTEST_SKIP() << "one PU only";
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  unsigned last = 0;
  for (const unsigned pu : host.pus().to_vector()) {
    if (CPU_ISSET(pu, &before)) last = pu;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const Topology process = Topology::this_machine();
  const Topology again = Topology::this_machine(Topology::Cpus::of_host);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(process.pus(), PuSet{last});
  EXPECT_EQ(process.cores().size(), 1U);
  EXPECT_TRUE(process.unusable_pus().contains(host.pus().first()));
  expect_consistent(process);
  EXPECT_EQ(again.pus(), host.pus());
  // Ids stay the host's.
  EXPECT_EQ(process.cores()[0].id, host.cores()[host.core_of(last)].id);
}

TEST(Topology, SpecChoosesTheKind) {
  EXPECT_TRUE(Topology::from_spec("").is_this_machine());
  EXPECT_EQ(Topology::from_spec("package:2 core:3 pu:1").cores().size(), 6U);
  EXPECT_EQ(Topology::from_spec(test::machines / "oak.txt").cores().size(), 8U);
  EXPECT_FALSE(Topology::from_spec(test::machines / "hybrid-6p8e.xml").is_this_machine());
}

/// A machine's file where `by` stands for so many characters of the last `word`.
std::filesystem::path spoiled(const std::string& word, std::size_t replaced = 2,
                              const std::string& by = "xx") {
  std::ifstream file(test::machines / "hybrid-6p8e.xml");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  text.replace(text.rfind(word), replaced, by);
  std::string path = (std::filesystem::temp_directory_path() / "muster-XXXXXX").string();
  close(mkstemp(path.data()));
  std::ofstream(path) << text;
  return path;
}

// Such a file names PUs of which nothing else is said.
TEST(Topology, ADamagedFileHasThePusThatItDescribes) {
  const std::filesystem::path path = spoiled("type=\"PU\"");
  const std::size_t whole = Topology::from_spec(test::machines / "hybrid-6p8e.xml").pus().count();
  EXPECT_EQ(Topology::from_spec(path).pus().count(), whole - 1);
  std::filesystem::remove(path);
}

TEST(Topology, AFileThatHwlocWouldCrashOnIsRefused) {
  for (const char* const set : {"complete_cpuset", "complete_nodeset"}) {
    const std::filesystem::path path = spoiled(set);
    EXPECT_THROW(static_cast<void>(Topology::from_spec(path)), Error) << set;
    std::filesystem::remove(path);
  }
  // What is no object has fewer words, and words may be on several lines.
  for (const auto& path : {spoiled("</topology>", 0, "<cpukind cpuset=\"0x1\"></cpukind>"),
                           spoiled(" complete_cpuset", 1, "\n")}) {
    EXPECT_NO_THROW(static_cast<void>(Topology::from_spec(path)));
    std::filesystem::remove(path);
  }
}

TEST(Topology, WhatHwlocWouldTakeHoursForIsRefused) {
  for (const char* const large : {"package:128 [numa(memory=1)] core:65 pu:1", "128 0x41 1",
                                  "core:100000(indexes=1,2) pu:1", "core:99999999999999999999 pu:1",
                                  "2(memory=1)100000 1", "core:1(size=(1) core:100000 pu:1"}) {
    ASSERT_THROW(static_cast<void>(Topology::from_spec(large)), Error) << large;
  }
  EXPECT_EQ(Topology::from_spec("package:64 [numa(memory=8192)] l3:8 core:8 pu:2").pus().count(),
            8192U);
}

TEST(Topology, EnvironmentStandsInForAnEmptySpec) {
  const char* const before = std::getenv("MUSTER_TOPOLOGY");
  const std::string kept = before != nullptr ? before : "";
  setenv("MUSTER_TOPOLOGY", "core:7 pu:1", 1);
  EXPECT_EQ(Topology::from_spec_or_environment("").cores().size(), 7U);
  EXPECT_EQ(Topology::from_spec_or_environment("core:3 pu:1").cores().size(), 3U);
  setenv("MUSTER_TOPOLOGY", "cores:7", 1);
  expect_part(error_of(Status::invalid, [] { Topology::from_spec_or_environment(""); }),
              "MUSTER_TOPOLOGY: ");
  setenv("MUSTER_TOPOLOGY", "", 1);
  EXPECT_TRUE(Topology::from_spec_or_environment("").is_this_machine());
  unsetenv("MUSTER_TOPOLOGY");
  if (before != nullptr) setenv("MUSTER_TOPOLOGY", kept.c_str(), 1);
}

TEST(Topology, HwlocsEnvironmentIsNotThisMachine) {
  setenv("HWLOC_SYNTHETIC", "package:2 core:4 pu:1", 1);
  const Topology given = Topology::this_machine();
  unsetenv("HWLOC_SYNTHETIC");
  EXPECT_EQ(given.pus().count(), 8U);
  EXPECT_FALSE(given.is_this_machine());
  expect_part(given.source(), "HWLOC_SYNTHETIC");
}

TEST(Topology, UnreadableFiles) {
  expect_part(error_of(Status::invalid, [] { Topology::from_spec("/no/such/file"); }),
              "No such file");
  expect_part(error_of(Status::invalid, [] { Topology::from_spec("nothing.xml"); }),
              "No such file");
  expect_part(error_of(Status::invalid, [] { Topology::from_spec("/"); }), "is a directory");
  for (const std::string& nothing : {std::string(), std::string(100, ' ')}) {
    const ScratchFile empty(nothing);
    expect_part(error_of(Status::invalid, [&] { Topology::from_spec(empty.path); }), "is empty");
  }
  EXPECT_EQ(
      Topology::from_spec(ScratchFile(std::string(100, '\n') + "pu:2", ".txt").path).pus().count(),
      2U);
  const ScratchFile foreign("<?xml version=\"1.0\"?><svg></svg>");
  expect_part(error_of(Status::invalid, [&] { Topology::from_spec(foreign.path); }),
              "has no <topology>");
  const ScratchFile damaged("<?xml version=\"1.0\"?>\n<topology version=\"2.0\"><object type=\"Ma");
  expect_part(error_of(Status::invalid, [&] { Topology::from_spec(damaged.path); }), "damaged");
  std::string objects = "<topology version=\"2.0\">";
  std::string nodes = "pu:4";
  for (unsigned i = 0; i < 60'000; ++i)
    objects += "<object ";                                   // minutes, if each looks for its end
  for (unsigned i = 0; i < 20'000; ++i) nodes += " [numa]";  // or hwloc reads them
  expect_part(error_of(Status::invalid, [&] { Topology::from_spec(ScratchFile(objects).path); }),
              "does not end");
  expect_part(error_of(Status::invalid, [&] { Topology::from_synthetic(nodes); }), "at most 8192");
  for (const char* const text : {"Lorem ipsum", "Lorem 127.0.0.1 ipsum 127.0.0.2"}) {
    const ScratchFile prose(text, ".txt");
    const std::string said = error_of(Status::invalid, [&] { Topology::from_spec(prose.path); });
    expect_part(said, "is neither XML nor a synthetic topology");
    EXPECT_EQ(said.find("Lorem"), std::string::npos) << "what stands in it is told: " << said;
  }
  const ScratchFile version("<topology version=\"secret\"></topology>");
  const std::string told = error_of(Status::invalid, [&] { Topology::from_spec(version.path); });
  EXPECT_EQ(told.find("secret"), std::string::npos) << told;
  expect_part(error_of(Status::invalid, [] { Topology::from_spec("/dev/zero"); }),
              "is no regular file");
}

TEST(Topology, UnfitTextsAreQuotedWithoutTheirControlCharacters) {
  const std::string said =
      error_of(Status::invalid, [] { Topology::from_synthetic("core\x1b]0;x\a\xc2\x9b:2"); });
  expect_part(said, "'core\\x1b]0;x\\x07\\xc2\\x9b:2' is neither");
  EXPECT_EQ(printable("\xd1\x8f \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\xd1\x8f \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(printable("\xe0\x82\x9b \xed\xa0\x80 \xf5 \xc3"),
            "\\xe0\\x82\\x9b \\xed\\xa0\\x80 \\xf5 \\xc3");
}

TEST(Topology, XmlFromANewerHwlocSaysSo) {
  const ScratchFile future(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
      "<topology version=\"9.0\"></topology>");
  const std::string text = error_of(Status::invalid, [&] { Topology::from_spec(future.path); });
  expect_part(text, "format 9, too new for the hwloc here");
  expect_part(text, "--export-xml-flags");
}

TEST(Topology, XmlFromHwloc1IsRead) {
  const ScratchFile old(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc.dtd\">\n"
      "<topology>\n"
      "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\" complete_cpuset=\"0x3\""
      " online_cpuset=\"0x3\" allowed_cpuset=\"0x3\">\n"
      "<object type=\"Core\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\""
      " online_cpuset=\"0x1\" allowed_cpuset=\"0x1\">\n"
      "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\""
      " online_cpuset=\"0x1\" allowed_cpuset=\"0x1\"/></object>\n"
      "<object type=\"Core\" os_index=\"1\" cpuset=\"0x2\" complete_cpuset=\"0x2\""
      " online_cpuset=\"0x2\" allowed_cpuset=\"0x2\">\n"
      "<object type=\"PU\" os_index=\"1\" cpuset=\"0x2\" complete_cpuset=\"0x2\""
      " online_cpuset=\"0x2\" allowed_cpuset=\"0x2\"/></object>\n"
      "</object></topology>\n");
  EXPECT_EQ(Topology::from_spec(old.path).cores().size(), 2U);
}

TEST(Topology, MalformedSyntheticShowsHow) {
  for (const char* const bad : {"pack:2 foo:3", "core", "core:0 pu:1", " ", "package:2 ("}) {
    expect_part(error_of(Status::invalid, [bad] { Topology::from_synthetic(bad); }),
                "package:2 numa:2 l3:1 core:32 pu:1");
  }
}

TEST(Topology, EveryMachineIsConsistent) {
  for (const std::string& file : test::machine_files()) {
    SCOPED_TRACE(file);
    expect_consistent(test::machine(file));
  }
}

TEST(Topology, CoresWithoutCoreObjectsArePus) {
  const Topology topology = Topology::from_synthetic("package:2 l2:2 pu:2");
  EXPECT_EQ(topology.cores().size(), 8U);
  EXPECT_EQ(names(topology.active_levels()), (std::vector<std::string>{"L2", "PACKAGE", "NUMA"}));
}

// As hwloc describes them: in the complete sets alone, and no object. Here PU 3 is offline, so is
// all of core 2 (PUs 4 and 5), and its package is still there.
TEST(Topology, OfflinePusDoNotCount) {
  const auto sets = [](const char* online, const char* complete) {
    return std::string(" cpuset=\"") + online + "\" complete_cpuset=\"" + complete +
           "\" nodeset=\"0x1\" complete_nodeset=\"0x1\"";
  };
  const auto pu = [&](const char* number, const char* set) {
    return std::string("<object type=\"PU\" os_index=\"") + number + "\"" + sets(set, set) + "/>";
  };
  const ScratchFile file(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
      "<topology version=\"2.0\">\n<object type=\"Machine\" os_index=\"0\"" +
      sets("0xc7", "0xff") +
      " allowed_cpuset=\"0xc7\" allowed_nodeset=\"0x1\">\n"
      "<object type=\"NUMANode\" os_index=\"0\"" +
      sets("0xc7", "0xff") +
      " local_memory=\"1073741824\"/>\n<object type=\"Package\" os_index=\"0\"" +
      sets("0x07", "0x0f") + "><object type=\"Core\" os_index=\"0\"" + sets("0x03", "0x03") + ">" +
      pu("0", "0x01") + pu("1", "0x02") + "</object><object type=\"Core\" os_index=\"1\"" +
      sets("0x04", "0x0c") + ">" + pu("2", "0x04") +
      "</object></object>\n<object type=\"Package\" os_index=\"1\"" + sets("0xc0", "0xf0") +
      "><object type=\"Core\" os_index=\"3\"" + sets("0xc0", "0xc0") + ">" + pu("6", "0x40") +
      pu("7", "0x80") + "</object></object>\n</object></topology>\n");
  const Topology topology = Topology::from_spec(file.path);
  EXPECT_EQ(topology.pus(), PuSet::parse("0-2,6-7"));
  EXPECT_EQ(topology.unusable_pus(), PuSet::parse("3-5"));
  ASSERT_EQ(topology.cores().size(), 3U);
  EXPECT_EQ(topology.cores()[1].pus, (std::vector<unsigned>{2}));
  for (const unsigned gone : {3U, 5U, 1000U}) EXPECT_EQ(topology.core_of(gone), kOutside);
  const Level& packages = *topology.level(LevelKind::package);
  ASSERT_EQ(packages.units.size(), 2U);
  EXPECT_EQ(packages.units[1].pus, PuSet::parse("6-7"));
  EXPECT_EQ(topology.core_of(7), 2U);
  expect_consistent(topology);
  // Ranks go where there are cores.
  const std::vector<PuSet> ranks = topology.map_ranks(Mapping::core, 3);
  EXPECT_EQ(ranks[2], PuSet::parse("6-7"));
}

TEST(ActiveLevels, WhatIsNamedAloneHasNoTwin) {
  const Topology topology = Topology::from_synthetic("package:2 numa:1 l3:1 l2:4 core:1 pu:1");
  EXPECT_EQ(names(topology.active_levels(parse_level_mask("L3"))),
            (std::vector<std::string>{"L3"}));
  EXPECT_EQ(names(topology.active_levels(parse_level_mask("socket,l3"))),
            (std::vector<std::string>{"L3"}));
}

// By name siblings share levels: ranks bound to PUs meet in their core.
TEST(ActiveLevels, SmtSiblingsShareThoseThatAreNamed) {
  const Topology topology = Topology::from_synthetic("package:2 l2:4 l1:1 core:1 pu:2");
  EXPECT_EQ(names(topology.active_levels(parse_level_mask("smt-socket"))),
            (std::vector<std::string>{"CORE", "PACKAGE"}));
  EXPECT_EQ(names(topology.active_levels(parse_level_mask("l1"))),
            (std::vector<std::string>{"L1"}));
}

TEST(LevelMask, NamesAndAliases) {
  EXPECT_TRUE(parse_level_mask("").is_default());
  EXPECT_TRUE(parse_level_mask("default").is_default());
  using Kinds = std::vector<LevelKind>;
  EXPECT_EQ(parse_level_mask("NUMA-SOCKET").kinds, (Kinds{LevelKind::numa, LevelKind::package}));
  EXPECT_EQ(parse_level_mask("numa,socket").kinds, (Kinds{LevelKind::numa, LevelKind::package}));
  EXPECT_EQ(parse_level_mask("L3-Node-Pkg").kinds,
            (Kinds{LevelKind::l3, LevelKind::numa, LevelKind::package}));
  EXPECT_EQ(wanted_levels(parse_level_mask("socket-l2-socket")),
            (Kinds{LevelKind::l2, LevelKind::package}));
}

TEST(LevelMask, UnknownNamesListTheValidOnes) {
  for (const char* const bad : {"L9", "NUMA-", "-NUMA", "NUMA--SOCKET", "board", ","}) {
    const std::string text = error_of(Status::unknown_name, [bad] { (void)parse_level_mask(bad); });
    expect_part(text, "CORE (SMT), L1, L2, L3, GROUP, DIE, NUMA, PACKAGE (SOCKET)");
  }
}

TEST(PuSet, ReadsAndWritesLists) {
  EXPECT_EQ(PuSet::parse("0-3,8"), (PuSet{0, 1, 2, 3, 8}));
  EXPECT_EQ(PuSet::parse(" 5 "), PuSet{5});
  EXPECT_EQ(PuSet::parse("0 - 3,\t8\n, 10 - 14 : 2"), (PuSet{0, 1, 2, 3, 8, 10, 12, 14}));
  EXPECT_EQ(PuSet::parse("0-8:4"), (PuSet{0, 4, 8}));
  EXPECT_TRUE(PuSet::parse("").empty());
  EXPECT_TRUE(PuSet::parse("none").empty());
  for (const char* const text : {"0-3,8", "64", "0,2", "1-1000", "none", "0-1000:100"}) {
    EXPECT_EQ(PuSet::parse(text).to_string(), text);
  }
  for (const char* const bad : {"a", "1,", ",1", "3-1", "1-", "0-8:0", "1;2", "1048576", "-1",
                                "99999999999999999999", "0x3"}) {
    expect_part(error_of(Status::invalid, [bad] { (void)PuSet::parse(bad); }), bad);
  }
  for (const char* const bad : {"0 1", "1 0", "0-1\t2", "3,1  \n 2"}) {
    expect_part(error_of(Status::invalid, [bad] { (void)PuSet::parse(bad); }),
                "blanks separate no numbers");
  }
}

TEST(PuSet, Arithmetic) {
  const PuSet a = PuSet::parse("0-3,200");
  const PuSet b = PuSet::parse("2-5");
  EXPECT_EQ(a & b, (PuSet{2, 3}));
  EXPECT_EQ(a - b, (PuSet{0, 1, 200}));
  EXPECT_EQ(b - a, (PuSet{4, 5}));
  PuSet both = a;
  both |= b;
  EXPECT_EQ(both, PuSet::parse("0-5,200"));
  EXPECT_EQ(both.count(), 7U);
  EXPECT_TRUE(a.intersects(b));
  EXPECT_FALSE(PuSet{200}.intersects(b));
  EXPECT_TRUE((PuSet{200}).is_subset_of(a));
  EXPECT_FALSE(a.is_subset_of(b));
  EXPECT_EQ(PuSet{}.first(), PuSet::kEnd);
  EXPECT_EQ(a.next(4), 200U);
  EXPECT_EQ(a.next(201), PuSet::kEnd);
  // Equality is of contents, whatever was there before.
  EXPECT_EQ(PuSet{1000} - PuSet{1000}, PuSet{});
}

/// Forks while another thread is in hwloc, where that has its mutex: for 20 ms, or until the fork
/// is over. Status of a child that reads a topology: 0, or 1 + that of the error.
int status_of_child(bool until_forked) {
  stays_in_hwloc = true;
  std::thread reads([] { Topology::from_synthetic("pu:2"); });
  while (!is_in_hwloc) sched_yield();
  std::thread lets_it_go([&] {
    usleep(20'000);
    if (!until_forked) stays_in_hwloc = false;
  });
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    try {
      Topology::from_synthetic("pu:2");
      _exit(0);
    } catch (const Error& error) {
      _exit(1 + static_cast<int>(error.code()));
    }
  }
  stays_in_hwloc = false;
  lets_it_go.join();
  reads.join();
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "it hung";
  return WEXITSTATUS(status);
}

TEST(Fork, AwaitsAnotherThreadThatIsInHwloc) { EXPECT_EQ(status_of_child(false), 0); }

TEST(Fork, LeavesAChildWithoutHwlocWhereAThreadStaysThere) {
  EXPECT_EQ(status_of_child(true), 1 + static_cast<int>(Status::busy));
}

}  // namespace
}  // namespace muster
