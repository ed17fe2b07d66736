// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "machine/error.hpp"
#include "sim/machine_model.hpp"

namespace muster::sim {
namespace {

using testing::HasSubstr;

const std::string good = R"(muster-machine 1
# a comment
name small
about Two dies of two cores
topology package:1 numa:2 core:2 pu:1 | assumed: for this test
domain NUMA | assumed: for this test
rmw ownership | assumed: for this test
latency NUMA 10 ns +- 20 % | measured: by hand
latency MACHINE 100 ns | measured: by hand
call 100 ns | assumed: for this test
message 150 ns | assumed: for this test
hit 1 ns | assumed: for this test
load-gap 2 ns | assumed: for this test
store-gap 1 ns | assumed: for this test
rmw-local 3 ns | assumed: for this test
poll-turn 0 ns | assumed: for this test
memory 50 ns | assumed: for this test
read-occupancy 7 ns | assumed: for this test
agent-occupancy 5 ns | assumed: for this test
poll-overlap 8 | assumed: for this test
poll-ways 8 | assumed: for this test
store-overlap 8 | assumed: for this test
store-entries 16 | assumed: for this test
cache-line 64 B | assumed: for this test
private-cache 256 KiB | assumed: for this test
private-ways 4 | assumed: for this test
shared-cache 4096 KiB | assumed: for this test
shared-ways 16 | assumed: for this test
memory-bandwidth 20 GB/s | assumed: for this test
without die-sharing | assumed: for this test
error 12 % | fitted: to nothing
sample call=90 latency-MACHINE=120
)";

std::string error_of(const std::string& text) {
  try {
    parse_machine(text, "f", "");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::invalid);
    return error.what();
  }
  return "";
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = good;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(MachineFile, SaysWhatItSays) {
  const MachineModel machine = parse_machine(good, "f", "");
  EXPECT_EQ(machine.name, "small");
  EXPECT_EQ(machine.shape->cores().size(), 4U);
  EXPECT_EQ(machine.domain, LevelKind::numa);
  EXPECT_FALSE(machine.mechanisms.has(Mechanism::ll_sc));
  EXPECT_FALSE(machine.mechanisms.has(Mechanism::die_sharing));
  EXPECT_TRUE(machine.mechanisms.has(Mechanism::die_agent));
  EXPECT_EQ(machine.value("latency-NUMA"), 10);
  EXPECT_EQ(machine.value("read-occupancy"), 7);
  EXPECT_DOUBLE_EQ(machine.error, 0.12);
  EXPECT_DOUBLE_EQ(machine.uncertainty.at("latency-NUMA"), 0.2);
  ASSERT_EQ(machine.samples.size(), 1U);
  EXPECT_EQ(machine.provenance.at("latency-MACHINE"), "measured: by hand");
}

TEST(MachineFile, SendsATerminalNothingOfItsOwn) {
  std::string text = good;
  text.insert(text.find("Two dies"), "\x1b[31m");
  EXPECT_EQ(parse_machine(text, "f", "").about, "\\x1b[31mTwo dies of two cores");
}

TEST(MachineFile, OptionalParametersMayBeLeftOut) {
  const MachineModel without = parse_machine(good, "f", "");
  EXPECT_EQ(without.value("memory-far"), 0);
  EXPECT_EQ(format_machine(without).find("memory-far"), std::string::npos);
  EXPECT_THAT(format_machine(without), HasSubstr("latency NUMA 10 ns +- 20 %"));
  const MachineModel with_it =
      parse_machine(with("error 12 %", "memory-far 90 ns | assumed: x\nerror 12 %"), "f", "");
  EXPECT_EQ(with_it.value("memory-far"), 90);
  EXPECT_THAT(format_machine(with_it), HasSubstr("memory-far 90 ns"));
}

TEST(MachineFile, ErrorsNameTheLine) {
  EXPECT_THAT(error_of(""), HasSubstr("f:1: empty"));
  EXPECT_THAT(error_of("machine 1\n"), HasSubstr("f:1: the first line"));
  EXPECT_THAT(error_of(with("name small", "name a,b")), HasSubstr("f:3: a machine's name is made"));
  EXPECT_THAT(error_of(with("numa:2", "numb:2")), HasSubstr("f:5: "));
  EXPECT_THAT(error_of(with("domain NUMA", "domain L3")), HasSubstr("f:6: the topology has no"));
  EXPECT_THAT(error_of(with("rmw ownership", "rmw magic")), HasSubstr("f:7: \"rmw\" is"));
  EXPECT_THAT(error_of(with("latency NUMA 10 ns", "latency NUMA 10")), HasSubstr("f:8: the unit"));
  EXPECT_THAT(error_of(with("latency NUMA 10", "latency NUMA x")), HasSubstr("f:8: \"x\" is no"));
  EXPECT_THAT(error_of(with("latency NUMA 10", "latency NUMA -1")), HasSubstr("f:8: -1 is not"));
  EXPECT_THAT(error_of(with("+- 20 %", "+- 20")), HasSubstr("f:8: after the value"));
  EXPECT_THAT(error_of(with("latency MACHINE", "latency NUMA")), HasSubstr("f:9: "));
  EXPECT_THAT(error_of(with("latency NUMA", "latency PACKAGE 9 ns | assumed: x\nlatency NUMA")),
              HasSubstr("f:9: NUMA is inside of PACKAGE"));
  EXPECT_THAT(error_of(with("error 12 %", "error 12 % +- 9 %")), HasSubstr("f:31: \"error\" has"));
  EXPECT_THAT(error_of(with("hit 1 ns |", "hit 1 ns")), HasSubstr("f:12: \"hit\" needs a source"));
  EXPECT_THAT(error_of(with("hit 1 ns | assumed", "hit 1 ns | hearsay")), HasSubstr("f:12: "));
  EXPECT_THAT(error_of(with("hit 1 ns", "hut 1 ns")), HasSubstr("f:12: no parameter \"hut\""));
  EXPECT_THAT(error_of(with("load-gap 2 ns", "hit 2 ns")), HasSubstr("f:13: \"hit\" stands"));
  EXPECT_THAT(error_of(with("poll-overlap 8", "poll-overlap 0")), HasSubstr("f:20: 0 is not"));
  EXPECT_THAT(error_of(with("private-ways 4", "private-ways 2.5")),
              HasSubstr("f:26: private-ways is a whole number, not 2.5"));
  EXPECT_THAT(error_of(with("without die-sharing", "without x")), HasSubstr("f:30: no mechanism"));
  EXPECT_THAT(error_of(with("sample call=90", "sample cull=90")), HasSubstr("f:32: no parameter"));
  EXPECT_THAT(error_of(with("sample call=90", "sample call")), HasSubstr("f:32: \"call\" is no"));
  EXPECT_THAT(error_of(with("sample call=90", "sample poll-ways=0")), HasSubstr("f:32: 0 is not"));
  EXPECT_THAT(error_of(with("store-gap 1 ns | assumed: for this test\n", "")),
              HasSubstr("ends without: store-gap"));
  EXPECT_THAT(error_of(with("latency MACHINE 100 ns | measured: by hand\n", "")),
              HasSubstr("no parameter \"latency-MACHINE\""));
  EXPECT_THAT(error_of("muster-machine 1\nname x\n"), HasSubstr("latency MACHINE"));
}

TEST(MachineFile, UnknownNamesListTheKnown) {
  try {
    load_machine("cray-1");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::unknown_name);
    EXPECT_THAT(error.what(), HasSubstr("kunpeng920-2s"));
  }
}

TEST(MachineFile, EveryShippedMachineIsValid) {
  std::map<std::string, std::size_t> cores;
  for (const auto& [name, text] : shipped_machines()) {
    const MachineModel machine = load_machine(std::string(name));
    EXPECT_EQ(machine.name, name);
    cores[machine.name] = machine.shape->cores().size();
    EXPECT_EQ(format_machine(parse_machine(format_machine(machine), "f", "")),
              format_machine(machine));
  }
  const std::map<std::string, std::size_t> expected = {
      {"epyc-7763-2s", 128},  {"epyc-9654-2s", 192},
      {"graviton3", 64},      {"jet", 8},
      {"kunpeng920-2s", 128}, {"oak", 8},
      {"power9-2s", 32},      {"xeon-8375c", 64},
  };
  EXPECT_EQ(cores, expected);
}

TEST(Geometry, DistancesFollowTheInnermostCommonLevel) {
  const MachineModel machine = parse_machine(good, "f", "");
  const Geometry geometry = geometry_of(machine, {0, 1, 2, 3});
  EXPECT_EQ(geometry.dies(), 2U);
  EXPECT_EQ(geometry.die_of(1), 0U);
  EXPECT_EQ(geometry.die_of(2), 1U);
  EXPECT_EQ(geometry.between(0, 0), from_ns(10));
  EXPECT_EQ(geometry.between(0, 1), from_ns(100));
}

TEST(Geometry, LevelsBelowTheDieAreNearer) {
  const MachineModel machine = parse_machine(with("domain NUMA", "domain MACHINE"), "f", "");
  const Geometry geometry = geometry_of(machine, {0, 1, 2});
  EXPECT_EQ(geometry.dies(), 1U);
  EXPECT_EQ(geometry.between(0, 0), from_ns(100));
  EXPECT_EQ(geometry.inside(0, 1), from_ns(10));
  EXPECT_EQ(geometry.inside(0, 2), from_ns(100));
}

TEST(Ensemble, ComesFromSamplesOrElseFromUncertainty) {
  MachineModel machine = parse_machine(good, "f", "");
  std::vector<MachineModel> members = ensemble_of(machine, 5);
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[1].value("call"), 90);
  EXPECT_EQ(members[1].value("latency-MACHINE"), 120);
  machine.samples.clear();
  members = ensemble_of(machine, 5);
  ASSERT_EQ(members.size(), 6U);
  for (const MachineModel& member : members) {
    EXPECT_GE(member.value("latency-NUMA"), 10 / 1.2001);
    EXPECT_LE(member.value("latency-NUMA"), 12.001);
  }
  machine.uncertainty.clear();
  EXPECT_EQ(ensemble_of(machine, 5).size(), 1U);
}

TEST(Ensemble, LeavesAloneWhatIsFixed) {
  MachineModel machine = parse_machine(good, "f", "");
  machine.fix("call", 5000, "assumed: a test");
  const std::vector<MachineModel> members = ensemble_of(machine, 5);
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[1].value("call"), 5000);
  EXPECT_EQ(members[1].value("latency-MACHINE"), 120);
  machine.fix("latency-MACHINE", 90, "assumed: a test");  // the sample's other one
  EXPECT_GT(ensemble_of(machine, 5).size(), 1U);          // by the margin of latency-NUMA
  machine.fix("latency-NUMA", 30, "assumed: a test");
  EXPECT_EQ(ensemble_of(machine, 5).size(), 1U);
  EXPECT_EQ(format_machine(parse_machine(format_machine(machine), "f", "")),
            format_machine(machine));
}

TEST(Ranks, EachHasACore) {
  const MachineModel machine = parse_machine(good, "f", "");
  const auto cores = [&](Mapping mapping, unsigned ranks) {
    return cores_of_ranks(machine, machine.shape->map_ranks(mapping, ranks));
  };
  EXPECT_EQ(cores(Mapping::numa, 3), (std::vector<unsigned>{0, 2, 1}));
  EXPECT_THROW(cores(Mapping::core, 5), Error);
}

}  // namespace
}  // namespace muster::sim
