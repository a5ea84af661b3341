# bench/: what `paceline bench` measures with, as a library that the micro-benchmarks use too, its
# tests, and bench/NAME_bench.cc as the programs NAME_bench. Those are off by default: figures are
# made by hand (docs/benchmarks.md) with what the preset "bench" builds; the preset "debug" builds
# them so that they go on compiling.
option(PACELINE_BENCHMARKS "build the micro-benchmarks" OFF)

function(add_bench_library)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  add_library(paceline_bench STATIC ${sources})
  set_target_properties(paceline_bench PROPERTIES UNITY_BUILD ${PACELINE_UNITY})
  target_include_directories(paceline_bench PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(paceline_bench PRIVATE ${PACELINE_WARNINGS})
  target_link_libraries(paceline_bench PUBLIC paceline_models
                                       PRIVATE nlohmann_json::nlohmann_json)
  if(PACELINE_TESTS)
    add_test_program(bench_tests ${tests})
    target_link_libraries(bench_tests PRIVATE paceline_bench nlohmann_json::nlohmann_json)
    target_compile_definitions(bench_tests PRIVATE PACELINE_SOURCE="${PROJECT_SOURCE_DIR}")
    discover_tests(bench_tests)
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
