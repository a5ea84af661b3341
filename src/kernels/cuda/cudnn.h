// Convolutions by NVIDIA's library cuDNN.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/cuda_plan.h"

namespace paceline {

/// The library, on one device. One thread at a time calls.
class Cudnn {
 public:
  /// The device whose context is the thread's. Throws kUnavailable, with the library's words.
  /// `calls` must outlive this.
  explicit Cudnn(const CudnnCalls& calls);
  /// Only plans, for a device of this description, which scripts/gpu_checks writes down: that needs
  /// no GPU.
  Cudnn(const CudnnCalls& calls, const std::string& description);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  /// Null when the library has no way to compute the convolution within the limits and in float32,
  /// or in TF32 if it is exact. Must not outlive this.
  std::unique_ptr<CudaPlan> plan(const CudaConvolution& convolution,
                                 const CudaPlanLimits& limits) const;

 private:
  class Descriptor;
  class ConvolutionPlan;

  const CudnnCalls& calls_;
  CudnnCalls::Handle* handle_ = nullptr;
  std::unique_ptr<Descriptor> device_;  // what a description makes; null where there is a handle
};

}  // namespace paceline
