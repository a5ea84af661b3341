# libpaceline_cuda.so, which `--device cuda` loads. It is built and installed without CUDA, and finds
# NVIDIA's libraries when it is loaded, so that one package serves machines with and without a GPU.
# AUTO compares its declarations with CUDA's headers where they are there; ON needs them, as a build
# for others should; OFF leaves the plug-in out.
set(PACELINE_CUDA AUTO CACHE STRING "the plug-in for --device cuda: AUTO, ON or OFF")
set_property(CACHE PACELINE_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT PACELINE_CUDA)
  return()
endif()
file(GLOB wheels $ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/*/include)
find_path(PACELINE_CUDA_HEADERS nvrtc.h HINTS $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include
          /usr/local/cuda/include ${wheels})
if(NOT PACELINE_CUDA_HEADERS AND NOT PACELINE_CUDA STREQUAL AUTO)
  message(FATAL_ERROR "PACELINE_CUDA=${PACELINE_CUDA} compares declarations with CUDA's headers: set CUDA_HOME to a "
                      "toolkit of version 13.0, or use PACELINE_CUDA=AUTO")
endif()

add_library(paceline_cuda MODULE ${PROJECT_SOURCE_DIR}/plugins/cuda_plugin.cc)
target_include_directories(paceline_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src)
if(PACELINE_CUDA_HEADERS)
  target_include_directories(paceline_cuda SYSTEM PRIVATE ${PACELINE_CUDA_HEADERS})
endif()
target_compile_options(paceline_cuda PRIVATE ${PACELINE_WARNINGS} -fvisibility=hidden)
target_link_libraries(paceline_cuda PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(paceline_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
install(TARGETS paceline_cuda LIBRARY DESTINATION lib/paceline COMPONENT command)
