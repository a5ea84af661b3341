# libpaceline_mpi.so, which `--collectives mpi` loads. AUTO makes it where MPI is there, in the build
# folder only; ON needs MPI, and installs it, too; OFF leaves it out.
set(PACELINE_MPI AUTO CACHE STRING "the plug-in for --collectives mpi: AUTO, ON or OFF")
set_property(CACHE PACELINE_MPI PROPERTY STRINGS AUTO ON OFF)
if(NOT PACELINE_MPI)
  return()
endif()
if(PACELINE_MPI STREQUAL AUTO)
  # Debian's openmpi-bin alone has MPI's compiler without its headers, which would end find_package
  # with an error.
  find_program(PACELINE_MPICXX mpicxx)
  execute_process(COMMAND ${PACELINE_MPICXX} -E -include mpi.h -x c++ /dev/null
                  RESULT_VARIABLE no_headers OUTPUT_QUIET ERROR_QUIET)
  if(NOT no_headers)
    find_package(MPI QUIET COMPONENTS CXX)
  endif()
else()
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()
if(NOT MPI_CXX_FOUND)
  message(STATUS "No MPI: built without --collectives mpi (scripts/install_dependencies --mpi)")
  return()
endif()

add_library(paceline_mpi MODULE ${PROJECT_SOURCE_DIR}/plugins/mpi_plugin.cc)
target_include_directories(paceline_mpi PRIVATE ${PROJECT_SOURCE_DIR}/src)
# MPI's own headers have warnings of their own, and its C++ bindings are not used.
target_include_directories(paceline_mpi SYSTEM PRIVATE ${MPI_CXX_INCLUDE_DIRS})
target_compile_definitions(paceline_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
target_compile_options(paceline_mpi PRIVATE ${PACELINE_WARNINGS} -fvisibility=hidden)
target_link_libraries(paceline_mpi PRIVATE MPI::MPI_CXX)
set_target_properties(paceline_mpi PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
if(NOT PACELINE_MPI STREQUAL AUTO)
  install(TARGETS paceline_mpi LIBRARY DESTINATION lib/paceline COMPONENT mpi)
endif()
