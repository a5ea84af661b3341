# build/fakes: CUDA's driver, NVRTC, cuBLASLt and cuDNN on the host, which tests put before the real ones.
if(NOT PACELINE_TESTS)
  return()
endif()

# add_fake(SONAME SOURCES …): the library, under the name by which the real one is loaded.
function(add_fake soname)
  string(REGEX MATCH "^lib[a-z]+" name ${soname})
  string(REPLACE lib fake_ name ${name})
  add_library(${name} MODULE ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src
                                             ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(${name} PRIVATE PACELINE_SOURCE="${PROJECT_SOURCE_DIR}"
                                             PACELINE_KERNELS="${PROJECT_BINARY_DIR}/fakes/kernels")
  target_compile_options(${name} PRIVATE ${PACELINE_WARNINGS} -U_FORTIFY_SOURCE)
  target_link_libraries(${name} PRIVATE paceline_base)
  # Whoever asks for the real one by its name gets this one once it is loaded.
  target_link_options(${name} PRIVATE -Wl,-soname,${soname})
  set_target_properties(${name} PROPERTIES PREFIX "" OUTPUT_NAME ${soname} SUFFIX ""
                                           LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fakes)
endfunction()

add_fake(libcuda.so.1 ${PROJECT_SOURCE_DIR}/tests/fakes/fake_cuda_driver.cc
                      ${PROJECT_SOURCE_DIR}/tests/fakes/cuda_emulator.cc)
add_fake(libnvrtc.so.13 ${PROJECT_SOURCE_DIR}/tests/fakes/fake_nvrtc.cc)
add_fake(libcublasLt.so.13 ${PROJECT_SOURCE_DIR}/tests/fakes/fake_cublaslt.cc)
add_fake(libcudnn.so.9 ${PROJECT_SOURCE_DIR}/tests/fakes/fake_cudnn.cc)
# Their calls of the fake driver are found in it: it is there before them. CMake would look for a
# library by -lcuda in place of a path that is not there yet when it is configured, hence an option.
foreach(library fake_cublas fake_cudnn)
  add_dependencies(${library} fake_cuda)
  target_link_options(${library} PRIVATE $<TARGET_FILE:fake_cuda>
                                         -Wl,-rpath,${PROJECT_BINARY_DIR}/fakes)
endforeach()

add_dependencies(kernels_tests fake_cuda fake_nvrtc fake_cublas fake_cudnn)
if(TARGET paceline_cuda)
  add_dependencies(kernels_tests paceline_cuda)
endif()
