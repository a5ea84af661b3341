// Values in memory: a Tensor owns (shares) its buffer, a TensorView borrows it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "paceline/dtype.h"
#include "paceline/shape.h"

namespace paceline {

/// That values of a type and a shape take. Throws kInvalidArgument where a memory address could not
/// count them.
std::size_t byte_count(DType dtype, const Shape& shape);

/// Row-major values in memory that somebody else owns and that must outlive the view.
struct TensorView {
  void* data = nullptr;           // of the first element
  DType dtype = DType::kFloat32;  // of the elements
  Shape shape;                    // of the values

  /// That the values take.
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
  /// Zero-filled.
  Tensor(DType dtype, const Shape& shape);
  /// From values in row-major order; throws kInvalidArgument when there are not as many as `shape`
  /// has.
  template <typename T>
  static Tensor of(const Shape& shape, const std::vector<T>& values);
  /// Of rank 0.
  template <typename T>
  static Tensor scalar(T value) {
    return of<T>(Shape{}, {value});
  }

  /// Of its elements.
  DType dtype() const { return dtype_; }
  /// Of rank 0 when default-made.
  const Shape& shape() const { return shape_; }
  /// How many there are.
  std::int64_t elements() const { return shape_.elements(); }
  /// That they take.
  std::size_t bytes() const { return byte_count(dtype_, shape_); }
  /// Has it a buffer? A default-made one has none.
  bool defined() const { return buffer_ != nullptr; }

  /// Does a copy share its buffer?
  bool shared() const { return buffer_.use_count() > 1; }

  /// The first element; shared with all copies.
  void* raw() const { return buffer_.get(); }
  /// Throws kInvalidArgument when T is not the tensor's element type.
  template <typename T>
  std::span<T> data() const {
    check_dtype(kDTypeOf<T>);
    return {static_cast<T*>(raw()), std::size_t(elements())};
  }
  /// The value of a tensor of one element.
  template <typename T>
  T item() const;
  /// Borrows the buffer: a copy of the tensor must outlive the view.
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
