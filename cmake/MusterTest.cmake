# SPDX-License-Identifier: BSD-3-Clause
# Tests, each registered with ctest under its name (with the preset's prefix, e.g. "tsan.").
#
# muster_add_test(<name> SOURCES <file>... [LIBRARIES <target>...] [ARGS <arg>...]
#                 [TIMEOUT <s>] [ENVIRONMENT <VAR=value>...] [LABELS <label>...] [SERIAL])
#   a GoogleTest executable `test-<name>`.
# muster_add_script_test(<name> COMMAND <command>... [DEPENDS <target>...] [same options])
#   any command; exit code 77 means skipped.
#
# Labels say which suites run a test beside the release build's:
#   concurrency  under ThreadSanitizer, and on aarch64 under qemu-user
#   races        under clang's ThreadSanitizer as well
#   memory       under AddressSanitizer and UBSan (so are those labelled concurrency)
#   soak         in `make soak` (so are the two above), where MUSTER_SOAK multiplies the counts
# SERIAL: nothing else runs at the same time (timing matters).

enable_testing()
include(CMakeParseArguments)

set(MUSTER_TEST_PREFIX "" CACHE STRING "Prefix of every test's name")
set(MUSTER_TEST_ONLY "" CACHE STRING "Build and run only tests with one of these labels")
set(MUSTER_TEST_TIMEOUT_FACTOR 1 CACHE STRING "Factor on every test's time limit")

# Everything the tests of this tree need: what the test suites build.
add_custom_target(muster-tests)

function(muster_test_selected result)
  set(selected TRUE)
  if(MUSTER_TEST_ONLY)
    set(selected FALSE)
    foreach(label IN LISTS MUSTER_TEST_ONLY)
      if(label IN_LIST ARGN)
        set(selected TRUE)
      endif()
    endforeach()
  endif()
  set(${result} ${selected} PARENT_SCOPE)
endfunction()

macro(muster_set_test_properties test)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${MUSTER_TEST_TIMEOUT_FACTOR}")
  set_tests_properties(${test} PROPERTIES
    TIMEOUT ${arg_TIMEOUT}
    SKIP_RETURN_CODE 77
    RUN_SERIAL ${arg_SERIAL}
    ENVIRONMENT "${arg_ENVIRONMENT}"
    LABELS "${arg_LABELS}")
endmacro()

function(muster_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg
    "SERIAL" "TIMEOUT" "SOURCES;LIBRARIES;ARGS;ENVIRONMENT;LABELS")
  muster_test_selected(selected ${arg_LABELS})
  if(NOT GTest_FOUND OR NOT selected)
    return()
  endif()
  add_executable(test-${name} ${arg_SOURCES})
  target_link_libraries(test-${name} PRIVATE
    ${arg_LIBRARIES} GTest::gmock GTest::gtest_main Threads::Threads)
  add_dependencies(muster-tests test-${name})
  set(test ${MUSTER_TEST_PREFIX}${name})
  add_test(NAME ${test} COMMAND test-${name} ${arg_ARGS})
  muster_set_test_properties(${test})
endfunction()

function(muster_add_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg
    "SERIAL" "TIMEOUT" "COMMAND;DEPENDS;ENVIRONMENT;LABELS")
  muster_test_selected(selected ${arg_LABELS})
  if(NOT selected)
    return()
  endif()
  if(arg_DEPENDS)
    add_dependencies(muster-tests ${arg_DEPENDS})
  endif()
  set(test ${MUSTER_TEST_PREFIX}${name})
  add_test(NAME ${test} COMMAND ${arg_COMMAND})
  muster_set_test_properties(${test})
endfunction()
