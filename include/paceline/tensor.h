// Tensors in host memory: element types, shapes, values and views of them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

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

/// The upper half of a float32. Conversion from float rounds to nearest even; NaN stays NaN.
struct BFloat16 {
  std::uint16_t bits = 0;  // sign, 8 bits of exponent, 7 of fraction
  BFloat16() = default;
  explicit BFloat16(float value);  // rounded
  /// The conversion to float is exact.
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

/// IEEE 754 binary16. Conversion from float rounds to nearest even; overflow becomes infinity.
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

/// Up to eight dimensions, each zero or more, row-major. A scalar has rank 0 and one element.
class Shape {
 public:
  static constexpr int kMaxRank = 8;  // the largest number of dimensions

  Shape() = default;
  /// A shape of these dimensions. Throws as the constructor from a span does.
  Shape(std::initializer_list<std::int64_t> dims);
  /// A shape of these dimensions. Throws kInvalidArgument on more than kMaxRank dimensions, on a
  /// negative one, and when their product does not fit int64.
  explicit Shape(std::span<const std::int64_t> dims);

  /// The number of dimensions.
  int rank() const { return rank_; }
  /// Dimension i; a negative i counts from the end. Throws kInvalidArgument when out of range.
  std::int64_t operator[](int i) const;
  /// The product of the dimensions.
  std::int64_t elements() const;
  /// All dimensions. They belong to the shape.
  std::span<const std::int64_t> dims() const { return {dims_.data(), std::size_t(rank_)}; }
  /// The shape as text: "(3,4)", or "()" for a scalar.
  std::string str() const;

  /// True when rank and dimensions are equal.
  bool operator==(const Shape& other) const;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// The number of bytes that values of a type and a shape take. Throws kInvalidArgument when the
/// number does not fit an address.
std::size_t byte_count(DType dtype, const Shape& shape);

/// Row-major values in memory that somebody else owns and that must outlive the view.
struct TensorView {
  void* data = nullptr;           // the first element
  DType dtype = DType::kFloat32;  // the type of the elements
  Shape shape;                    // the shape of the values

  /// The number of bytes that the values take.
  std::size_t bytes() const { return byte_count(dtype, shape); }
  /// A pointer to the first element. Throws kInvalidArgument, naming both types, when T is not the
  /// element type. With T = std::byte, values of any type are read as bytes.
  template <typename T>
  T* as() const {
    if constexpr (!std::is_same_v<T, std::byte>) {
      if (dtype != kDTypeOf<T>) throw_other_type(kDTypeOf<T>);
    }
    return static_cast<T*>(data);
  }

 private:
  friend class Tensor;
  [[noreturn]] void throw_other_type(DType asked) const;
};

/// A row-major tensor in host memory, 64-byte aligned. Copies share the buffer.
class Tensor {
 public:
  Tensor() = default;
  /// A tensor of zeros.
  Tensor(DType dtype, const Shape& shape);
  /// A tensor of these values, in row-major order. Throws kInvalidArgument when their number is not
  /// that of `shape`.
  template <typename T>
  static Tensor of(const Shape& shape, const std::vector<T>& values);
  /// A tensor of rank 0.
  template <typename T>
  static Tensor scalar(T value) {
    return of<T>(Shape{}, {value});
  }

  /// The type of its elements.
  DType dtype() const { return dtype_; }
  /// Its shape; of a default-constructed tensor, rank 0.
  const Shape& shape() const { return shape_; }
  /// The number of elements.
  std::int64_t elements() const { return shape_.elements(); }
  /// The number of bytes that the elements take.
  std::size_t bytes() const { return byte_count(dtype_, shape_); }
  /// True when the tensor has a buffer; a default-constructed tensor has none.
  bool defined() const { return buffer_ != nullptr; }

  /// True when a copy of the tensor shares its buffer.
  bool shared() const { return buffer_.use_count() > 1; }

  /// A pointer to the buffer, which all copies share; null when there is no buffer.
  void* raw() const { return buffer_.get(); }
  /// The elements. Throws kInvalidArgument when T is not the element type.
  template <typename T>
  std::span<T> data() const {
    check_dtype(kDTypeOf<T>);
    return {static_cast<T*>(raw()), std::size_t(elements())};
  }
  /// The value of a tensor with one element. Throws kInvalidArgument when the number of elements is
  /// not 1 or T is not the element type.
  template <typename T>
  T item() const;
  /// A view of the buffer. A copy of the tensor must outlive the view.
  TensorView view() const { return {raw(), dtype_, shape_}; }
  /// A copy with a buffer of its own.
  Tensor clone() const;

 private:
  void check_dtype(DType asked) const;
  void check_one() const;

  DType dtype_ = DType::kFloat32;
  Shape shape_;
  std::shared_ptr<void> buffer_;
};

/// Throws kInvalidArgument unless `values` has as many elements as `shape`.
void check_element_count(const Shape& shape, std::size_t values);

template <typename T>
Tensor Tensor::of(const Shape& shape, const std::vector<T>& values) {
  check_element_count(shape, values.size());
  Tensor tensor(kDTypeOf<T>, shape);
  std::span<T> data = tensor.data<T>();
  for (std::size_t i = 0; i < values.size(); ++i) data[i] = values[i];
  return tensor;
}

template <typename T>
T Tensor::item() const {
  check_one();
  return data<T>()[0];
}

}  // namespace paceline
