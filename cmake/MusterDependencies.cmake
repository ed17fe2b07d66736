# SPDX-License-Identifier: BSD-3-Clause
# The libraries we stand on. Link to these targets:
#   PkgConfig::HWLOC  fmt::fmt  nlohmann_json::nlohmann_json  CLI11::CLI11  Threads::Threads
# hwloc, fmt, nlohmann-json and CLI11 are needed; everything else may be missing.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc>=2.4)
find_package(nlohmann_json 3.9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)

# A cross build has no libraries of its own for fmt and GoogleTest: headers and sources serve.
if(CMAKE_CROSSCOMPILING)
  find_path(MUSTER_FMT_INCLUDE fmt/format.h REQUIRED)
  add_library(fmt::fmt INTERFACE IMPORTED)
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
  set(gtest_source /usr/src/googletest)
  if(EXISTS ${gtest_source}/CMakeLists.txt)
    set(CMAKE_WARN_DEPRECATED OFF)
    add_subdirectory(${gtest_source} ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
    foreach(library gtest gtest_main gmock gmock_main)
      target_compile_options(${library} PRIVATE -w)
    endforeach()
    unset(CMAKE_WARN_DEPRECATED)
    set(GTest_FOUND TRUE)
  endif()
else()
  find_package(fmt REQUIRED)
  find_package(GTest 1.12 CONFIG QUIET)
  if(NOT TARGET GTest::gmock)  # Debian has it in a package of its own
    set(GTest_FOUND FALSE)
  endif()
endif()
if(NOT GTest_FOUND)
  muster_left_out("the tests" "libgtest-dev, libgmock-dev")
endif()
