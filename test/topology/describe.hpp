// SPDX-License-Identifier: BSD-3-Clause
// Described machines, and what golden files say about them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "topology/topology.hpp"

namespace muster::test {

/// Levels of several masks, and the groups of several mappings, rank counts and bindings. Says
/// nothing of where the description came from.
std::string describe(const Topology& topology);

/// Ranks bound to every unit of a level, `per_unit` on each, dealt in turn (--map-by and --bind-to
/// numa).
std::vector<PuSet> bind_to_units(const Level& level, unsigned per_unit);

/// Where the described machines are.
inline const std::filesystem::path machines = MUSTER_TEST_MACHINES;
Topology machine(const std::string& file);

/// Names in a folder with these endings, in order; and those of all described machines.
std::vector<std::string> files(const std::filesystem::path& folder,
                               const std::vector<std::string>& endings);
std::vector<std::string> machine_files();

/// Expects the file to have that text; where MUSTER_REGENERATE_GOLDEN is set, which `target` does,
/// writes it there.
void expect_golden(const std::string& actual, const std::filesystem::path& golden,
                   const char* target);

/// Of a test for a file.
std::string test_name(const ::testing::TestParamInfo<std::string>& info);

}  // namespace muster::test
