# SPDX-License-Identifier: BSD-3-Clause
# The libraries we stand on. Link to these targets:
#   PkgConfig::HWLOC  fmt::fmt or fmt::fmt-header-only  nlohmann_json::nlohmann_json  CLI11::CLI11
#   Threads::Threads
# hwloc, fmt, nlohmann-json and CLI11 are needed; everything else may be missing.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc>=2.4)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)

# GoogleTest: the installed library when it is for this architecture, else from its sources
# (a cross build has no library of its own).
if(CMAKE_CROSSCOMPILING)
  set(MUSTER_GTEST_SOURCE /usr/src/googletest)
  if(EXISTS ${MUSTER_GTEST_SOURCE}/CMakeLists.txt)
    add_subdirectory(${MUSTER_GTEST_SOURCE} ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL SYSTEM)
    set(GTest_FOUND TRUE)
  endif()
else()
  find_package(GTest 1.12 CONFIG QUIET)
endif()
if(NOT GTest_FOUND)
  muster_left_out("the tests" "libgtest-dev, libgmock-dev")
endif()
