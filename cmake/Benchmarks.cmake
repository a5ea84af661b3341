# bench/: what `paceline bench` measures with, as a library that the micro-benchmarks use too, its
# tests, and bench/NAME_bench.cc as the programs NAME_bench. Those are off by default: figures are
# made by hand (docs/benchmarks.md) with what the preset "bench" builds.
option(PACELINE_BENCHMARKS "build the micro-benchmarks" OFF)

function(add_bench_library)
  add_measuring_library(bench)
  target_link_libraries(paceline_bench PUBLIC paceline_models)
endfunction()

# evidence/: the command paceline-evidence.
function(add_evidence)
  add_measuring_library(evidence main.cc)
  target_link_libraries(paceline_evidence PUBLIC paceline_bench)
  add_executable(paceline_evidence_command ${PROJECT_SOURCE_DIR}/evidence/main.cc)
  set_target_properties(paceline_evidence_command PROPERTIES
                        OUTPUT_NAME paceline-evidence RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_compile_options(paceline_evidence_command PRIVATE ${PACELINE_WARNINGS})
  target_link_libraries(paceline_evidence_command PRIVATE paceline_evidence)
  add_dependencies(paceline_evidence_command paceline_command)
  if(PACELINE_TESTS)
    target_sources(evidence_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests/process.cc)
    target_compile_definitions(evidence_tests PRIVATE
                               PACELINE_COMMAND="$<TARGET_FILE:paceline_command>"
                               PACELINE_EVIDENCE_COMMAND="$<TARGET_FILE:paceline_evidence_command>")
    add_dependencies(evidence_tests paceline_evidence_command)
  endif()
endfunction()

# add_measuring_library(FOLDER [FILES that are left out…]): the library paceline_FOLDER, and FOLDER_tests.
function(add_measuring_library folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/${folder}/ OUTPUT_VARIABLE left_out)
  list(REMOVE_ITEM sources ${left_out})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  add_own_library(paceline_${folder} ${sources})
  target_include_directories(paceline_${folder} PUBLIC ${PROJECT_SOURCE_DIR}
                                                       ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(paceline_${folder} PRIVATE nlohmann_json::nlohmann_json)
  if(PACELINE_TESTS)
    add_test_program(${folder}_tests ${tests})
    target_link_libraries(${folder}_tests PRIVATE paceline_${folder} nlohmann_json::nlohmann_json)
    target_compile_definitions(${folder}_tests PRIVATE PACELINE_SOURCE="${PROJECT_SOURCE_DIR}")
    discover_tests(${folder}_tests)
  endif()
endfunction()

function(add_benchmark_programs)
  if(NOT PACELINE_BENCHMARKS)
    return()
  endif()
  find_package(benchmark REQUIRED)
  file(GLOB benches CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*_bench.cc)
  foreach(bench ${benches})
    get_filename_component(name ${bench} NAME_WE)
    add_executable(${name} ${bench})
    target_compile_options(${name} PRIVATE ${PACELINE_WARNINGS})
    target_link_libraries(${name} PRIVATE paceline_bench benchmark::benchmark DNNL::dnnl
                                          OpenMP::OpenMP_CXX)
  endforeach()
endfunction()
