# In the preset `fuzz` (clang) one program fuzz_NAME a target of tests/fuzz/targets.h, for which
# libFuzzer makes up bytes; where tests are built, play_fuzz, which gives a target the bytes of files.
if(PACELINE_TESTS)
  file(GLOB targets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*_target.cc)
  add_executable(play_fuzz ${PROJECT_SOURCE_DIR}/tests/fuzz/play_fuzz.cc
                           ${PROJECT_SOURCE_DIR}/tests/fuzz/ps_script.cc ${targets})
  target_include_directories(play_fuzz PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(play_fuzz PRIVATE ${PACELINE_WARNINGS})
  target_link_libraries(play_fuzz PRIVATE paceline_cli)
endif()
if(NOT PACELINE_FUZZING)
  return()
endif()

# The sources of a room, once for all fuzzers.
function(add_fuzzed_room room)
  if(TARGET fuzzed_${room})
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*.cc)
  list(FILTER sources EXCLUDE REGEX "(_test\\.cc|/testing/[^/]*)$")
  add_library(fuzzed_${room} OBJECT ${sources})
  target_include_directories(fuzzed_${room} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                                   ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(fuzzed_${room} PUBLIC fmt::fmt nlohmann_json::nlohmann_json)
endfunction()

# add_fuzzer(NAME ROOM… [FILES …]): tests/fuzz/NAME_target.cc over these rooms and files of src/, and
# no others, since building them with sanitizers takes long. With tests/fuzz/NAME_script.cc if there is one.
function(add_fuzzer name)
  cmake_parse_arguments(FUZZER "" "" "FILES" ${ARGN})
  file(GLOB script ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}_script.cc)
  add_executable(fuzz_${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/run_one.cc
                              ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}_target.cc ${script})
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src
                                                  ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(fuzz_${name} PRIVATE PACELINE_FUZZ_TARGET=fuzz_${name})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  list(TRANSFORM FUZZER_FILES PREPEND ${PROJECT_SOURCE_DIR}/src/)
  target_sources(fuzz_${name} PRIVATE ${FUZZER_FILES})
  foreach(room ${FUZZER_UNPARSED_ARGUMENTS})
    add_fuzzed_room(${room})
    target_link_libraries(fuzz_${name} PRIVATE fuzzed_${room})
  endforeach()
endfunction()

# All sources of a folder of params/.
function(list_params folder list)
  file(GLOB sources RELATIVE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/params/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  set(${list} ${sources} PARENT_SCOPE)
endfunction()
list_params(protocol PROTOCOL)
list_params(ps PS)
list_params(shard SHARD)
list_params(wire WIRE)

add_fuzzer(safetensors base checkpoint)
add_fuzzer(checkpoint_index base checkpoint)
add_fuzzer(event_file base checkpoint summary)
add_fuzzer(event base checkpoint summary)
add_fuzzer(config base FILES cli/flags/config_file.cc run/config/config_json.cc
                             run/config/config_toml.cc run/config/config_value.cc
                             cli/flags/flag_values.cc cli/flags/path_flags.cc
                             cli/flags/unknown_flag.cc run/usage_errors.cc)
add_fuzzer(tf_config base FILES run/config/config_json.cc run/config/config_value.cc
                                cli/flags/tf_config.cc)
add_fuzzer(preamble base trace net)
add_fuzzer(frames base trace net)
add_fuzzer(tls base trace net)
foreach(name preamble frames tls)
  target_link_libraries(fuzz_${name} PRIVATE OpenSSL::SSL)
endforeach()
add_fuzzer(records base checkpoint FILES data/record_files.cc)
add_fuzzer(image base FILES data/decode.cc data/jpeg.cc data/orientation.cc data/png.cc data/resize.cc
                            data/resize_rows.cc data/webp.cc)
target_link_libraries(fuzz_image PRIVATE JPEG::JPEG PNG::PNG PkgConfig::WEBP PkgConfig::HWY)
set(DECODED ${WIRE})
list(REMOVE_ITEM DECODED params/wire/rounded_floats.cc)  # which needs kernels
add_fuzzer(messages base graph FILES ${DECODED} params/protocol/aggregation.cc
                                     params/protocol/placement.cc params/variable_arrays.cc
                                     probe/probe_desk.cc probe/probe_messages.cc)
# A ps needs nearly all of these folders.
add_fuzzer(ps base checkpoint net FILES
           graph/attributes.cc graph/fused_program.cc graph/rule.cc
           graph/rule_program.cc kernels/cpu/element_function.cc kernels/cpu/gemm.cc
           kernels/cpu/instruction_set.cc kernels/cpu/rule_program_pass.cc
           kernels/cpu/rule_program_whole.cc kernels/cpu/rules.cc kernels/cpu/tile_blocks.cc
           kernels/cpu/tile_grid.cc kernels/cpu/vector_cast.cc kernels/cpu/vector_functions.cc
           kernels/cpu/vector_math.cc kernels/cpu/vector_program.cc kernels/finite.cc
           ${PROTOCOL} ${PS} ${SHARD} ${WIRE} params/clip_scale.cc params/clock_questions.cc
           params/resumable_connection.cc params/variable_arrays.cc params/weighted_sum.cc
           trace/clock_samples.cc trace/pressure_counters.cc trace/proc_text.cc trace/stop_watch.cc
           trace/timeline.cc trace/use_meter.cc)
target_link_libraries(fuzz_ps PRIVATE OpenSSL::SSL PkgConfig::HWY DNNL::dnnl OpenMP::OpenMP_CXX)
