// Element types, and the two 16-bit floats that C++20 lacks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace paceline {

enum class DType : std::uint8_t {
  kFloat32 = 0,
  kFloat64 = 1,
  kBFloat16 = 2,  // storage, wire and casts
  kFloat16 = 3,   // storage, wire and casts
  kInt32 = 4,
  kInt64 = 5,
  kUInt8 = 6,
  kBool = 7,
};
constexpr int kDTypeCount = 8;

/// Bytes of one element.
std::size_t size_of(DType dtype);
/// "float32", "int64", …
std::string_view name_of(DType dtype);
bool is_floating(DType dtype);

/// The upper half of a float32; conversion from float rounds to nearest even, NaN stays NaN.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

/// IEEE 754 binary16; conversion from float rounds to nearest even, overflow becomes infinity.
struct Float16 {
  std::uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);
  explicit operator float() const;
};

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBFloat16;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::kFloat16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kUInt8;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};

template <typename T>
inline constexpr DType kDTypeOf = DTypeOf<T>::value;

}  // namespace paceline
