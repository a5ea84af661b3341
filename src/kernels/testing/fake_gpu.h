// For tests: the fake driver and the fake compiler of tests/fakes in the place of NVIDIA's.
#pragma once

#include <dlfcn.h>

#include <filesystem>

namespace paceline {

/// From now on whoever loads CUDA's driver or NVRTC in this process gets the fakes. False, and then
/// the test is to be skipped, where this build has none.
inline bool load_fake_gpu() {
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fakes";
  const auto load = [&](const char* name) {
    return ::dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
  };
  return load("libcuda.so.1") && load("libnvrtc.so.13");
}

}  // namespace paceline
