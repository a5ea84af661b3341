#include "kernels/cuda/cuda_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "base/plugin.h"
#include "paceline/error.h"

namespace paceline {
namespace {

const char* const kCudaPlugin = "libpaceline_cuda.so";
constexpr int kLeastVersion = 13000;
constexpr const char* kLeastDriver = "580";  // the first driver that supports CUDA 13

std::string version_in_words(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string why_no_device(const CudaCalls& calls, CudaCalls::Status status) {
  const std::string visible = cuda_visible_in_words();
  if (status == CudaCalls::kNoDevice && !visible.empty()) {
    return fmt::format(
        "the driver shows no GPU under {}: unset it, or name one that nvidia-smi -L lists",
        visible);
  }
  if (status == CudaCalls::kNoDevice) {
    return "the driver finds no GPU: nvidia-smi says what it sees; a container needs --gpus all";
  }
  if (status == CudaCalls::kStubLibrary) {
    return "libcuda.so.1 is the stub of a CUDA toolkit, not a driver: take its folder out of "
           "LD_LIBRARY_PATH";
  }
  return fmt::format("the driver does not start ({}): nvidia-smi says what is wrong with it",
                     cuda_error_text(calls, status));
}

// Returns an empty string if everything was found.
std::string why_not_usable(const CudaPlugin& plugin) {
  if (plugin.no_driver != nullptr) {
    return fmt::format(
        "NVIDIA's driver was not found ({}): install version {} or newer, or choose --device cpu",
        plugin.no_driver, kLeastDriver);
  }
  const CudaCalls& calls = plugin.calls;
  int version = 0, count = 0;
  calls.driver_version(&version);
  if (version < kLeastVersion && version > 0) {
    return fmt::format("the driver knows CUDA {}, and {} is needed: install driver {} or newer",
                       version_in_words(version), version_in_words(kLeastVersion), kLeastDriver);
  }
  CudaCalls::Status status = calls.init(0);
  if (status == 0) status = calls.device_count(&count);
  if (status == 0 && count == 0) status = CudaCalls::kNoDevice;
  if (status != 0) return why_no_device(calls, status);
  if (plugin.no_compiler != nullptr) {
    return fmt::format(
        "NVIDIA's compiler NVRTC was not found ({}): pip install nvidia-cuda-nvrtc, or set "
        "CUDA_HOME to a CUDA toolkit of version 13",
        plugin.no_compiler);
  }
  return "";
}

// Returns null, and the reason in `why`, if no GPU can be used.
const CudaCalls* find_cuda(std::string& why) {
  const CudaPlugin* const plugin = cuda_plugin(why);
  if (plugin == nullptr) return nullptr;
  why = why_not_usable(*plugin);
  return why.empty() ? &plugin->calls : nullptr;
}

}  // namespace

const CudaPlugin* cuda_plugin(std::string& why) {
  std::string not_loaded;
  const auto function = reinterpret_cast<CudaPluginFunction>(
      plugin_function(kCudaPlugin, kCudaPluginFunction, RTLD_NOW, not_loaded));
  if (function != nullptr) return function();
  why = fmt::format(
      "the plug-in {} was not found ({}): build Paceline with PACELINE_CUDA=AUTO, or set "
      "PACELINE_PLUGINS to the folder that has it",
      kCudaPlugin, not_loaded);
  return nullptr;
}

const CudaCalls& cuda_calls() {
  std::string why;
  if (const CudaCalls* const calls = find_cuda(why)) return *calls;
  throw Error(ErrorCode::kFailedPrecondition, "--device cuda: " + why);
}

std::string cuda_error_text(const CudaCalls& calls, CudaCalls::Status status) {
  const char* text = nullptr;
  calls.error_text(status, &text);
  return text == nullptr ? fmt::format("error {}", status) : text;
}

std::string cuda_visible_in_words() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? "" : fmt::format("CUDA_VISIBLE_DEVICES={}", visible);
}

std::string cuda_architecture(const CudaCalls& calls, int device) {
  int major = 0, minor = 0;
  calls.device_attribute(&major, CudaCalls::kMajor, device);
  calls.device_attribute(&minor, CudaCalls::kMinor, device);
  return fmt::format("sm_{}{}", major, minor);
}

std::string cuda_devices_in_words() {
  std::string why;
  const CudaCalls* const calls = find_cuda(why);
  if (calls == nullptr) return why;
  int count = 0;
  calls->device_count(&count);
  std::string text;
  for (int index = 0; index < count; ++index) {
    char name[256] = "";
    std::size_t bytes = 0;
    int device = 0;
    calls->device(&device, index);
    calls->device_name(name, sizeof(name), device);
    calls->device_memory(&bytes, device);
    text += fmt::format("{}cuda:{} {}, {} MiB, {}", index > 0 ? "\n" : "", index, name, bytes >> 20,
                        cuda_architecture(*calls, device));
  }
  return text;
}

}  // namespace paceline
