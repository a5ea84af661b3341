// Products of matrices by NVIDIA's library cuBLASLt.
#pragma once

#include "kernels/cuda/cuda_plan.h"

namespace paceline {

/// The library, on the device whose context is the thread's when this is made. One thread at a time
/// calls.
class Cublas {
 public:
  /// Throws kUnavailable when the library does not start. `calls` must outlive this.
  explicit Cublas(const CublasCalls& calls);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  /// Null when the library has no way to compute the product within the limits. Must not outlive
  /// this.
  std::unique_ptr<CudaPlan> plan(const CudaProduct& product, const CudaPlanLimits& limits) const;

 private:
  const CublasCalls& calls_;
  CublasCalls::Handle* handle_ = nullptr;
};

}  // namespace paceline
