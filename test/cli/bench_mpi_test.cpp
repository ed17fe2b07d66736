// SPDX-License-Identifier: BSD-3-Clause
// What `muster bench mpi` refuses, with or without an MPI here. test/mpi/bench.sh has the rest.
#include <gtest/gtest.h>

#include "program.hpp"

namespace {

TEST(BenchMpi, WhatIsRefused) {
  expect_refused({"bench", "mpi"}, {
                                       {{"--regime", "hogs,nonsense"},
                                        "no regime \"nonsense\"; there are: all, quota (both)"},
                                       {{"--regime", "hogs", "--turn", "0"}, "--turn: more than 0"},
                                       {{"--regime", "hogs", "--osu"}, "--osu"},
                                   });
}

}  // namespace
