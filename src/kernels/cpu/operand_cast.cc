#include "kernels/cpu/operand_cast.h"

#include <algorithm>
#include <array>

#include "base/buffer.h"
#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/vector_cast.h"

namespace paceline {

namespace {

constexpr std::int64_t kOperandGrain = 32 * 1024;

// Rounds through a block that stays in the first-level cache.
void round_to_bfloat16(const float* x, float* y, std::int64_t n) {
  constexpr std::int64_t kBlock = 1024;
  std::array<BFloat16, kBlock> block;
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = std::min(kBlock, n - i);
    vector_cast(x + i, block.data(), count);
    vector_cast(block.data(), y + i, count);
  }
}

}  // namespace

GemmShape lowered(GemmShape shape) {
  shape.operands = product_dtype(DType::kBFloat16);
  return shape;
}

void widen_in_tiles(ThreadPool& pool, const BFloat16* x, float* y, std::int64_t n) {
  pool.parallel_for(n, kOperandGrain, [&](std::int64_t begin, std::int64_t end) {
    vector_cast(x + begin, y + begin, end - begin);
  });
}

std::int64_t OperandCast::element_bytes() const {
  return std::int64_t(size_of(rounds_ ? product_dtype(DType::kBFloat16) : DType::kFloat32));
}

std::size_t OperandCast::joined_bytes(std::int64_t n) const {
  return round_up(std::size_t(n * element_bytes()), kBufferAlignment);
}

std::size_t OperandCast::bytes(std::int64_t n) const { return rounds_ ? joined_bytes(n) : 0; }

void OperandCast::put(const float* x, std::int64_t n, std::byte* operand, std::int64_t at) const {
  std::byte* const to = operand + at * element_bytes();
  if (!rounds_) {
    std::copy_n(x, n, reinterpret_cast<float*>(to));
  } else if (product_dtype(DType::kBFloat16) == DType::kBFloat16) {
    vector_cast(x, reinterpret_cast<BFloat16*>(to), n);
  } else {
    round_to_bfloat16(x, reinterpret_cast<float*>(to), n);
  }
}

const void* OperandCast::cast(const float* x, std::int64_t n, std::span<std::byte> space) const {
  if (!rounds_) return x;
  pool_->parallel_for(n, kOperandGrain, [&](std::int64_t begin, std::int64_t end) {
    put(x + begin, end - begin, space.data(), begin);
  });
  return space.data();
}

const void* OperandCast::element(const void* operand, std::int64_t i) const {
  return static_cast<const std::byte*>(operand) + i * element_bytes();
}

}  // namespace paceline
