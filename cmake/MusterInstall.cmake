# SPDX-License-Identifier: BSD-3-Clause
# What `make install` puts where: libmuster, libmuster-memory.so.0.1, headers, the binary,
# find_package, pkg-config, module files.

if(TARGET muster)
  include(CMakePackageConfigHelpers)
  install(TARGETS muster EXPORT muster-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(TARGET muster-memory)
    install(TARGETS muster-memory EXPORT muster-targets
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT development)
    if(TARGET muster-malloc)
      set_target_properties(muster-malloc PROPERTIES INSTALL_RPATH "$ORIGIN")
      install(TARGETS muster-malloc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    endif()
  else()
    set(without PATTERN "memory.h*" EXCLUDE)
  endif()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/muster
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.f90" ${without})
  set(muster_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/muster)
  install(EXPORT muster-targets NAMESPACE muster:: DESTINATION ${muster_cmake_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/muster-config-version.cmake
    COMPATIBILITY SameMinorVersion)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/muster-config.cmake.in
    ${PROJECT_BINARY_DIR}/muster-config.cmake @ONLY)
  install(FILES
    ${PROJECT_BINARY_DIR}/muster-config.cmake ${PROJECT_BINARY_DIR}/muster-config-version.cmake
    DESTINATION ${muster_cmake_dir})
  file(RELATIVE_PATH MUSTER_PC_TO_PREFIX  # so that the installed tree can be moved
    /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" MUSTER_PC_TO_PREFIX "${MUSTER_PC_TO_PREFIX}")
  if(NOT BUILD_SHARED_LIBS)  # an archive wants what it is made of
    set(MUSTER_PC_LIBS " -lstdc++ -lm -pthread")
    set(MUSTER_PC_REQUIRES hwloc)
    if(MUSTER_FORMAT)
      string(APPEND MUSTER_PC_REQUIRES " fmt")
    endif()
  endif()
  function(muster_install_pc name description)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/muster.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endfunction()
  muster_install_pc(muster "${PROJECT_DESCRIPTION}")
  if(TARGET muster-memory)
    muster_install_pc(muster-memory "Memory on the NUMA node of delegation's servers")
  endif()
endif()

# muster(3), and each function's name for it; muster(7).
find_program(MUSTER_AWK awk)
mark_as_advanced(MUSTER_AWK)
install(FILES ${PROJECT_SOURCE_DIR}/doc/muster.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
if(MUSTER_AWK)
  set(headers muster.h status.h lock.h mutex.h)
  if(TARGET muster-memory)
    list(APPEND headers memory.h)
  endif()
  list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/include/muster/)
  set(manual ${PROJECT_BINARY_DIR}/man3)
  file(REMOVE_RECURSE ${manual})
  foreach(header IN LISTS headers)
    file(STRINGS ${header} declarations REGEX "^(MUSTER_API|static __inline) ")
    foreach(declaration IN LISTS declarations)
      if(declaration MATCHES "(muster_[a-z_]+)\\(")
        file(WRITE ${manual}/${CMAKE_MATCH_1}.3 ".so man3/muster.3\n")
      endif()
    endforeach()
  endforeach()
  add_custom_command(OUTPUT ${manual}/muster.3
    COMMAND ${MUSTER_AWK} -v version=${PROJECT_VERSION}
      -f ${PROJECT_SOURCE_DIR}/cmake/manual.awk ${headers} > ${manual}/muster.3
    DEPENDS ${headers} ${PROJECT_SOURCE_DIR}/cmake/manual.awk VERBATIM)
  add_custom_target(muster-manual ALL DEPENDS ${manual}/muster.3)
  if(TARGET muster-programs)
    add_dependencies(muster-programs muster-manual)
  endif()
  install(DIRECTORY ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR})
else()
  muster_left_out("the manual page muster(3)" mawk)
endif()

if(TARGET muster-cli)
  install(TARGETS muster-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES
  ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/doc ${PROJECT_SOURCE_DIR}/examples
  DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS
  PATTERN CMakeLists.txt EXCLUDE PATTERN "*_test.sh" EXCLUDE)

# Module files (Lmod, Environment Modules), which name the prefix that is installed to.
if(TARGET muster AND BUILD_SHARED_LIBS)
  function(muster_install_module name file)
    set(made ${PROJECT_BINARY_DIR}/${file})
    install(CODE "
      set(version ${PROJECT_VERSION})
      set(libdir ${CMAKE_INSTALL_LIBDIR})
      configure_file(${PROJECT_SOURCE_DIR}/cmake/${file}.in ${made} @ONLY)")
    install(FILES ${made} DESTINATION ${CMAKE_INSTALL_DATADIR}/modulefiles/${name}
      RENAME ${PROJECT_VERSION})
  endfunction()
  muster_install_module(muster modulefile)
  if(TARGET muster_mpi_preload)
    muster_install_module(muster-mpi modulefile-mpi)
  endif()
endif()
