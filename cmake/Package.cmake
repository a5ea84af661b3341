# `cmake --build BUILD --target package`: paceline_VERSION_ARCH.deb, the command for machines without
# compilers, and paceline-dev_VERSION_ARCH.deb, what programs of one's own are built with. What the
# command needs is found out by dpkg-shlibdeps.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME paceline)
set(CPACK_PACKAGE_VENDOR "The Paceline authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains dataflow-graph models on many devices and machines")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

# The components of the two packages; what only Debian wants, and where.
set(CPACK_COMPONENTS_ALL command debian development debian_development)
set(CPACK_COMPONENT_COMMAND_GROUP command)
set(CPACK_COMPONENT_DEBIAN_GROUP command)
set(CPACK_COMPONENT_DEVELOPMENT_GROUP development)
set(CPACK_COMPONENT_DEBIAN_DEVELOPMENT_GROUP development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)

find_program(GZIP gzip REQUIRED)
execute_process(COMMAND ${GZIP} -9nc ${PROJECT_SOURCE_DIR}/CHANGELOG.md
                OUTPUT_FILE ${PROJECT_BINARY_DIR}/changelog.gz)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS CHANGELOG.md)
foreach(package paceline paceline-dev)
  set(component debian)
  if(package STREQUAL paceline-dev)
    set(component debian_development)
  endif()
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/copyright ${PROJECT_BINARY_DIR}/changelog.gz
          DESTINATION share/doc/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
install(FILES ${PACELINE_PAGES}/_paceline DESTINATION share/zsh/vendor-completions
        COMPONENT debian EXCLUDE_FROM_ALL)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The Paceline authors <paceline@example.org>")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME paceline)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_COMMAND_DESCRIPTION
"The command paceline trains language models and others in one process, or
with parameter servers and workers on one machine or many, and says how fast
each task was and where its time went.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME paceline-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "g++, cmake, pkg-config, libdnnl-dev, libhwy-dev, libfmt-dev, libjpeg62-turbo-dev, libpng-dev, \
libwebp-dev, libssl-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS paceline)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
"Headers and static libraries, for models, data and ops of one's own, found by
CMake's find_package(paceline): paceline::core, which trains, and
paceline::paceline over it, with flags, live pages and predictions.")
include(CPack)
