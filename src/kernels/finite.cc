#include "kernels/finite.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace paceline {
namespace {

constexpr std::uint32_t kExponent = 0x7f800000;
// How many numbers are checked between two branches: a loop without branches is vectorised.
constexpr std::size_t kFiniteBlock = 1024;
constexpr std::size_t kFiniteLanes = 8;

bool is_not_finite(float value) {
  return (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent;
}

// A finite value times 0 is 0, any other is NaN, and a lane that has added NaN stays NaN. With a
// fixed number of lanes, the compiler vectorises the loop without any option.
bool all_finite(std::span<const float> values) {
  std::array<float, kFiniteLanes> lanes{};
  const std::size_t whole = values.size() / kFiniteLanes * kFiniteLanes;
  for (std::size_t i = 0; i < whole; i += kFiniteLanes) {
    for (std::size_t k = 0; k < kFiniteLanes; ++k) lanes[k] += values[i + k] * 0.0f;
  }
  for (std::size_t i = whole; i < values.size(); ++i) lanes[0] += values[i] * 0.0f;
  return std::ranges::all_of(lanes, [](float lane) { return lane == 0; });
}

}  // namespace

std::size_t first_not_finite(std::span<const float> values) {
  for (std::size_t begin = 0; begin < values.size(); begin += kFiniteBlock) {
    const auto block = values.subspan(begin, std::min(kFiniteBlock, values.size() - begin));
    if (all_finite(block)) continue;
    return begin + std::size_t(std::ranges::find_if(block, is_not_finite) - block.begin());
  }
  return values.size();
}

}  // namespace paceline
