// The calls of CUDA's driver and of NVRTC that are used, as the plug-in plugins/cuda_plugin.cc
// finds them: plain functions, so that nothing is built or linked with CUDA. They are declared as
// CUDA 13.0 declares them; where its headers are there, the plug-in is compiled only if that is
// true.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline {

/// Functions return 0 or the number of an error.
struct CudaCalls {
  using Status = int;
  using Address = std::uint64_t;  // in the memory of a device
  struct Context;
  struct Stream;
  struct Event;
  struct Module;
  struct Function;
  struct Program;

  // The driver, libcuda.so.1.
  Status (*init)(unsigned flags);
  Status (*error_text)(Status, const char** text);
  Status (*driver_version)(int* version);  // 13000 for CUDA 13.0
  Status (*device_count)(int* count);
  Status (*device)(int* device, int index);
  Status (*device_name)(char* name, int bytes, int device);
  Status (*device_memory)(std::size_t* bytes, int device);
  Status (*device_attribute)(int* value, int attribute, int device);
  Status (*retain_context)(Context** context, int device);
  Status (*release_context)(int device);
  Status (*use_context)(Context* context);  // in the calling thread
  Status (*memory_left)(std::size_t* free, std::size_t* total);
  Status (*allocate)(Address* memory, std::size_t bytes);
  Status (*free)(Address memory);
  Status (*fill)(Address memory, unsigned char byte, std::size_t bytes, Stream*);
  Status (*upload)(Address to, const void* from, std::size_t bytes, Stream*);
  Status (*download)(void* to, Address from, std::size_t bytes, Stream*);
  Status (*copy)(Address to, Address from, std::size_t bytes, Stream*);
  Status (*make_stream)(Stream** stream, unsigned flags);
  Status (*destroy_stream)(Stream* stream);
  Status (*wait_for_stream)(Stream* stream);
  Status (*stream_waits)(Stream* stream, Event* event, unsigned flags);
  Status (*make_event)(Event** event, unsigned flags);
  Status (*destroy_event)(Event* event);
  Status (*record_event)(Event* event, Stream* stream);
  Status (*wait_for_event)(Event* event);
  Status (*load_module)(Module** module, const void* image);
  Status (*unload_module)(Module* module);
  Status (*find_function)(Function** function, Module* module, const char* name);
  Status (*launch)(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   Stream* stream, void** parameters, void** extra);

  // The compiler, libnvrtc.so.13.
  const char* (*compiler_error_text)(Status);
  Status (*compiler_version)(int* major, int* minor);
  Status (*make_program)(Program** program, const char* source, const char* name, int headers,
                         const char* const* texts, const char* const* names);
  Status (*destroy_program)(Program** program);
  Status (*compile)(Program* program, int options, const char* const* words);
  Status (*log_bytes)(Program* program, std::size_t* bytes);
  Status (*log)(Program* program, char* text);
  Status (*cubin_bytes)(Program* program, std::size_t* bytes);
  Status (*cubin)(Program* program, char* image);

  static constexpr Status kOutOfMemory = 2, kStubLibrary = 34, kNoDevice = 100;
  static constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76;  // attributes
  static constexpr unsigned kNonBlocking = 1;                            // a flag of a stream
  static constexpr unsigned kNoTiming = 2;                               // a flag of an event
};

/// What the plug-in has found.
struct CudaPlugin {
  CudaCalls calls{};
  const char* no_driver = nullptr;    // why there is no driver; null: there is one
  const char* no_compiler = nullptr;  // the same of NVRTC
};

/// The name and the type of the plug-in's only function.
constexpr const char* kCudaPluginFunction = "paceline_cuda_plugin";
using CudaPluginFunction = const CudaPlugin* (*)();

}  // namespace paceline
