// SPDX-License-Identifier: BSD-3-Clause
// Open MPI with its component coll/muster, ranks bound over four NUMA nodes: each barrier is ours,
// and each rank's block lies where the rank sits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "lines_of.hpp"

namespace muster::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

using Lines = std::vector<std::string>;

Lines with(const Lines& lines, const std::string& text) {
  Lines found;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(found),
               [&](const std::string& line) { return line.find(text) != std::string::npos; });
  return found;
}

TEST(Mpi, RanksOverFourNumaNodesHaveTheirBarrierAtHome) {
  // Rank i on NUMA node i modulo 4.
  const Lines lines = lines_of(
      {"/usr/bin/mpirun.openmpi", "-n", "8", "--map-by", "numa", "--bind-to", "core", "--mca",
       "coll_muster_verbose", "1", "/bin/numa-ranks"},
      [] {
        dup2(STDOUT_FILENO, STDERR_FILENO);
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
        setenv("MUSTER_MPI_COUNTERS", "1", 1);
        setenv("PMIX_MCA_pcompress_base_silence_warning", "1", 1);  // that it compresses nothing
      });
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());

  // Which levels and recipe is a matter of the estimate; that each rank's cells are at home is not.
  std::vector<testing::Matcher<std::string>> expected;
  for (unsigned rank = 0; rank < 8; ++rank) {
    const std::string numa = std::to_string(rank % 4);
    expected.insert(expected.end(), 2,
                    StartsWith(std::to_string(rank) + " on NUMA node " + numa + ", its pages on " +
                               numa + ": scheduled-"));
  }
  EXPECT_THAT(with(lines, " on NUMA node "), UnorderedElementsAreArray(expected));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("communicator of 8: 8 ranks on this host: "),
                                    HasSubstr("algorithm scheduled-"))));
  // Two communicators of 10 barriers, and the one before the end; none was the MPI's.
  const Lines counters = with(lines, "counters: ");
  EXPECT_THAT(counters, SizeIs(8));
  EXPECT_THAT(counters, Each(AllOf(HasSubstr(" inside=21 "), HasSubstr(" theirs=0 "))));
}

}  // namespace
}  // namespace muster::test
