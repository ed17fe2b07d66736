# SPDX-License-Identifier: BSD-3-Clause
# Makes mutants as they are built: what ships, but for some words. A script that includes this has
# -DROOT=<source tree> -DOUTPUT=<file, without its extension>, and sets `files`, from the root of
# the tree, each after what it includes. It writes ${OUTPUT}.hpp.

cmake_minimum_required(VERSION 3.22)

macro(begin_patches)
  set_property(GLOBAL PROPERTY text "#pragma once\n")
  foreach(file IN LISTS files)  # what is copied includes nothing
    string(REGEX REPLACE "^src/" "" name ${file})
    set_property(GLOBAL APPEND_STRING PROPERTY text "#include \"${name}\"\n")
  endforeach()
  file(WRITE ${OUTPUT}.hpp "")
endmacro()

function(end_patch)
  get_property(text GLOBAL PROPERTY text)
  file(APPEND ${OUTPUT}.hpp "${text}")
endfunction()

# After the last one: ${OUTPUT}.cpp, whose `function` gives the mutants in `rows`. `more`: what
# stands after it.
function(end_patches function rows includes more)
  end_patch()
  get_filename_component(header ${OUTPUT}.hpp NAME)
  set(text "#include \"${header}\"\n")
  foreach(include IN LISTS includes)
    string(APPEND text "#include \"${include}\"\n")
  endforeach()
  file(WRITE ${OUTPUT}.cpp "${text}\
namespace muster::check {
std::vector<HandWritten> ${function}() {
  return {
${rows}  };
}
${more}}  // namespace muster::check
")
endfunction()

# patch(<name> <file>...): the files, what includes one of them, and ${also}, in namespaces of the
# mutant's own: muster::locks::a_name for muster::locks, if that is its name. Sets `id` to that.
function(patch name)
  end_patch()
  string(REGEX REPLACE "[^a-z0-9]+" "_" id "${name}")
  set(all "")
  foreach(file IN LISTS files)
    file(READ ${ROOT}/${file} text)
    foreach(other IN LISTS ARGN)
      string(REGEX REPLACE "^src/" "" included ${other})
      string(FIND "${text}" "#include \"${included}\"" at)
      if(NOT at EQUAL -1)
        list(APPEND ARGN ${file})
        break()
      endif()
    endforeach()
    if(file IN_LIST ARGN OR file IN_LIST also)
      string(REGEX REPLACE "#(include|pragma)[^\n]*" "" text "${text}")
      string(REGEX REPLACE "\n(namespace muster[a-z:]*) {" "\n\\1::${id} {" text "${text}")
      string(APPEND all "#line 1 \"${file}\"\n${text}")
    endif()
  endforeach()
  set_property(GLOBAL PROPERTY text "${all}")
  set(id ${id} PARENT_SCOPE)
endfunction()

# In the last patch's text. What should be replaced is there once, or the build fails.
function(replace old new)
  get_property(text GLOBAL PROPERTY text)
  string(FIND "${text}" "${old}" first)
  string(FIND "${text}" "${old}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "a mutant's text should be in its headers once: ${old}")
  endif()
  string(REPLACE "${old}" "${new}" text "${text}")
  set_property(GLOBAL PROPERTY text "${text}")
endfunction()
