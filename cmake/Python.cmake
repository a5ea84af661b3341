# The Python package: the module _paceline over the static library, and where scikit-build-core makes a
# wheel, the command and the shared libraries that a machine without compilers need not have.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "PACELINE_PYTHON needs nanobind in ${Python_EXECUTABLE}; scripts/test_python installs it")
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/bindings/*.cc)
nanobind_add_module(_paceline NB_STATIC ${sources})
unite_folders(_paceline ${sources})
target_include_directories(_paceline PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
target_compile_options(_paceline PRIVATE -Wall -Wextra -Werror)
target_link_libraries(_paceline PRIVATE paceline)
# Nobody sees the library's names, and unused code is left out.
target_link_options(_paceline PRIVATE -Wl,--gc-sections
                    -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/python_module.map)

# build/…/python is what PYTHONPATH names to use what was built: the module, and links to the package's files.
set(PACELINE_PACKAGE ${PROJECT_BINARY_DIR}/python/paceline)
file(MAKE_DIRECTORY ${PACELINE_PACKAGE}/bin)
file(GLOB package CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/python/paceline
     ${PROJECT_SOURCE_DIR}/python/paceline/*.py ${PROJECT_SOURCE_DIR}/python/paceline/py.typed)
foreach(file ${package})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/paceline/${file} ${PACELINE_PACKAGE}/${file} SYMBOLIC)
endforeach()
file(CREATE_LINK ${PROJECT_BINARY_DIR}/paceline ${PACELINE_PACKAGE}/bin/paceline SYMBOLIC)
if(TARGET paceline_cuda)
  file(MAKE_DIRECTORY ${PACELINE_PACKAGE}/lib/paceline)
  file(CREATE_LINK ${PROJECT_BINARY_DIR}/libpaceline_cuda.so
       ${PACELINE_PACKAGE}/lib/paceline/libpaceline_cuda.so SYMBOLIC)
endif()
set_target_properties(_paceline PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PACELINE_PACKAGE})
nanobind_add_stub(paceline_stub MODULE _paceline OUTPUT ${PACELINE_PACKAGE}/_paceline.pyi
                  PYTHON_PATH ${PACELINE_PACKAGE} DEPENDS _paceline)
add_custom_target(paceline_python DEPENDS paceline_stub paceline_command)

# In the wheel the module and the command find the libraries that they bring in paceline/lib, and those
# also each other, which DT_RUNPATH would not do. What Debian's python3 needs itself is not brought.
if(SKBUILD)
  target_link_options(_paceline PRIVATE -Wl,--disable-new-dtags)
  target_link_options(paceline_command PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(_paceline PROPERTIES INSTALL_RPATH $ORIGIN/lib)
  set_target_properties(paceline_command PROPERTIES INSTALL_RPATH $ORIGIN/../lib)
  install(TARGETS _paceline RUNTIME_DEPENDENCY_SET bundled LIBRARY DESTINATION paceline COMPONENT python)
  install(TARGETS paceline_command RUNTIME_DEPENDENCY_SET bundled RUNTIME DESTINATION paceline/bin
          COMPONENT python)
  install(RUNTIME_DEPENDENCY_SET bundled COMPONENT python DESTINATION paceline/lib
          PRE_EXCLUDE_REGEXES "^lib(c|m|stdc\\+\\+|gcc_s|ssl|crypto|z)\\.so" "^ld-linux")
  # Where both the command in bin and the module look for it.
  if(TARGET paceline_cuda)
    install(TARGETS paceline_cuda LIBRARY DESTINATION paceline/lib/paceline COMPONENT python)
  endif()
  install(FILES ${PACELINE_PACKAGE}/_paceline.pyi DESTINATION paceline COMPONENT python)
  install(FILES ${PROJECT_SOURCE_DIR}/python/paceline_command.py DESTINATION . COMPONENT python)
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/BundledLibraries.cmake COMPONENT python)
endif()
