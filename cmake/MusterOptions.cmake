# SPDX-License-Identifier: BSD-3-Clause
# How everything here is compiled: standards, warnings, visibility, ccache, sanitizers.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)  # POSIX and GNU declarations at the C edge
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_compile_options(
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wundef
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
  $<$<COMPILE_LANGUAGE:CXX>:-Wsuggest-override>
  $<$<COMPILE_LANG_AND_ID:C,GNU>:-Wstrict-prototypes>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wduplicated-cond>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wlogical-op>)
# What is installed does not name the folders it was built in.
add_compile_options($<$<CONFIG:Release>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>)
cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${PROJECT_BINARY_DIR}" build_inside)
if(NOT build_inside)
  add_compile_options($<$<CONFIG:Release>:-ffile-prefix-map=${PROJECT_BINARY_DIR}=.>)
endif()
# Warnings are errors only with the compilers this is tested with: a newer one may warn of more.
if(MUSTER_WERROR AND "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" MATCHES
    "^(GNU 12|Clang 14)")
  add_compile_options(-Werror)
endif()

set(MUSTER_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them (address,undefined)")
if(MUSTER_SANITIZE)
  add_compile_options(
    -fsanitize=${MUSTER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    # It is wrong about <regex> then.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
endif()

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(MUSTER_CCACHE ccache)
  mark_as_advanced(MUSTER_CCACHE)
  # Not where it cannot write its cache, as with a home that is read-only: then nothing compiles.
  set(ccache_works 1)
  if(MUSTER_CCACHE)
    set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/ccache-probe)
    file(WRITE ${probe}.c "int probe;\n")
    execute_process(
      COMMAND ${CMAKE_COMMAND} -E env CCACHE_RECACHE=1
        ${MUSTER_CCACHE} ${CMAKE_C_COMPILER} -c ${probe}.c -o ${probe}.o
      RESULT_VARIABLE ccache_works OUTPUT_QUIET ERROR_QUIET)
  endif()
  if(ccache_works EQUAL 0)
    set(CMAKE_C_COMPILER_LAUNCHER ${MUSTER_CCACHE})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${MUSTER_CCACHE})
  endif()
endif()

# Sources include by their path from src/; the installed headers by <muster/...>.
include_directories(${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
