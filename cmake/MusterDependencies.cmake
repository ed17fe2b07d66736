# SPDX-License-Identifier: BSD-3-Clause
# The libraries we stand on. Link to these targets:
#   PkgConfig::HWLOC  ${MUSTER_FORMAT}  Threads::Threads, and in programs
#   fmt::fmt  nlohmann_json::nlohmann_json  CLI11::CLI11
# libmuster needs hwloc, and fmt where the compiler's library has no <format>. Programs need the
# others too; everything else may be missing.
include(CheckCXXSourceCompiles)

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc>=2.4)
if(MUSTER_PROGRAMS)
  find_package(nlohmann_json 3.9 REQUIRED)
  find_package(CLI11 2.1 REQUIRED)
endif()
set(CMAKE_REQUIRED_FLAGS ${CMAKE_CXX20_STANDARD_COMPILE_OPTION})
check_cxx_source_compiles("#include <version>
  #ifndef __cpp_lib_format
  #error
  #endif
  int main() {}" MUSTER_STD_FORMAT)
unset(CMAKE_REQUIRED_FLAGS)

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
  if(MUSTER_PROGRAMS OR NOT MUSTER_STD_FORMAT)
    find_package(fmt REQUIRED)
  endif()
  find_package(GTest 1.12 CONFIG QUIET)
  if(NOT TARGET GTest::gmock)  # Debian has it in a package of its own
    set(GTest_FOUND FALSE)
  endif()
endif()
set(MUSTER_FORMAT "")  # what src/machine/format.hpp needs
if(NOT MUSTER_STD_FORMAT)
  set(MUSTER_FORMAT fmt::fmt)
endif()
if(MUSTER_TESTS AND NOT GTest_FOUND)
  muster_left_out("the tests" "libgtest-dev, libgmock-dev")
endif()
