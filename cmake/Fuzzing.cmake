# The preset `fuzz` (clang, libFuzzer): one program fuzz_NAME a target of tests/fuzz/targets.h.
if(NOT PACELINE_FUZZING)
  return()
endif()

# The sources of a room, once for all fuzzers.
function(add_fuzzed_room room)
  if(TARGET fuzzed_${room})
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  add_library(fuzzed_${room} OBJECT ${sources})
  target_include_directories(fuzzed_${room} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                                   ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(fuzzed_${room} PUBLIC fmt::fmt nlohmann_json::nlohmann_json)
endfunction()

# add_fuzzer(NAME ROOM…): tests/fuzz/NAME_target.cc over these rooms, and no others: they are built
# with sanitizers, which takes long.
function(add_fuzzer name)
  add_executable(fuzz_${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/libfuzzer_main.cc
                              ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}_target.cc)
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(fuzz_${name} PRIVATE PACELINE_FUZZ_TARGET=fuzz_${name})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  foreach(room ${ARGN})
    add_fuzzed_room(${room})
    target_link_libraries(fuzz_${name} PRIVATE fuzzed_${room})
  endforeach()
endfunction()

add_fuzzer(safetensors base checkpoint)
add_fuzzer(checkpoint_index base checkpoint)
add_fuzzer(event_file base checkpoint summary)
add_fuzzer(event base checkpoint summary)
