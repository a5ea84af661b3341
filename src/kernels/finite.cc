#include "kernels/finite.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace paceline {
namespace {

constexpr std::uint32_t kExponent = 0x7f800000;
// So many numbers are looked at before a branch; a loop without branches is vectorised.
constexpr std::size_t kFiniteBlock = 1024;

bool is_not_finite(float value) {
  return (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent;
}

bool all_finite(std::span<const float> values) {
  std::uint32_t found = 0;
  for (const float value : values) found |= std::uint32_t(is_not_finite(value));
  return found == 0;
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
