# SPDX-License-Identifier: BSD-3-Clause
# embed.cmake -DFILES=<list> -DOUTPUT=<file>: the machine descriptions as a source file.
set(text "// Generated from sim/machines by sim/embed.cmake.\n")
string(APPEND text "#include \"sim/machine_model.hpp\"\n\nnamespace muster::sim {\n\n")
string(APPEND text "const std::vector<std::pair<std::string_view, std::string_view>>& ")
string(APPEND text "shipped_machines() {\n")
string(APPEND text "  static const std::vector<std::pair<std::string_view, std::string_view>> "
  "all = {\n")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} content)
  string(APPEND text "    {\"${name}\", R\"machine(${content})machine\"},\n")
endforeach()
string(APPEND text "  };\n  return all;\n}\n\n}  // namespace muster::sim\n")
file(WRITE ${OUTPUT} "${text}")
