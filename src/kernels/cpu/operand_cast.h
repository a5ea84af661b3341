// Operands of matrix products that are rounded to bfloat16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm.h"

namespace paceline {

/// The shape with operands in bfloat16 where their products are faster, else as it is.
GemmShape lowered(GemmShape shape);

/// y[i] = x[i] for i in [0, n), on the threads of the pool.
void widen_in_tiles(ThreadPool& pool, const BFloat16* x, float* y, std::int64_t n);

/// float32 memory as the products of a kernel want it: as it is, or rounded to bfloat16 (in
/// float32, where products of bfloat16 are no faster).
class OperandCast {
 public:
  OperandCast(bool rounds, ThreadPool& pool) : rounds_(rounds), pool_(&pool) {}

  /// Returns the shape of the products whose operands are cast.
  GemmShape shape(const GemmShape& of) const { return rounds_ ? lowered(of) : of; }
  /// Returns the bytes that n elements take beside themselves, 64-byte aligned.
  std::size_t bytes(std::int64_t n) const;
  /// x, or n elements rounded into `space`, of at least bytes(n).
  const void* cast(const float* x, std::int64_t n, std::span<std::byte> space) const;
  /// Returns the bytes that n elements take where `put` puts them, 64-byte aligned.
  std::size_t joined_bytes(std::int64_t n) const;
  /// Copies n elements, rounded or as they are, to element `at` of an operand; on this thread.
  void put(const float* x, std::int64_t n, std::byte* operand, std::int64_t at) const;
  /// Element i of what cast returned.
  const void* element(const void* operand, std::int64_t i) const;

 private:
  std::int64_t element_bytes() const;

  bool rounds_;
  ThreadPool* pool_;
};

}  // namespace paceline
