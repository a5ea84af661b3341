#include "params/wire/rounded_floats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/cpu/vector_cast.h"
#include "params/wire/largest_numbers.h"

namespace paceline {
namespace {

constexpr float kLargestInt8 = 127;

using Block = std::array<float, kScaledBlock>;

// Adds the errors to the floats, block by block, and calls f(numbers, errors, count, first) for
// each block. f may write over the floats of the block, and sets the block's new errors.
template <typename F>
void for_blocks(std::span<const std::byte> floats, float* errors, F&& f) {
  const std::size_t all = floats.size() / sizeof(float);
  for (std::size_t first = 0; first < all; first += kScaledBlock) {
    const std::size_t n = std::min(kScaledBlock, all - first);
    Block block;
    std::memcpy(block.data(), floats.data() + first * sizeof(float), n * sizeof(float));
    float* const of_block = errors == nullptr ? nullptr : errors + first;
    for (std::size_t i = 0; of_block != nullptr && i < n; ++i) block[i] += of_block[i];
    f(block, of_block, n, first);
  }
}

void keep_errors(const Block& wanted, const Block& made, float* errors, std::size_t n) {
  for (std::size_t i = 0; errors != nullptr && i < n; ++i) {
    const float error = wanted[i] - made[i];
    errors[i] = std::isfinite(error) ? error : 0;
  }
}

void round_to_float16(std::span<std::byte> floats, float* errors) {
  auto* const to = reinterpret_cast<Float16*>(floats.data());
  for_blocks(floats, errors, [&](const Block& wanted, float* kept, std::size_t n, std::size_t at) {
    Block nearest = wanted;
    for (std::size_t i = 0; i < n; ++i) {
      if (std::isfinite(nearest[i])) {
        nearest[i] = std::clamp(nearest[i], -kLargestFloat16, kLargestFloat16);
      }
    }
    vector_cast(nearest.data(), to + at, std::int64_t(n));
    if (kept == nullptr) return;
    vector_cast(to + at, nearest.data(), std::int64_t(n));
    keep_errors(wanted, nearest, kept, n);
  });
}

// Returns the scale of a block, a bfloat16 that is rounded up, so that the block's largest number
// divided by the scale is at most 127. If a number is not finite, the scale is NaN, which makes the
// whole block NaN at the receiver, so that a diverging training is seen.
float scale_of(const Block& block, std::size_t n) {
  float largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(block[i])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::abs(block[i]));
  }
  const auto bits = std::bit_cast<std::uint32_t>(largest / kLargestInt8);
  return std::bit_cast<float>((bits + 0xffff) & 0xffff0000);
}

std::int8_t scaled(float value, float scale) {
  if (!(scale > 0)) return 0;
  return std::int8_t(std::clamp(std::nearbyint(value / scale), -kLargestInt8, kLargestInt8));
}

void round_to_int8(std::span<std::byte> floats, float* errors) {
  std::byte* to = floats.data();
  for_blocks(floats, errors, [&](const Block& wanted, float* kept, std::size_t n, std::size_t) {
    const float scale = scale_of(wanted, n);
    const BFloat16 travels(scale);
    std::memcpy(to, &travels, kScaleBytes);
    Block made;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int8_t number = scaled(wanted[i], scale);
      to[kScaleBytes + i] = std::byte(number);
      made[i] = float(number) * scale;
    }
    to += kScaleBytes + n;
    keep_errors(wanted, made, kept, n);
  });
}

// Works in place, from the first block to the last. A block takes fewer bytes when it travels than
// as float32, so its float32 numbers never overwrite the travelling bytes of a later block.
void widen_int8(std::span<std::byte> floats) {
  const std::byte* from = place_of_rounded(floats, DType::kUInt8).data();
  const std::size_t all = floats.size() / sizeof(float);
  for (std::size_t first = 0; first < all; first += kScaledBlock) {
    const std::size_t n = std::min(kScaledBlock, all - first);
    BFloat16 scale;
    std::memcpy(&scale, from, kScaleBytes);
    Block block;
    for (std::size_t i = 0; i < n; ++i) {
      block[i] = float(std::int8_t(from[kScaleBytes + i])) * float(scale);
    }
    from += kScaleBytes + n;
    std::memcpy(floats.data() + first * sizeof(float), block.data(), n * sizeof(float));
  }
}

void round_to_bfloat16(std::span<std::byte> floats, float* errors) {
  const auto* const from = reinterpret_cast<const float*>(floats.data());
  auto* const to = reinterpret_cast<BFloat16*>(floats.data());
  const auto n = std::int64_t(floats.size() / sizeof(float));
  if (errors == nullptr) return vector_cast(from, to, n);
  vector_cast_with_errors(from, errors, to, n);
}

}  // namespace

std::span<const std::byte> round_in_place(std::span<std::byte> floats, DType type, float* errors) {
  if (type == DType::kBFloat16) round_to_bfloat16(floats, errors);
  if (type == DType::kFloat16) round_to_float16(floats, errors);
  if (type == DType::kUInt8) round_to_int8(floats, errors);
  return floats.first(travelling_bytes(floats.size(), type));
}

std::span<std::byte> place_of_rounded(std::span<std::byte> floats, DType type) {
  return floats.last(travelling_bytes(floats.size(), type));
}

void widen_in_place(std::span<std::byte> floats, DType type) {
  const std::byte* const rounded = place_of_rounded(floats, type).data();
  auto* const to = reinterpret_cast<float*>(floats.data());
  const auto n = std::int64_t(floats.size() / sizeof(float));
  if (type == DType::kBFloat16) vector_cast(reinterpret_cast<const BFloat16*>(rounded), to, n);
  if (type == DType::kFloat16) vector_cast(reinterpret_cast<const Float16*>(rounded), to, n);
  if (type == DType::kUInt8) widen_int8(floats);
}

std::span<std::byte> place_of_rounded(std::span<std::byte> floats, const ContributionForm& form) {
  return floats.last(travelling_bytes(floats.size(), form));
}

void widen_in_place(std::span<std::byte> floats, const ContributionForm& form) {
  if (form.kept == 0) return widen_in_place(floats, form.type);
  spread_largest(floats, form);
}

}  // namespace paceline
