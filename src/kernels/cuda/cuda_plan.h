// A product or a convolution that a library of NVIDIA's computes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "kernels/cuda/cuda_calls.h"
#include "kernels/cuda/cuda_work.h"

namespace paceline {

/// How a library computes something of fixed sizes. The operands lie at multiples of the alignment
/// for which it was planned.
class CudaPlan {
 public:
  virtual ~CudaPlan() = default;
  /// Memory that it writes while it runs.
  virtual std::size_t workspace_bytes() const = 0;
  /// Asks the stream for to = first · second (convolved, as the plan says). Throws kUnavailable
  /// with the library's words.
  virtual void run(CudaCalls::Address to, CudaCalls::Address first, CudaCalls::Address second,
                   CudaCalls::Address workspace, CudaCalls::Stream* stream) = 0;
};

/// The means that a plan may use.
struct CudaPlanLimits {
  std::size_t alignment = 16;  // bytes that divide the addresses of all operands
  std::size_t workspace_bytes = std::size_t{256} << 20;
  bool tf32 = false;           // float32 may be multiplied in TF32
  bool deterministic = false;  // only what gives the same bits again
};

}  // namespace paceline
