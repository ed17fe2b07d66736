# SPDX-License-Identifier: BSD-3-Clause
# What this build leaves out because a package is missing is said once, at the end of the
# configuration, with the package that brings it: nothing is dropped in silence.

# muster_left_out(<what> <Debian package>): notes one thing that is not built.
function(muster_left_out what package)
  set_property(GLOBAL APPEND PROPERTY MUSTER_LEFT_OUT "${what} (package ${package})")
endfunction()

function(muster_print_left_out)
  get_property(items GLOBAL PROPERTY MUSTER_LEFT_OUT)
  set(text "")
  foreach(item IN LISTS items)
    message(STATUS "left out: ${item}")
    string(APPEND text "${item}\n")
  endforeach()
  file(WRITE ${PROJECT_BINARY_DIR}/left-out.txt "${text}")
endfunction()
