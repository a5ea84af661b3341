# `cmake --install`: the command with its pages and completions; and the component `development`:
# headers, libraries, and what find_package(paceline) reads.
include(CMakePackageConfigHelpers)

install(TARGETS paceline_command COMPONENT command)
install(DIRECTORY ${PACELINE_PAGES}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
install(FILES ${PACELINE_PAGES}/paceline COMPONENT command
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${PACELINE_PAGES}/paceline.fish COMPONENT command
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${PACELINE_PAGES}/_paceline COMPONENT zsh
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${PROJECT_SOURCE_DIR}/NOTICE TYPE DOC COMPONENT command)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE TYPE DOC COMPONENT licence)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/paceline TYPE INCLUDE COMPONENT development
        FILES_MATCHING PATTERN "*.h")
install(TARGETS paceline_core paceline EXPORT paceline-targets COMPONENT development)
set(PACELINE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/paceline)
install(EXPORT paceline-targets NAMESPACE paceline:: DESTINATION ${PACELINE_PACKAGE_DIR}
        COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/paceline-config.cmake.in
                              ${PROJECT_BINARY_DIR}/paceline-config.cmake
                              INSTALL_DESTINATION ${PACELINE_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/paceline-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/paceline-config.cmake
              ${PROJECT_BINARY_DIR}/paceline-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindDNNL.cmake
        DESTINATION ${PACELINE_PACKAGE_DIR} COMPONENT development)
