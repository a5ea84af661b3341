// Element types, and the two 16-bit floats that C++20 lacks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace paceline {

/// Types of elements; the numbers are those of the wire and of checkpoints.
enum class DType : std::uint8_t {
  kFloat32 = 0,   // float
  kFloat64 = 1,   // double
  kBFloat16 = 2,  // storage, wire and casts
  kFloat16 = 3,   // storage, wire and casts
  kInt32 = 4,     // std::int32_t
  kInt64 = 5,     // std::int64_t
  kUInt8 = 6,     // std::uint8_t
  kBool = 7,      // bool, one byte
};
constexpr int kDTypeCount = 8;  // how many types there are

/// The number of bytes that one element takes.
std::size_t size_of(DType dtype);
/// The name of a type: "float32", "int64", ….
std::string_view name_of(DType dtype);
/// True for the four kinds of floating-point numbers.
bool is_floating(DType dtype);

/// The upper half of a float32; conversion from float rounds to nearest even, NaN stays NaN.
struct BFloat16 {
  std::uint16_t bits = 0;  // sign, 8 bits of exponent, 7 of fraction
  BFloat16() = default;
  explicit BFloat16(float value);  // rounded
  /// The conversion to float is exact.
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

/// IEEE 754 binary16; conversion from float rounds to nearest even, overflow becomes infinity.
struct Float16 {
  std::uint16_t bits = 0;  // sign, 5 bits of exponent, 10 of fraction
  Float16() = default;
  explicit Float16(float value);    // rounded
  explicit operator float() const;  // exact
};

template <typename T>
/// The DType of a C++ type, as `value`.
struct DTypeOf;
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::kFloat32> {};
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::kFloat64> {};
template <>
struct DTypeOf<BFloat16> : std::integral_constant<DType, DType::kBFloat16> {};
template <>
struct DTypeOf<Float16> : std::integral_constant<DType, DType::kFloat16> {};
template <>
struct DTypeOf<std::int32_t> : std::integral_constant<DType, DType::kInt32> {};
template <>
struct DTypeOf<std::int64_t> : std::integral_constant<DType, DType::kInt64> {};
template <>
struct DTypeOf<std::uint8_t> : std::integral_constant<DType, DType::kUInt8> {};
template <>
struct DTypeOf<bool> : std::integral_constant<DType, DType::kBool> {};

/// The DType of a C++ type, as a constant.
template <typename T>
inline constexpr DType kDTypeOf = DTypeOf<T>::value;

}  // namespace paceline
