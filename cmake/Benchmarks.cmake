# bench/NAME_bench.cc becomes the program NAME_bench. Off by default: figures are made by hand
# (docs/benchmarks.md), not by the tests.
option(PACELINE_BENCHMARKS "build the micro-benchmarks" OFF)

if(PACELINE_BENCHMARKS)
  find_package(benchmark REQUIRED)
  file(GLOB benches CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*_bench.cc)
  foreach(bench ${benches})
    get_filename_component(name ${bench} NAME_WE)
    add_executable(${name} ${bench})
    target_compile_options(${name} PRIVATE ${PACELINE_WARNINGS})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    list(GET PACELINE_ROOMS -1 top)
    target_link_libraries(${name} PRIVATE paceline_${top} benchmark::benchmark)
  endforeach()
endif()
