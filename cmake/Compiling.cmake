# How sources are compiled, and how tests are.
set(PACELINE_WARNINGS -Wall -Wextra -Werror -Wpedantic)

# Compiles the sources of each folder at once, in a build that does so.
function(unite_folders name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${PACELINE_UNITY} UNITY_BUILD_MODE GROUP)
  foreach(source ${ARGN})
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(folder ${folder} NAME)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder})
  endforeach()
endfunction()

# Headers that nearly every source includes are compiled once for all targets: the standard library's
# for libraries, GoogleTest's too for tests. A target that takes them is compiled with the same
# options. The first only where folders are compiled at once: elsewhere a source is to be seen to
# include what it needs. GCC's option lets ccache keep what includes precompiled headers.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/headers.cc CONTENT "")
function(compile_headers name)
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/generated/headers.cc)
  target_link_libraries(${name} PRIVATE fmt::fmt)
  target_precompile_headers(${name} PRIVATE
    <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstring> <deque>
    <filesystem> <fstream> <functional> <map> <memory> <mutex> <numeric> <optional> <set> <span>
    <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/format.h>
    ${ARGN})
endfunction()

compile_headers(paceline_headers)
target_compile_options(paceline_headers PRIVATE ${PACELINE_WARNINGS})
set_target_properties(paceline_headers PROPERTIES POSITION_INDEPENDENT_CODE ON EXCLUDE_FROM_ALL ON)

# A library of Paceline's own.
function(add_own_library name)
  add_library(${name} STATIC ${ARGN})
  unite_folders(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${name} PRIVATE ${PACELINE_WARNINGS})
  if(PACELINE_UNITY)
    target_precompile_headers(${name} REUSE_FROM paceline_headers)
  endif()
endfunction()

if(NOT PACELINE_TESTS)
  return()
endif()

# Tests of an optimised library are optimised less: at -O1 they take a third longer to compile, at -O0
# no less, and those that compute or simulate then run for minutes.
set(PACELINE_TEST_OPTIONS ${PACELINE_WARNINGS} $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
                          $<$<CONFIG:Release>:-Og>)
compile_headers(paceline_test_headers <gmock/gmock.h> <gtest/gtest.h>)
target_compile_options(paceline_test_headers PRIVATE ${PACELINE_TEST_OPTIONS})
target_link_libraries(paceline_test_headers PRIVATE GTest::gmock GTest::gtest)

# A program of tests.
function(add_test_program name)
  add_executable(${name} ${ARGN})
  unite_folders(${name} ${ARGN})
  target_compile_options(${name} PRIVATE ${PACELINE_TEST_OPTIONS})
  target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM paceline_test_headers)
endfunction()

# Of the eleven places that the test presets give, a test takes four, and one that mostly waits, for
# deadlines or for the tasks that it starts, takes one: so two tests are busy at a time, and three
# wait beside them.
set(PACELINE_BUSY_TEST TIMEOUT 900 PROCESSORS 4)
set(PACELINE_WAITING_TEST TIMEOUT 900 PROCESSORS 1)

# discover_tests(NAME_tests [WAITING suites…] [APART suites…]): CTest runs each test of the program,
# with the label NAME. Those of waiting suites mostly wait; those apart are added elsewhere.
function(discover_tests name)
  cmake_parse_arguments(TESTS "" "" "WAITING;APART" ${ARGN})
  string(REPLACE _tests "" label ${name})
  list(TRANSFORM TESTS_WAITING APPEND ".*")
  list(TRANSFORM TESTS_APART APPEND ".*")
  if(TESTS_WAITING)
    list(JOIN TESTS_WAITING ":" waiting)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "${waiting}"
                         PROPERTIES ${PACELINE_WAITING_TEST} LABELS ${label})
  endif()
  list(APPEND TESTS_APART ${TESTS_WAITING})
  list(JOIN TESTS_APART ":" not_here)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "*-${not_here}"
                       PROPERTIES ${PACELINE_BUSY_TEST} LABELS ${label})
endfunction()
