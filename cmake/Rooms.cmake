# add_room(NAME [LIBRARIES …] [LARGE_SUITES …] [WAITING_SUITES …]): the library of src/NAME, over all
# rooms added before it, and the program NAME_tests of every *_test.cc and testing/*.cc in it.
# Sources and tests are found by folder. CTest runs each test in a process of its own, but all of a
# large suite in one, since starting a process takes longer than one of its thousands of cases.
set(PACELINE_ROOMS "")

function(add_room name)
  cmake_parse_arguments(ROOM "" "" "LIBRARIES;LARGE_SUITES;WAITING_SUITES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test\\.cc|/testing/[^/]*)$")
  list(FILTER tests INCLUDE REGEX "(_test\\.cc|/testing/[^/]*)$")

  if(NOT sources)
    return()
  endif()
  add_own_library(paceline_${name} ${sources})
  target_include_directories(paceline_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                                     ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(paceline_${name} PUBLIC ${ROOM_LIBRARIES})
  if(PACELINE_ROOMS)
    list(GET PACELINE_ROOMS -1 below)
    target_link_libraries(paceline_${name} PUBLIC paceline_${below})
  endif()
  set(PACELINE_ROOMS ${PACELINE_ROOMS} ${name} PARENT_SCOPE)

  if(PACELINE_TESTS AND tests)
    add_test_program(${name}_tests ${tests})
    target_link_libraries(${name}_tests PRIVATE paceline_${name})
    foreach(suite ${ROOM_LARGE_SUITES})
      add_test(NAME ${suite}.AllCases COMMAND ${name}_tests --gtest_filter=${suite}.*)
      set_tests_properties(${suite}.AllCases PROPERTIES ${PACELINE_BUSY_TEST} LABELS ${name}
                                                        FAIL_REGULAR_EXPRESSION "\\] 0 tests")
    endforeach()
    discover_tests(${name}_tests WAITING ${ROOM_WAITING_SUITES} APART ${ROOM_LARGE_SUITES})
  endif()
endfunction()

# The tests of kernels with each instruction set below the best, as on a machine that has no better
# one. A GPU's kernels have none.
function(add_lower_instruction_set_tests)
  if(NOT TARGET kernels_tests)
    return()
  endif()
  foreach(name AVX-512 AVX2 SSE4 SSSE3 scalar)
    add_test(NAME kernels_with_${name} COMMAND kernels_tests --gtest_filter=-Cuda*:Planted*)
    set_tests_properties(kernels_with_${name} PROPERTIES
                         ENVIRONMENT PACELINE_TEST_INSTRUCTION_SET=${name} ${PACELINE_BUSY_TEST}
                         SKIP_REGULAR_EXPRESSION "this machine has no")
  endforeach()
endfunction()

# add_paceline_libraries(ROOM): the two libraries that are installed. paceline_core has the objects of
# the rooms up to this one, with which a program of one's own trains; paceline has those of the others.
function(add_paceline_libraries last_of_core)
  set(rooms "")
  foreach(room ${PACELINE_ROOMS})
    list(APPEND rooms ${room})
    if(room STREQUAL last_of_core)
      list(TRANSFORM rooms REPLACE ".+" "$<TARGET_OBJECTS:paceline_\\0>" OUTPUT_VARIABLE objects)
      add_library(paceline_core STATIC ${objects})
      set(rooms "")
    endif()
  endforeach()
  list(TRANSFORM rooms REPLACE ".+" "$<TARGET_OBJECTS:paceline_\\0>" OUTPUT_VARIABLE objects)
  add_library(paceline STATIC ${objects})
  list(JOIN rooms "," rooms)
  set(PACELINE_ROOMS_OVER_CORE ${rooms} PARENT_SCOPE)
  set_target_properties(paceline paceline_core PROPERTIES LINKER_LANGUAGE CXX)
  set_target_properties(paceline_core PROPERTIES EXPORT_NAME core)
  target_include_directories(paceline_core PUBLIC
                             $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(paceline_core PUBLIC cxx_std_20)
  target_link_libraries(paceline_core PUBLIC Threads::Threads fmt::fmt $<LINK_ONLY:DNNL::dnnl>
                                             $<LINK_ONLY:PkgConfig::HWY>
                                             $<LINK_ONLY:JPEG::JPEG> $<LINK_ONLY:PNG::PNG>
                                             $<LINK_ONLY:PkgConfig::WEBP> $<LINK_ONLY:OpenSSL::SSL>
                                             $<LINK_ONLY:OpenMP::OpenMP_CXX>)
  target_link_libraries(paceline PUBLIC paceline_core)
endfunction()

# The model zoo sees only include/paceline/.
function(add_models)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/models/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(NOT sources)
    return()
  endif()
  add_own_library(paceline_models ${sources})
  target_include_directories(paceline_models PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(paceline_models PUBLIC paceline PRIVATE fmt::fmt)
  if(PACELINE_TESTS AND tests)
    add_test_program(models_tests ${tests})
    target_link_libraries(models_tests PRIVATE paceline_models)
    discover_tests(models_tests)
  endif()
endfunction()

# The command `paceline`.
function(add_tools)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/*.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(paceline_command ${sources})
  set_target_properties(paceline_command PROPERTIES OUTPUT_NAME paceline
                                                    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  unite_folders(paceline_command ${sources})
  target_include_directories(paceline_command PRIVATE ${PROJECT_SOURCE_DIR}
                                                      ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(paceline_command PRIVATE ${PACELINE_WARNINGS})
  target_link_libraries(paceline_command PRIVATE paceline_bench paceline_models CLI11::CLI11
                                                 nlohmann_json::nlohmann_json)
  foreach(plugin paceline_mpi paceline_cuda)
    if(TARGET ${plugin})
      add_dependencies(paceline_command ${plugin})
    endif()
  endforeach()
endfunction()

# tests/*_test.cc: what needs several processes, or several rooms and the models at once.
function(add_process_tests)
  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.cc)
  if(NOT tests)
    return()
  endif()
  file(GLOB support CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*.cc
                                      ${PROJECT_SOURCE_DIR}/tests/fuzz/*.cc)
  list(FILTER support EXCLUDE REGEX "(run_one|play_fuzz)\\.cc")
  # Programs that a test starts as a task.
  add_executable(phase_task ${PROJECT_SOURCE_DIR}/tests/programs/phase_task.cc)
  target_include_directories(phase_task PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(phase_task PRIVATE ${PACELINE_WARNINGS})
  target_link_libraries(phase_task PRIVATE paceline fmt::fmt)
  # What scripts/stress_workers kills and stops.
  add_executable(counting_task ${PROJECT_SOURCE_DIR}/tests/programs/counting_task.cc)
  target_compile_options(counting_task PRIVATE ${PACELINE_WARNINGS})
  target_link_libraries(counting_task PRIVATE paceline_cli fmt::fmt)
  add_executable(records_task ${PROJECT_SOURCE_DIR}/tests/programs/records_task.cc)
  target_compile_options(records_task PRIVATE ${PACELINE_WARNINGS})
  target_link_libraries(records_task PRIVATE paceline_cli fmt::fmt)
  # What mpirun starts as each rank.
  add_executable(mpi_values ${PROJECT_SOURCE_DIR}/tests/programs/mpi_values.cc)
  target_compile_options(mpi_values PRIVATE ${PACELINE_WARNINGS})
  target_link_libraries(mpi_values PRIVATE paceline_params GTest::gtest)
  # What tests/parity/run compares with PyTorch; built when that asks for it.
  add_executable(parity_step EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/parity/parity_step.cc
                                              ${PROJECT_SOURCE_DIR}/tests/step_values.cc)
  target_include_directories(parity_step PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(parity_step PRIVATE ${PACELINE_WARNINGS})
  target_link_libraries(parity_step PRIVATE paceline_models paceline_cli)
  # What tests/parity/run_onnx compares with onnxruntime, likewise.
  file(GLOB op_cases CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/testing/op_cases*.cc)
  add_executable(onnx_values EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/parity/onnx_values.cc
                                              ${PROJECT_SOURCE_DIR}/tests/step_values.cc ${op_cases})
  target_include_directories(onnx_values PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(onnx_values PRIVATE ${PACELINE_WARNINGS})
  target_link_libraries(onnx_values PRIVATE paceline_models paceline_cli)
  # And what is preloaded into one.
  add_library(hold_saves SHARED ${PROJECT_SOURCE_DIR}/tests/programs/hold_saves.cc)
  target_compile_options(hold_saves PRIVATE ${PACELINE_WARNINGS})
  # What scripts/stage_causes trains, beside the command's models, and preloads.
  add_executable(staged_task ${PROJECT_SOURCE_DIR}/tests/programs/staged_task.cc)
  target_compile_options(staged_task PRIVATE ${PACELINE_WARNINGS})
  target_link_libraries(staged_task PRIVATE paceline_cli fmt::fmt)
  add_library(slow_calls SHARED ${PROJECT_SOURCE_DIR}/tests/programs/slow_calls.cc)
  target_compile_options(slow_calls PRIVATE ${PACELINE_WARNINGS})
  add_test_program(process_tests ${support})
  target_include_directories(process_tests PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(process_tests PRIVATE PACELINE_COMMAND="$<TARGET_FILE:paceline_command>"
                                                   PACELINE_PHASE_TASK="$<TARGET_FILE:phase_task>"
                                                   PACELINE_COUNTING_TASK="$<TARGET_FILE:counting_task>"
                                                   PACELINE_RECORDS_TASK="$<TARGET_FILE:records_task>"
                                                   PACELINE_MPI_VALUES="$<TARGET_FILE:mpi_values>"
                                                   PACELINE_HOLD_SAVES="$<TARGET_FILE:hold_saves>"
                                                   PACELINE_SOURCE="${PROJECT_SOURCE_DIR}"
                                                   PACELINE_BUILD="${PROJECT_BINARY_DIR}"
                                                   PACELINE_ROOMS_OVER_CORE="${PACELINE_ROOMS_OVER_CORE}")
  target_link_libraries(process_tests PRIVATE paceline_models paceline_cli
                                              nlohmann_json::nlohmann_json)
  add_dependencies(process_tests paceline_command phase_task counting_task records_task hold_saves
                   mpi_values fake_cuda fake_nvrtc fake_cublas fake_cudnn)
  discover_tests(process_tests
                 WAITING Absence AsyncLocalSteps ExplainTest Job/LocalSteps Job/LostWorker LabTest
                         Launcher Links/AllReduce Links/DisturbedLink LostPs HybridOnHosts
                         Phases/FaultTest Probe Refusal Saving Server Strategies/CutLink
                         Strategies/SharedRecordsOf Strategies/SlowPs Strategies/Stress
                         SyncProcesses)
endfunction()
