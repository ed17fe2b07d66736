# SPDX-License-Identifier: BSD-3-Clause
# Tests, each registered with ctest under its name (with the preset's prefix, e.g. "tsan.").
#
# muster_add_test(<name> SOURCES <file>... [LIBRARIES <target>...] [ARGS <arg>...]
#                 [COST <s>] [ENVIRONMENT <VAR=value>...] [LABELS <suite>...] [SERIAL])
#   a GoogleTest executable `test-<name>`.
# muster_add_script_test(<name> COMMAND <command>... [DEPENDS <target>...] [same options])
#   any command; exit code 77 means skipped.
#
# LABELS say which suites run a test beside the release build's:
#   concurrency  under ThreadSanitizer, and on aarch64 under qemu-user
#   races        under clang's ThreadSanitizer as well
#   memory       under AddressSanitizer and UBSan (so are those labelled concurrency)
#   foreign      on s390x, riscv64 and ppc64le as well, `make test-cross`
#   soak         in `make soak` (so are the two above), where MUSTER_SOAK multiplies the counts
#   thorough     none: `make test-all` runs it and `make test` does not
# COST: the seconds it takes on two quiet cores, 1 if not said. The dear ones start first.
# SERIAL: nothing else runs at the same time; for who binds to CPUs and counts what happens there.
#
# ctest's own labels are the folder ("lock"), quick or slow by the cost (`make check` runs the quick
# ones), and thorough.

include(CMakeParseArguments)

set(MUSTER_TEST_PREFIX "" CACHE STRING "Prefix of every test's name")
set(MUSTER_TEST_ONLY "" CACHE STRING "Build and run only tests of one of these suites")
set(MUSTER_TEST_TIMEOUT_FACTOR 1 CACHE STRING "Factor on every test's time limit")

# What the tests of `make test` need, or all of a tree that builds some only, and what others do.
if(MUSTER_TESTS)
  enable_testing()
  add_custom_target(muster-tests)
  add_custom_target(muster-thorough-tests)
endif()

function(muster_test_selected result)
  set(selected ${MUSTER_TESTS})
  if(MUSTER_TEST_ONLY AND MUSTER_TESTS)
    set(selected FALSE)
    foreach(label IN LISTS MUSTER_TEST_ONLY)
      if(label IN_LIST ARGN)
        set(selected TRUE)
      endif()
    endforeach()
  endif()
  set(${result} ${selected} PARENT_SCOPE)
endfunction()

# Registers ${test}, which needs ${ARGN}. No profile of who tests decides for `auto`. No test is
# judged by its time: the limit ends what hangs, on a machine as busy as it may be.
macro(muster_register_test test)
  if(NOT arg_COST)
    set(arg_COST 1)
  endif()
  math(EXPR limit "(1800 + 20 * ${arg_COST}) * ${MUSTER_TEST_TIMEOUT_FACTOR}")
  get_filename_component(labels ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(goal muster-tests)
  if("thorough" IN_LIST arg_LABELS AND NOT MUSTER_TEST_ONLY)
    set(goal muster-thorough-tests)
  endif()
  if("thorough" IN_LIST arg_LABELS OR MUSTER_TEST_ONLY)
    list(APPEND labels thorough)
  endif()
  if(arg_COST GREATER 5)
    list(APPEND labels slow)
  else()
    list(APPEND labels quick)
  endif()
  set_tests_properties(${test} PROPERTIES
    TIMEOUT ${limit}
    COST ${arg_COST}
    SKIP_RETURN_CODE 77
    RUN_SERIAL ${arg_SERIAL}
    ENVIRONMENT "MUSTER_PROFILE=;${arg_ENVIRONMENT}"
    LABELS "${labels}")
  if(NOT "${ARGN}" STREQUAL "")
    add_dependencies(${goal} ${ARGN})
  endif()
endmacro()

function(muster_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg
    "SERIAL" "COST" "SOURCES;LIBRARIES;ARGS;ENVIRONMENT;LABELS")
  muster_test_selected(selected ${arg_LABELS})
  if(NOT GTest_FOUND OR NOT selected)
    return()
  endif()
  add_executable(test-${name} ${arg_SOURCES})
  target_link_libraries(test-${name} PRIVATE
    ${arg_LIBRARIES} GTest::gmock GTest::gtest_main Threads::Threads)
  target_compile_definitions(test-${name} PRIVATE MUSTER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set(test ${MUSTER_TEST_PREFIX}${name})
  add_test(NAME ${test} COMMAND test-${name} ${arg_ARGS})
  muster_register_test(${test} test-${name})
endfunction()

function(muster_add_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg
    "SERIAL" "COST" "COMMAND;DEPENDS;ENVIRONMENT;LABELS")
  muster_test_selected(selected ${arg_LABELS})
  if(NOT selected)
    return()
  endif()
  set(test ${MUSTER_TEST_PREFIX}${name})
  add_test(NAME ${test} COMMAND ${arg_COMMAND})
  muster_register_test(${test} ${arg_DEPENDS})
endfunction()
