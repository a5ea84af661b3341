// One product that a single call of oneDNN computes, in memory of its own. It shows what a core can
// do, so that kernels can be compared with it; no kernel uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "paceline/tensor.h"

namespace paceline {

/// Computes C (n,n) float32 = A (n,n) · B (n,n), both of `dtype` (float32 or bfloat16), filled with
/// ones.
class PlainProduct {
 public:
  /// Throws kUnavailable if oneDNN has no such product on this machine.
  PlainProduct(DType dtype, std::int64_t n);
  ~PlainProduct();
  PlainProduct(PlainProduct&&) noexcept;

  /// Runs on the calling thread. Any thread may call it, one at a time.
  void run();
  double flops() const;
  std::span<const float> result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
