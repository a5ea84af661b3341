# `cmake --install`: headers, library, command, and what find_package(paceline) reads.
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/paceline TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(TARGETS paceline EXPORT paceline-targets)
if(TARGET paceline_command)
  install(TARGETS paceline_command)
endif()

set(PACELINE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/paceline)
install(EXPORT paceline-targets NAMESPACE paceline:: DESTINATION ${PACELINE_PACKAGE_DIR})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/paceline-config.cmake.in
                              ${PROJECT_BINARY_DIR}/paceline-config.cmake
                              INSTALL_DESTINATION ${PACELINE_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/paceline-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/paceline-config.cmake
              ${PROJECT_BINARY_DIR}/paceline-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindDNNL.cmake
        DESTINATION ${PACELINE_PACKAGE_DIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE TYPE DOC)
