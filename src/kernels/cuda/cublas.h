// Products of matrices by NVIDIA's library cuBLASLt.
#pragma once

#include "kernels/cuda/cuda_plan.h"

namespace paceline {

/// The library, on the device whose context the thread has at construction. One thread at a time
/// may call it.
class Cublas {
 public:
  /// Throws kUnavailable if the library does not start. `calls` must outlive this object.
  explicit Cublas(const CublasCalls& calls);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  /// Returns null if the library cannot compute the product, with the epilogue, within the limits.
  /// The plan must not outlive this object.
  std::unique_ptr<CudaPlan> plan(const CudaProduct& product, CudaEpilogue epilogue,
                                 const CudaPlanLimits& limits) const;

 private:
  const CublasCalls& calls_;
  CublasCalls::Handle* handle_ = nullptr;
};

}  // namespace paceline
