// libpaceline_cuda.so: finds the functions of kernels/cuda/cuda_calls.h in the NVIDIA libraries of
// this machine. It looks where the system looks for libraries, in $CUDA_HOME, and in the folders of
// NVIDIA's wheels.
#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/cuda/cuda_calls.h"

#if __has_include(<cuda.h>) && __has_include(<nvrtc.h>)
#include <cuda.h>
#include <nvrtc.h>
#define PACELINE_HAS_CUDA_HEADERS 1
#endif
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif

namespace paceline {
namespace {

// Returns the folders in which libraries may lie. Wheels lie in the package folder of a Python:
// that of a virtual environment; that of the Python whose program folder this program lies in; the
// user's; or the system's.
std::vector<std::string> folders() {
  std::vector<std::string> folders, pythons;
  for (const char* const name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* const home = std::getenv(name)) {
      folders.push_back(std::string(home) + "/lib64");
      folders.push_back(std::string(home) + "/lib");
    }
  }
  if (const char* const environment = std::getenv("VIRTUAL_ENV")) pythons.push_back(environment);
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  pythons.push_back((program.parent_path() / "..").string());
  if (const char* const home = std::getenv("HOME"))
    pythons.push_back(std::string(home) + "/.local");
  pythons.insert(pythons.end(), {"/usr/local", "/usr"});
  for (const std::string& python : pythons) {
    glob_t found{};
    const std::string pattern = python + "/lib/python3*/*-packages/nvidia/*/lib";
    if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
      folders.insert(folders.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    ::globfree(&found);
  }
  folders.insert(folders.end(), {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"});
  return folders;
}

/// Loads a library, and remembers what was missing.
class Library {
 public:
  explicit Library(const char* name) : name_(name) {
    library_ = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (library_ == nullptr) why_ = ::dlerror();
    for (const std::string& folder : folders()) {
      const std::string path = folder + "/" + name;
      if (library_ != nullptr || !std::filesystem::exists(path)) continue;
      library_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (library_ == nullptr) why_ = ::dlerror();
    }
    if (library_ != nullptr) why_.clear();
  }
  template <typename F>
  void find(const char* function, F*& call) {
    if (library_ == nullptr) return;
    find_if_there(function, call);
    if (call == nullptr) why_ = name_ + " has no " + function;
  }
  /// Finds a function that may be missing.
  template <typename F>
  void find_if_there(const char* function, F*& call) {
    if (library_ != nullptr) call = reinterpret_cast<F*>(::dlsym(library_, function));
  }
  /// Null when all was found.
  const char* missing() const { return why_.empty() ? nullptr : why_.c_str(); }

 private:
  std::string name_, why_;
  void* library_ = nullptr;
};

void find_driver(Library& library, CudaCalls& calls) {
  library.find("cuInit", calls.init);
  library.find("cuGetErrorString", calls.error_text);
  library.find("cuDriverGetVersion", calls.driver_version);
  library.find("cuDeviceGetCount", calls.device_count);
  library.find("cuDeviceGet", calls.device);
  library.find("cuDeviceGetName", calls.device_name);
  library.find("cuDeviceTotalMem_v2", calls.device_memory);
  library.find("cuDeviceGetAttribute", calls.device_attribute);
  library.find("cuDevicePrimaryCtxRetain", calls.retain_context);
  library.find("cuDevicePrimaryCtxRelease_v2", calls.release_context);
  library.find("cuCtxSetCurrent", calls.use_context);
  library.find("cuMemGetInfo_v2", calls.memory_left);
  library.find("cuMemAlloc_v2", calls.allocate);
  library.find("cuMemFree_v2", calls.free);
  library.find("cuMemHostRegister_v2", calls.pin);
  library.find("cuMemHostUnregister", calls.unpin);
  library.find("cuMemsetD8Async", calls.fill);
  library.find("cuMemcpyHtoDAsync_v2", calls.upload);
  library.find("cuMemcpyDtoHAsync_v2", calls.download);
  library.find("cuMemcpyDtoDAsync_v2", calls.copy);
  library.find("cuStreamCreate", calls.make_stream);
  library.find("cuStreamDestroy_v2", calls.destroy_stream);
  library.find("cuStreamSynchronize", calls.wait_for_stream);
  library.find("cuStreamWaitEvent", calls.stream_waits);
  library.find("cuEventCreate", calls.make_event);
  library.find("cuEventDestroy_v2", calls.destroy_event);
  library.find("cuEventRecord", calls.record_event);
  library.find("cuEventSynchronize", calls.wait_for_event);
  library.find_if_there("cuEventElapsedTime", calls.elapsed);
  library.find("cuModuleLoadData", calls.load_module);
  library.find("cuModuleUnload", calls.unload_module);
  library.find("cuModuleGetFunction", calls.find_function);
  library.find("cuLaunchKernel", calls.launch);
}

void find_compiler(Library& library, CudaCalls& calls) {
  library.find("nvrtcGetErrorString", calls.compiler_error_text);
  library.find("nvrtcVersion", calls.compiler_version);
  library.find("nvrtcCreateProgram", calls.make_program);
  library.find("nvrtcDestroyProgram", calls.destroy_program);
  library.find("nvrtcCompileProgram", calls.compile);
  library.find("nvrtcGetProgramLogSize", calls.log_bytes);
  library.find("nvrtcGetProgramLog", calls.log);
  library.find("nvrtcGetCUBINSize", calls.cubin_bytes);
  library.find("nvrtcGetCUBIN", calls.cubin);
}

void find_cublas(Library& library, CublasCalls& calls) {
  library.find("cublasLtGetStatusString", calls.error_text);
  library.find("cublasLtCreate", calls.create);
  library.find("cublasLtDestroy", calls.destroy);
  library.find("cublasLtMatmulDescCreate", calls.make_product);
  library.find("cublasLtMatmulDescDestroy", calls.destroy_product);
  library.find("cublasLtMatmulDescSetAttribute", calls.set_product);
  library.find("cublasLtMatrixLayoutCreate", calls.make_layout);
  library.find("cublasLtMatrixLayoutDestroy", calls.destroy_layout);
  library.find("cublasLtMatrixLayoutSetAttribute", calls.set_layout);
  library.find("cublasLtMatmulPreferenceCreate", calls.make_preference);
  library.find("cublasLtMatmulPreferenceDestroy", calls.destroy_preference);
  library.find("cublasLtMatmulPreferenceSetAttribute", calls.set_preference);
  library.find("cublasLtMatmulAlgoGetHeuristic", calls.find);
  library.find("cublasLtMatmul", calls.multiply);
}

void find_cudnn(Library& library, CudnnCalls& calls) {
  library.find("cudnnGetErrorString", calls.error_text);
  library.find("cudnnGetLastErrorString", calls.last_error);
  library.find("cudnnCreate", calls.create);
  library.find("cudnnDestroy", calls.destroy);
  library.find("cudnnSetStream", calls.use_stream);
  library.find("cudnnBackendCreateDescriptor", calls.make);
  library.find("cudnnBackendDestroyDescriptor", calls.unmake);
  library.find("cudnnBackendSetAttribute", calls.set);
  library.find("cudnnBackendGetAttribute", calls.get);
  library.find("cudnnBackendFinalize", calls.finish);
  library.find("cudnnBackendExecute", calls.execute);
}

#ifdef PACELINE_HAS_CUDA_HEADERS
// Two parameters are passed alike if both are pointers, or both are numbers of the same size.
template <typename A, typename B>
constexpr bool is_alike() {
  if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B> || std::is_void_v<A>) {
    return std::is_pointer_v<A> == std::is_pointer_v<B> && std::is_void_v<A> == std::is_void_v<B>;
  } else {
    return sizeof(A) == sizeof(B);
  }
}
template <typename Ours, typename Theirs>
struct SameCall : std::false_type {};
template <typename R, typename S, typename... A, typename... B>
requires(sizeof...(A) == sizeof...(B)) struct SameCall<R (*)(A...), S (*)(B...)>
    : std::bool_constant<is_alike<R, S>() && (is_alike<A, B>() && ...)> {
};
template <auto ours, auto theirs>
constexpr bool kDeclared = false;
template <typename Calls, typename F, F Calls::*ours, auto theirs>
constexpr bool kDeclared<ours, theirs> = SameCall<F, decltype(theirs)>::value;

static_assert(kDeclared<&CudaCalls::init, &cuInit>);
static_assert(kDeclared<&CudaCalls::error_text, &cuGetErrorString>);
static_assert(kDeclared<&CudaCalls::driver_version, &cuDriverGetVersion>);
static_assert(kDeclared<&CudaCalls::device_count, &cuDeviceGetCount>);
static_assert(kDeclared<&CudaCalls::device, &cuDeviceGet>);
static_assert(kDeclared<&CudaCalls::device_name, &cuDeviceGetName>);
static_assert(kDeclared<&CudaCalls::device_memory, &cuDeviceTotalMem>);
static_assert(kDeclared<&CudaCalls::device_attribute, &cuDeviceGetAttribute>);
static_assert(kDeclared<&CudaCalls::retain_context, &cuDevicePrimaryCtxRetain>);
static_assert(kDeclared<&CudaCalls::release_context, &cuDevicePrimaryCtxRelease>);
static_assert(kDeclared<&CudaCalls::use_context, &cuCtxSetCurrent>);
static_assert(kDeclared<&CudaCalls::memory_left, &cuMemGetInfo>);
static_assert(kDeclared<&CudaCalls::allocate, &cuMemAlloc>);
static_assert(kDeclared<&CudaCalls::free, &cuMemFree>);
static_assert(kDeclared<&CudaCalls::pin, &cuMemHostRegister>);
static_assert(kDeclared<&CudaCalls::unpin, &cuMemHostUnregister>);
static_assert(kDeclared<&CudaCalls::fill, &cuMemsetD8Async>);
static_assert(kDeclared<&CudaCalls::upload, &cuMemcpyHtoDAsync>);
static_assert(kDeclared<&CudaCalls::download, &cuMemcpyDtoHAsync>);
static_assert(kDeclared<&CudaCalls::copy, &cuMemcpyDtoDAsync>);
static_assert(kDeclared<&CudaCalls::make_stream, &cuStreamCreate>);
static_assert(kDeclared<&CudaCalls::destroy_stream, &cuStreamDestroy>);
static_assert(kDeclared<&CudaCalls::wait_for_stream, &cuStreamSynchronize>);
static_assert(kDeclared<&CudaCalls::stream_waits, &cuStreamWaitEvent>);
static_assert(kDeclared<&CudaCalls::make_event, &cuEventCreate>);
static_assert(kDeclared<&CudaCalls::destroy_event, &cuEventDestroy>);
static_assert(kDeclared<&CudaCalls::record_event, &cuEventRecord>);
static_assert(kDeclared<&CudaCalls::elapsed, &cuEventElapsedTime>);
static_assert(kDeclared<&CudaCalls::wait_for_event, &cuEventSynchronize>);
static_assert(kDeclared<&CudaCalls::load_module, &cuModuleLoadData>);
static_assert(kDeclared<&CudaCalls::unload_module, &cuModuleUnload>);
static_assert(kDeclared<&CudaCalls::find_function, &cuModuleGetFunction>);
static_assert(kDeclared<&CudaCalls::launch, &cuLaunchKernel>);
static_assert(kDeclared<&CudaCalls::compiler_error_text, &nvrtcGetErrorString>);
static_assert(kDeclared<&CudaCalls::compiler_version, &nvrtcVersion>);
static_assert(kDeclared<&CudaCalls::make_program, &nvrtcCreateProgram>);
static_assert(kDeclared<&CudaCalls::destroy_program, &nvrtcDestroyProgram>);
static_assert(kDeclared<&CudaCalls::compile, &nvrtcCompileProgram>);
static_assert(kDeclared<&CudaCalls::log_bytes, &nvrtcGetProgramLogSize>);
static_assert(kDeclared<&CudaCalls::log, &nvrtcGetProgramLog>);
static_assert(kDeclared<&CudaCalls::cubin_bytes, &nvrtcGetCUBINSize>);
static_assert(kDeclared<&CudaCalls::cubin, &nvrtcGetCUBIN>);
static_assert(CudaCalls::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(CudaCalls::kStubLibrary == CUDA_ERROR_STUB_LIBRARY);
static_assert(CudaCalls::kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(CudaCalls::kMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(CudaCalls::kMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(CudaCalls::kMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(CudaCalls::kForAllDevices == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(CudaCalls::kNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(CudaCalls::kNoTiming == CU_EVENT_DISABLE_TIMING);
#if __has_include(<cublasLt.h>)
static_assert(kDeclared<&CublasCalls::error_text, &cublasLtGetStatusString>);
static_assert(kDeclared<&CublasCalls::create, &cublasLtCreate>);
static_assert(kDeclared<&CublasCalls::destroy, &cublasLtDestroy>);
static_assert(kDeclared<&CublasCalls::make_product, &cublasLtMatmulDescCreate>);
static_assert(kDeclared<&CublasCalls::destroy_product, &cublasLtMatmulDescDestroy>);
static_assert(kDeclared<&CublasCalls::set_product, &cublasLtMatmulDescSetAttribute>);
static_assert(kDeclared<&CublasCalls::make_layout, &cublasLtMatrixLayoutCreate>);
static_assert(kDeclared<&CublasCalls::destroy_layout, &cublasLtMatrixLayoutDestroy>);
static_assert(kDeclared<&CublasCalls::set_layout, &cublasLtMatrixLayoutSetAttribute>);
static_assert(kDeclared<&CublasCalls::make_preference, &cublasLtMatmulPreferenceCreate>);
static_assert(kDeclared<&CublasCalls::destroy_preference, &cublasLtMatmulPreferenceDestroy>);
static_assert(kDeclared<&CublasCalls::set_preference, &cublasLtMatmulPreferenceSetAttribute>);
static_assert(kDeclared<&CublasCalls::find, &cublasLtMatmulAlgoGetHeuristic>);
static_assert(kDeclared<&CublasCalls::multiply, &cublasLtMatmul>);
static_assert(sizeof(CublasCalls::Found) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(CublasCalls::kFloat == CUDA_R_32F);
static_assert(CublasCalls::kBfloat16 == CUDA_R_16BF);
static_assert(CublasCalls::kCompute == CUBLAS_COMPUTE_32F);
static_assert(CublasCalls::kTf32Compute == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(CublasCalls::kTransposeA == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(CublasCalls::kTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(CublasCalls::kEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(CublasCalls::kBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(CublasCalls::kBias == CUBLASLT_EPILOGUE_BIAS);
static_assert(CublasCalls::kReluBias == CUBLASLT_EPILOGUE_RELU_BIAS);
static_assert(CublasCalls::kBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(CublasCalls::kBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(CublasCalls::kMostWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(CublasCalls::kAlignmentOfA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(CublasCalls::kAlignmentOfA + 3 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
#endif
#if __has_include(<cudnn.h>)
static_assert(kDeclared<&CudnnCalls::error_text, &cudnnGetErrorString>);
static_assert(kDeclared<&CudnnCalls::last_error, &cudnnGetLastErrorString>);
static_assert(kDeclared<&CudnnCalls::create, &cudnnCreate>);
static_assert(kDeclared<&CudnnCalls::destroy, &cudnnDestroy>);
static_assert(kDeclared<&CudnnCalls::use_stream, &cudnnSetStream>);
static_assert(kDeclared<&CudnnCalls::make, &cudnnBackendCreateDescriptor>);
static_assert(kDeclared<&CudnnCalls::unmake, &cudnnBackendDestroyDescriptor>);
static_assert(kDeclared<&CudnnCalls::set, &cudnnBackendSetAttribute>);
static_assert(kDeclared<&CudnnCalls::get, &cudnnBackendGetAttribute>);
static_assert(kDeclared<&CudnnCalls::finish, &cudnnBackendFinalize>);
static_assert(kDeclared<&CudnnCalls::execute, &cudnnBackendExecute>);
static_assert(int(CudnnCalls::kConvolution) == int(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
static_assert(int(CudnnCalls::kEngine) == int(CUDNN_BACKEND_ENGINE_DESCRIPTOR));
static_assert(int(CudnnCalls::kEngineConfig) == int(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
static_assert(int(CudnnCalls::kHeuristics) == int(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
static_assert(int(CudnnCalls::kPlan) == int(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
static_assert(int(CudnnCalls::kForward) ==
              int(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR));
static_assert(int(CudnnCalls::kBackwardFilter) ==
              int(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR));
static_assert(int(CudnnCalls::kBackwardData) ==
              int(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR));
static_assert(int(CudnnCalls::kGraph) == int(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
static_assert(int(CudnnCalls::kPack) == int(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
static_assert(int(CudnnCalls::kTensor) == int(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
static_assert(int(CudnnCalls::kDevice) == int(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR));
static_assert(int(CudnnCalls::kDataType) == int(CUDNN_TYPE_DATA_TYPE));
static_assert(int(CudnnCalls::kInt64) == int(CUDNN_TYPE_INT64));
static_assert(int(CudnnCalls::kDouble) == int(CUDNN_TYPE_DOUBLE));
static_assert(int(CudnnCalls::kPointer) == int(CUDNN_TYPE_VOID_PTR));
static_assert(int(CudnnCalls::kConvolutionMode) == int(CUDNN_TYPE_CONVOLUTION_MODE));
static_assert(int(CudnnCalls::kHeuristicsMode) == int(CUDNN_TYPE_HEUR_MODE));
static_assert(int(CudnnCalls::kNumericalNote) == int(CUDNN_TYPE_NUMERICAL_NOTE));
static_assert(int(CudnnCalls::kDescriptor) == int(CUDNN_TYPE_BACKEND_DESCRIPTOR));
static_assert(int(CudnnCalls::kHandle) == int(CUDNN_TYPE_HANDLE));
static_assert(int(CudnnCalls::kChar) == int(CUDNN_TYPE_CHAR));
static_assert(int(CudnnCalls::kComputeType) == int(CUDNN_ATTR_CONVOLUTION_COMP_TYPE));
static_assert(int(CudnnCalls::kMode) == int(CUDNN_ATTR_CONVOLUTION_CONV_MODE));
static_assert(int(CudnnCalls::kDilations) == int(CUDNN_ATTR_CONVOLUTION_DILATIONS));
static_assert(int(CudnnCalls::kStrides) == int(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES));
static_assert(int(CudnnCalls::kPadsBehind) == int(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS));
static_assert(int(CudnnCalls::kPadsBefore) == int(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS));
static_assert(int(CudnnCalls::kSpatialDimensions) == int(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
static_assert(int(CudnnCalls::kHeuristicsModeOf) == int(CUDNN_ATTR_ENGINEHEUR_MODE));
static_assert(int(CudnnCalls::kHeuristicsGraph) == int(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
static_assert(int(CudnnCalls::kResults) == int(CUDNN_ATTR_ENGINEHEUR_RESULTS));
static_assert(int(CudnnCalls::kHeuristicsDevice) == int(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP));
static_assert(int(CudnnCalls::kConfigEngine) == int(CUDNN_ATTR_ENGINECFG_ENGINE));
static_assert(int(CudnnCalls::kPlanConfig) == int(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
static_assert(int(CudnnCalls::kPlanWorkspace) == int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
static_assert(int(CudnnCalls::kPlanDevice) == int(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP));
static_assert(int(CudnnCalls::kForwardAlpha) ==
              int(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA));
static_assert(int(CudnnCalls::kForwardY) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
static_assert(int(CudnnCalls::kDataAlpha) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA));
static_assert(int(CudnnCalls::kDataDy) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY));
static_assert(int(CudnnCalls::kFilterAlpha) ==
              int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA));
static_assert(int(CudnnCalls::kFilterDy) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY));
static_assert(int(CudnnCalls::kGraphHandle) == 800);  // deprecated names of CUDNN_ATTR_…_HANDLE
static_assert(int(CudnnCalls::kPlanHandle) == 400);
static_assert(int(CudnnCalls::kOps) == int(CUDNN_ATTR_OPERATIONGRAPH_OPS));
static_assert(int(CudnnCalls::kTensorAlignment) == int(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT));
static_assert(int(CudnnCalls::kTensorType) == int(CUDNN_ATTR_TENSOR_DATA_TYPE));
static_assert(int(CudnnCalls::kTensorDimensions) == int(CUDNN_ATTR_TENSOR_DIMENSIONS));
static_assert(int(CudnnCalls::kTensorStrides) == int(CUDNN_ATTR_TENSOR_STRIDES));
static_assert(int(CudnnCalls::kTensorId) == int(CUDNN_ATTR_TENSOR_UNIQUE_ID));
static_assert(int(CudnnCalls::kPackIds) == int(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS));
static_assert(int(CudnnCalls::kPackPointers) == int(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS));
static_assert(int(CudnnCalls::kPackWorkspace) == int(CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
static_assert(int(CudnnCalls::kNotesOfEngine) == int(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE));
static_assert(int(CudnnCalls::kDeviceJson) == int(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION));
static_assert(int(CudnnCalls::kFloat) == int(CUDNN_DATA_FLOAT));
static_assert(int(CudnnCalls::kCrossCorrelation) == int(CUDNN_CROSS_CORRELATION));
static_assert(int(CudnnCalls::kFallback) == int(CUDNN_HEUR_MODE_FALLBACK));
static_assert(int(CudnnCalls::kModeA) == int(CUDNN_HEUR_MODE_A));
static_assert(int(CudnnCalls::kTensorCore) == int(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
static_assert(int(CudnnCalls::kDownConverts) == int(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
static_assert(int(CudnnCalls::kNondeterministic) == int(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
static_assert(int(CudnnCalls::kReducedReduction) ==
              int(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION));
#endif
#endif

}  // namespace
}  // namespace paceline

/// Returns the libraries that were found. The search runs once in a process.
extern "C" __attribute__((visibility("default"))) const paceline::CudaPlugin*
paceline_cuda_plugin() {
  static const paceline::CudaPlugin plugin = [] {
    static paceline::Library driver("libcuda.so.1"), compiler("libnvrtc.so.13"),
        cublas("libcublasLt.so.13"), cudnn("libcudnn.so.9");
    paceline::CudaPlugin found;
    find_driver(driver, found.calls);
    find_compiler(compiler, found.calls);
    found.no_driver = driver.missing();
    found.no_compiler = compiler.missing();
    find_cublas(cublas, found.calls.cublas);
    find_cudnn(cudnn, found.calls.cudnn);
    found.no_cublas = cublas.missing();
    found.no_cudnn = cudnn.missing();
    if (found.no_cublas != nullptr) found.calls.cublas = {};
    if (found.no_cudnn != nullptr) found.calls.cudnn = {};
    return found;
  }();
  return &plugin;
}
