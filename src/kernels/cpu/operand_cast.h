// Operands of matrix products that are rounded to bfloat16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm.h"

namespace paceline {

/// Returns the shape with bfloat16 operands if their products are faster, else the shape itself.
GemmShape lowered(GemmShape shape);

/// Converts n elements of x to float32 in y, on the pool's threads.
void widen_in_tiles(ThreadPool& pool, const BFloat16* x, float* y, std::int64_t n);

/// Prepares the float32 operands of a kernel's products: leaves them as they are, or rounds them to
/// bfloat16. Rounded operands are stored as float32 if bfloat16 products are no faster.
class OperandCast {
 public:
  OperandCast(bool rounds, ThreadPool& pool) : rounds_(rounds), pool_(&pool) {}

  /// Returns the shape of the products whose operands are cast.
  GemmShape shape(const GemmShape& of) const { return rounds_ ? lowered(of) : of; }
  /// Returns the bytes that `cast` takes for n elements, 64-byte aligned; 0 without rounding.
  std::size_t bytes(std::int64_t n) const;
  /// Returns x, or n elements rounded into `space`, which has at least bytes(n).
  const void* cast(const float* x, std::int64_t n, std::span<std::byte> space) const;
  /// Returns the bytes that `put` takes for n elements, 64-byte aligned.
  std::size_t joined_bytes(std::int64_t n) const;
  /// Copies n elements, rounded or unchanged, to element `at` of an operand; works on this thread.
  void put(const float* x, std::int64_t n, std::byte* operand, std::int64_t at) const;
  /// Returns element i of the result of cast.
  const void* element(const void* operand, std::int64_t i) const;

 private:
  std::int64_t element_bytes() const;

  bool rounds_;
  ThreadPool* pool_;
};

}  // namespace paceline
