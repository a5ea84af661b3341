// The functions of CUDA's driver, NVRTC, cuBLASLt and cuDNN that Paceline calls, as the plug-in
// plugins/cuda_plugin.cc finds them. They are plain functions, so that nothing is built or linked
// with CUDA. They are declared as CUDA 13.0 and cuDNN 9 declare them; if their headers are
// installed, the plug-in compiles only if both declarations agree.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline {

/// Matrix products, from libcublasLt.so.13. Functions return 0 or an error number.
struct CublasCalls {
  using Status = int;
  struct Handle;
  struct Product;     // cublasLtMatmulDesc_t
  struct Layout;      // the layout of a matrix
  struct Preference;  // what a plan may use
  struct Algorithm {
    std::uint64_t data[8];
  };
  struct Found {  // cublasLtMatmulHeuristicResult_t
    Algorithm algorithm;
    std::size_t workspace_bytes;
    Status state;
    float waves;
    int reserved[4];
  };

  const char* (*error_text)(Status);
  Status (*create)(Handle** handle);
  Status (*destroy)(Handle* handle);
  Status (*make_product)(Product** product, int compute, int scale);
  Status (*destroy_product)(Product* product);
  Status (*set_product)(Product* product, int attribute, const void* value, std::size_t bytes);
  Status (*make_layout)(Layout** layout, int type, std::uint64_t rows, std::uint64_t columns,
                        std::int64_t leading);
  Status (*destroy_layout)(Layout* layout);
  Status (*set_layout)(Layout* layout, int attribute, const void* value, std::size_t bytes);
  Status (*make_preference)(Preference** preference);
  Status (*destroy_preference)(Preference* preference);
  Status (*set_preference)(Preference* preference, int attribute, const void* value,
                           std::size_t bytes);
  Status (*find)(Handle* handle, Product* product, Layout* a, Layout* b, Layout* c, Layout* d,
                 Preference* preference, int most, Found* found, int* count);
  Status (*multiply)(Handle* handle, Product* product, const void* alpha, const void* a,
                     Layout* of_a, const void* b, Layout* of_b, const void* beta, const void* c,
                     Layout* of_c, void* d, Layout* of_d, const Algorithm* algorithm,
                     void* workspace, std::size_t bytes, void* stream);

  static constexpr int kFloat = 0, kBfloat16 = 14;             // element types
  static constexpr int kCompute = 68, kTf32Compute = 77;       // compute types for float32
  static constexpr int kTransposeA = 3, kTransposeB = 4;       // attributes of a product
  static constexpr int kEpilogue = 7, kBiasPointer = 8;        // attributes of a product
  static constexpr std::uint32_t kBias = 4, kReluBias = 6;     // epilogues
  static constexpr int kBatchCount = 5, kBatchStride = 6;      // attributes of a layout
  static constexpr int kMostWorkspace = 1, kAlignmentOfA = 5;  // attributes of a preference
};

/// Convolutions, from libcudnn.so.9: its backend, in which descriptors with attributes define the
/// computation. Functions return 0 or an error number.
struct CudnnCalls {
  using Status = int;
  struct Handle;
  using Descriptor = void*;

  const char* (*error_text)(Status);
  void (*last_error)(char* text, std::size_t bytes);
  Status (*create)(Handle** handle);
  Status (*destroy)(Handle* handle);
  Status (*use_stream)(Handle* handle, void* stream);
  Status (*make)(int kind, Descriptor* descriptor);
  Status (*unmake)(Descriptor descriptor);
  Status (*set)(Descriptor descriptor, int attribute, int type, std::int64_t count,
                const void* values);
  Status (*get)(Descriptor descriptor, int attribute, int type, std::int64_t most,
                std::int64_t* count, void* values);
  Status (*finish)(Descriptor descriptor);
  Status (*execute)(Handle* handle, Descriptor plan, Descriptor pack);

  /// Kinds of descriptors.
  enum Kind {
    kConvolution = 1,
    kEngine = 2,
    kEngineConfig = 3,
    kHeuristics = 4,
    kPlan = 5,
    kForward = 10,
    kBackwardFilter = 11,
    kBackwardData = 12,
    kGraph = 15,
    kPack = 16,
    kTensor = 17,
    kDevice = 38,
  };
  /// Types of attributes.
  enum Type {
    kHandle = 0,
    kDataType = 1,
    kInt64 = 3,
    kDouble = 5,
    kPointer = 6,
    kConvolutionMode = 7,
    kHeuristicsMode = 8,
    kNumericalNote = 11,
    kDescriptor = 15,
    kChar = 24,
  };
  /// Attributes.
  enum Attribute {
    kComputeType = 100,
    kMode = 101,
    kDilations = 102,
    kStrides = 103,
    kPadsBehind = 104,
    kPadsBefore = 105,
    kSpatialDimensions = 106,
    kHeuristicsModeOf = 200,
    kHeuristicsGraph = 201,
    kResults = 202,
    kHeuristicsDevice = 204,
    kConfigEngine = 300,
    kPlanHandle = 400,
    kPlanConfig = 401,
    kPlanWorkspace = 402,
    kPlanDevice = 407,
    kForwardAlpha = 700,
    kForwardBeta = 701,
    kForwardConvolution = 702,
    kForwardW = 703,
    kForwardX = 704,
    kForwardY = 705,
    kDataAlpha = 706,
    kDataBeta = 707,
    kDataConvolution = 708,
    kDataW = 709,
    kDataDx = 710,
    kDataDy = 711,
    kFilterAlpha = 712,
    kFilterBeta = 713,
    kFilterConvolution = 714,
    kFilterDw = 715,
    kFilterX = 716,
    kFilterDy = 717,
    kGraphHandle = 800,
    kOps = 801,
    kTensorAlignment = 900,
    kTensorType = 901,
    kTensorDimensions = 902,
    kTensorStrides = 903,
    kTensorId = 906,
    kPackIds = 1000,
    kPackPointers = 1001,
    kPackWorkspace = 1003,
    kNotesOfEngine = 1303,
    kDeviceJson = 2702,
  };
  static constexpr int kFloat = 0, kCrossCorrelation = 1;
  static constexpr int kFallback = 2, kModeA = 3;  // heuristics
  /// Notes of an engine that computes with less than float32's precision.
  static constexpr int kTensorCore = 0, kDownConverts = 1, kReducedReduction = 2;
  static constexpr int kNondeterministic = 4;  // another note
};

/// The driver and the compiler. Functions return 0 or an error number.
struct CudaCalls {
  using Status = int;
  using Address = std::uint64_t;  // an address in a device's memory
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
  Status (*use_context)(Context* context);  // for the calling thread
  Status (*memory_left)(std::size_t* free, std::size_t* total);
  Status (*allocate)(Address* memory, std::size_t bytes);
  Status (*free)(Address memory);
  Status (*pin)(void* memory, std::size_t bytes, unsigned flags);  // host memory
  Status (*unpin)(void* memory);
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
  /// Null if the driver has no such function. kNotReady while an event has not happened.
  Status (*elapsed)(float* ms, Event* begin, Event* end);
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

  // Libraries that may be missing: our own kernels then do their work, more slowly.
  CublasCalls cublas{};
  CudnnCalls cudnn{};

  static constexpr Status kOutOfMemory = 2, kStubLibrary = 34, kNoDevice = 100, kNotReady = 600;
  static constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76;  // attributes
  static constexpr unsigned kForAllDevices = 1;                          // a flag of pinned memory
  static constexpr unsigned kNonBlocking = 1;                            // a flag of a stream
  static constexpr unsigned kTiming = 0, kNoTiming = 2;                  // flags of an event
};

/// What the plug-in found.
struct CudaPlugin {
  CudaCalls calls{};
  const char* no_driver = nullptr;    // why there is no driver; null: there is one
  const char* no_compiler = nullptr;  // why there is no NVRTC
  const char* no_cublas = nullptr;    // why there is no cuBLASLt
  const char* no_cudnn = nullptr;     // why there is no cuDNN
};

/// The name and the type of the plug-in's only function.
constexpr const char* kCudaPluginFunction = "paceline_cuda_plugin";
using CudaPluginFunction = const CudaPlugin* (*)();

}  // namespace paceline
