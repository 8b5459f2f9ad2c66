# everstep_package(LIBRARIES …): installs these libraries with their headers, so that other projects can write
# find_package(everstep) and link everstep::<name>. Only libraries without third-party dependencies belong here: then
# the package needs no find_dependency and works in any build of Everstep.

include(CMakePackageConfigHelpers)

function(everstep_package)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "LIBRARIES")
  set(headers ${CMAKE_INSTALL_INCLUDEDIR}/everstep)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/everstep)
  list(TRANSFORM arg_LIBRARIES PREPEND everstep_ OUTPUT_VARIABLE targets)

  install(TARGETS ${targets} EXPORT everstep ARCHIVE COMPONENT libraries)
  install(DIRECTORY ${arg_LIBRARIES} ${PROJECT_BINARY_DIR}/generated/base DESTINATION ${headers}
    COMPONENT libraries FILES_MATCHING PATTERN *.h)
  install(EXPORT everstep FILE everstep-config.cmake NAMESPACE everstep:: DESTINATION ${package}
    COMPONENT libraries)

  set(version_file ${PROJECT_BINARY_DIR}/generated/everstep-config-version.cmake)
  write_basic_package_version_file(${version_file} COMPATIBILITY SameMinorVersion)
  install(FILES ${version_file} DESTINATION ${package} COMPONENT libraries)
endfunction()
