// Values in memory. Tensors share the ownership of a buffer; a TensorView only refers to one.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "paceline/dtype.h"
#include "paceline/shape.h"

namespace paceline {

/// The number of bytes that values of a type and a shape take. Throws kInvalidArgument when it does
/// not fit an address.
std::size_t byte_count(DType dtype, const Shape& shape);

/// Row-major values in memory that somebody else owns and that must outlive the view.
struct TensorView {
  void* data = nullptr;           // the first element
  DType dtype = DType::kFloat32;  // the type of the elements
  Shape shape;                    // the shape of the values

  /// The number of bytes that the values take.
  std::size_t bytes() const { return byte_count(dtype, shape); }
  /// The first element. T is the element type, else it throws kInvalidArgument, naming both;
  /// std::byte reads values of any type as their bytes.
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
  /// The number of bytes that they take.
  std::size_t bytes() const { return byte_count(dtype_, shape_); }
  /// True when it has a buffer; a default-constructed tensor has none.
  bool defined() const { return buffer_ != nullptr; }

  /// True when a copy shares its buffer.
  bool shared() const { return buffer_.use_count() > 1; }

  /// The first element, which all copies share.
  void* raw() const { return buffer_.get(); }
  /// The elements. Throws kInvalidArgument when T is not their type.
  template <typename T>
  std::span<T> data() const {
    check_dtype(kDTypeOf<T>);
    return {static_cast<T*>(raw()), std::size_t(elements())};
  }
  /// The value of a tensor of one element.
  template <typename T>
  T item() const;
  /// A view of the buffer. A copy of the tensor must outlive the view.
  TensorView view() const { return {raw(), dtype_, shape_}; }
  /// A copy with a buffer of its own.
  Tensor clone() const;

 private:
  void check_dtype(DType asked) const;

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
  check_element_count(shape_, 1);
  return data<T>()[0];
}

}  // namespace paceline
