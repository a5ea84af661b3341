// A product or a convolution that an NVIDIA library computes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "kernels/cuda/cuda_calls.h"
#include "kernels/cuda/cuda_work.h"

namespace paceline {

/// Addresses in the device's memory.
struct CudaOperands {
  CudaCalls::Address to, first, second, workspace;
  CudaCalls::Address bias = 0;  // for a plan with an epilogue
};

/// A library's plan for one product or convolution of fixed sizes. The operands' addresses must be
/// multiples of the planned alignment.
class CudaPlan {
 public:
  virtual ~CudaPlan() = default;
  /// Returns the bytes of memory that the plan writes while it runs.
  virtual std::size_t workspace_bytes() const = 0;
  /// Queues to = first · second (or the convolution of the plan) on the stream. Throws kUnavailable
  /// with the library's message.
  virtual void run(const CudaOperands& operands, CudaCalls::Stream* stream) = 0;
};

/// The limits of a plan.
struct CudaPlanLimits {
  std::size_t alignment = 16;  // divides the addresses of all operands, in bytes
  std::size_t workspace_bytes = std::size_t{256} << 20;
  bool tf32 = false;           // may multiply float32 in TF32
  bool deterministic = false;  // only deterministic kernels
};

}  // namespace paceline
