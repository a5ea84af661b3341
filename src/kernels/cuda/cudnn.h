// Convolutions by NVIDIA's library cuDNN.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/cuda_plan.h"

namespace paceline {

/// The library, on one device. One thread at a time calls.
class Cudnn {
 public:
  /// The device of this index, whose context is the thread's. Throws kUnavailable, with the
  /// library's words. `calls` must outlive this.
  Cudnn(const CudnnCalls& calls, int index);
  /// Only plans, for a device of this description, which scripts/gpu_checks writes down: that needs
  /// no GPU.
  Cudnn(const CudnnCalls& calls, const std::string& description);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  /// Null when the library has no way to compute the convolution in float32 within the limits. Must
  /// not outlive this.
  std::unique_ptr<CudaPlan> plan(const CudaConvolution& convolution,
                                 const CudaPlanLimits& limits) const;

 private:
  class Descriptor;
  class ConvolutionPlan;

  const CudnnCalls& calls_;
  CudnnCalls::Handle* handle_ = nullptr;
  std::unique_ptr<Descriptor> device_;
};

}  // namespace paceline
