// One product as oneDNN makes it by itself, in memory of its own: what a core can do, for the
// kernels to be held against. No kernel uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "paceline/tensor.h"

namespace paceline {

/// C (n,n) float32 = A (n,n) · B (n,n), both of `dtype` (float32 or bfloat16), filled with ones.
class PlainProduct {
 public:
  /// Throws kUnavailable when oneDNN has no such product on this machine.
  PlainProduct(DType dtype, std::int64_t n);
  ~PlainProduct();
  PlainProduct(PlainProduct&&) noexcept;

  /// On the calling thread. Any thread, one at a time.
  void run();
  double flops() const;
  std::span<const float> result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
