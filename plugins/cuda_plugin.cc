// libpaceline_cuda.so: the calls of kernels/cuda/cuda_calls.h, found in the libraries of NVIDIA
// that this machine has: where the system looks for libraries, in $CUDA_HOME, and in the folders of
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

namespace paceline {
namespace {

// Wheels lie in the folder of packages of a Python: that of a virtual environment, or of the Python
// whose folder of programs this one lies in, the user's or the system's.
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

/// A library, and what was missing.
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
    call = reinterpret_cast<F*>(::dlsym(library_, function));
    if (call == nullptr) why_ = name_ + " has no " + function;
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

#ifdef PACELINE_HAS_CUDA_HEADERS
// Parameters travel alike when they are pointers, or numbers of the same size.
template <typename A, typename B>
constexpr bool kAlike = (std::is_pointer_v<A> && std::is_pointer_v<B>) ||
                        (!std::is_pointer_v<A> && !std::is_pointer_v<B> && sizeof(A) == sizeof(B));
template <typename Ours, typename Theirs>
struct SameCall : std::false_type {};
template <typename R, typename S, typename... A, typename... B>
requires(sizeof...(A) == sizeof...(B)) struct SameCall<R (*)(A...), S (*)(B...)>
    : std::bool_constant<kAlike<R, S> && (kAlike<A, B> && ...)> {
};
template <auto ours, auto theirs>
constexpr bool kDeclared = false;
template <typename F, F CudaCalls::*ours, auto theirs>
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
static_assert(CudaCalls::kNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(CudaCalls::kNoTiming == CU_EVENT_DISABLE_TIMING);
#endif

}  // namespace
}  // namespace paceline

/// What was found, once for the life of the process.
extern "C" __attribute__((visibility("default"))) const paceline::CudaPlugin*
paceline_cuda_plugin() {
  static const paceline::CudaPlugin plugin = [] {
    static paceline::Library driver("libcuda.so.1"), compiler("libnvrtc.so.13");
    paceline::CudaPlugin found;
    find_driver(driver, found.calls);
    find_compiler(compiler, found.calls);
    found.no_driver = driver.missing();
    found.no_compiler = compiler.missing();
    return found;
  }();
  return &plugin;
}
