// Convolutions by NVIDIA's library cuDNN.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/cuda_plan.h"

namespace paceline {

/// The library on one device. One thread at a time may call it.
class Cudnn {
 public:
  /// Uses the device whose context is the thread's. Throws kUnavailable with the library's message.
  /// `calls` must outlive this object.
  explicit Cudnn(const CudnnCalls& calls);
  /// Makes plans only, for a device of this description, which scripts/gpu_checks records: this
  /// needs no GPU.
  Cudnn(const CudnnCalls& calls, const std::string& description);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  /// Returns null if the library cannot compute the convolution within the limits. It computes in
  /// float32, or also in TF32 if the limits allow this or the operands are exact in TF32. The plan
  /// must not outlive this object.
  std::unique_ptr<CudaPlan> plan(const CudaConvolution& convolution,
                                 const CudaPlanLimits& limits) const;

 private:
  class Descriptor;
  class ConvolutionPlan;

  const CudnnCalls& calls_;
  CudnnCalls::Handle* handle_ = nullptr;
  std::unique_ptr<Descriptor> device_;  // made from a description; null if there is a handle
};

}  // namespace paceline
