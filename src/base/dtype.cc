#include "paceline/tensor.h"

#include <array>
#include <cmath>

namespace paceline {
namespace {

struct DTypeInfo {
  std::string_view name;
  std::size_t size;
  bool floating;
};

constexpr std::array<DTypeInfo, kDTypeCount> kInfo = {{
    {"float32", 4, true},
    {"float64", 8, true},
    {"bfloat16", 2, true},
    {"float16", 2, true},
    {"int32", 4, false},
    {"int64", 8, false},
    {"uint8", 1, false},
    {"bool", 1, false},
}};

}  // namespace

std::size_t size_of(DType dtype) { return kInfo[std::size_t(dtype)].size; }
std::string_view name_of(DType dtype) { return kInfo[std::size_t(dtype)].name; }
bool is_floating(DType dtype) { return kInfo[std::size_t(dtype)].floating; }

BFloat16::BFloat16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    bits = std::uint16_t((word >> 16) | 0x40);  // stays a NaN when its low bits are dropped
    return;
  }
  const std::uint32_t round = 0x7fff + ((word >> 16) & 1);
  bits = std::uint16_t((word + round) >> 16);
}

Float16::Float16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const auto sign = std::uint16_t((word >> 16) & 0x8000);
  const std::uint32_t magnitude = word & 0x7fffffff;
  if (magnitude > 0x7f800000) {
    bits = std::uint16_t(sign | 0x7e00);
  } else if (magnitude >= 0x477ff000) {  // rounds to 65520 or more: infinity
    bits = std::uint16_t(sign | 0x7c00);
  } else if (magnitude < 0x38800000) {  // subnormal: adding 0.5 ulp of the result rounds it
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    bits = std::uint16_t(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000));
  } else {
    const std::uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
    bits = std::uint16_t(sign | ((rounded - 0x38000000) >> 13));
  }
}

Float16::operator float() const {
  const std::uint32_t sign = std::uint32_t(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f;
  const std::uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = std::ldexp(float(mantissa), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

}  // namespace paceline
