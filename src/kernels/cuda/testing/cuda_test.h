// Tests of GPUs share this fixture, which loads the fake driver and libraries of tests/fakes.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "base/real_clock.h"
#include "base/temporary_folder.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_library.h"
#include "kernels/testing/op_cases.h"

namespace paceline {

/// From now on, code in this process that loads NVIDIA's libraries gets the fakes. Returns false
/// where this build has none.
inline bool load_fake_gpu() {
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fakes";
  const auto load = [&](const char* name) {
    return ::dlopen((folder / name).c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr;
  };
  return load("libcuda.so.1") && load("libnvrtc.so.13") && load("libcublasLt.so.13") &&
         load("libcudnn.so.9");
}

/// Sets a variable of the environment while the object lives.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~EnvironmentVariable() { ::unsetenv(name_); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const char* name_;
};

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    // scripts/gpu_checks sets this variable to ask for a real GPU.
    if (std::getenv("PACELINE_TEST_GPU") == nullptr && !load_fake_gpu()) {
      GTEST_SKIP() << "this build has no fake driver (build/fakes)";
    }
    std::string why;
    const CudaPlugin* const plugin = cuda_plugin(why);
    if (plugin == nullptr) GTEST_SKIP() << why;
    if (plugin->no_driver != nullptr) GTEST_SKIP() << plugin->no_driver;
    calls_ = plugin->calls;
  }

  std::unique_ptr<Device> naive() { return make_device({.kind = "naive"}, clock_); }
  std::unique_ptr<CudaDevice> device(int index = 0) {
    EXPECT_EQ(calls_.init(0), 0);
    return std::make_unique<CudaDevice>(calls_, index, naive());
  }
  static Tensor numbers(const Shape& shape, std::uint64_t key = 1) {
    return fill(floats(shape), false, key);
  }

  const TemporaryFolder cache_;
  const EnvironmentVariable home_{"XDG_CACHE_HOME", cache_.path()};
  RealClock clock_;
  CudaCalls calls_{};
};

}  // namespace paceline
