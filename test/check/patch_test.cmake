# SPDX-License-Identifier: BSD-3-Clause
# What a patch is to replace has to be in its header once: a mutant that is as what ships would say
# that the checks notice nothing.
#   cmake -DROOT=<source tree> -DOUTPUT=<file> -P patch_test.cmake
if(DEFINED OLD)
  include(${ROOT}/check/patch.cmake)
  set(files src/barrier/mcs.hpp)
  begin_patches()
  patch("planted: a fault" src/barrier/mcs.hpp)
  replace("${OLD}" "planted")
  end_patch()
  return()
endif()
foreach(old "t.sense ^= 1" "t.sense" "t.nonsense")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -DROOT=${ROOT} -DOUTPUT=${OUTPUT} -DOLD=${old}
      -P ${CMAKE_CURRENT_LIST_FILE}
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  file(READ ${OUTPUT}.hpp text)
  string(FIND "${text}" "\nnamespace muster::planted_a_fault {" at)
  if(old STREQUAL "t.sense ^= 1")
    if(failed OR at EQUAL -1 OR NOT text MATCHES "planted;")
      message(FATAL_ERROR "a patch is not applied")
    endif()
  elseif(NOT failed)
    message(FATAL_ERROR "a patch of \"${old}\" is accepted")
  endif()
endforeach()
