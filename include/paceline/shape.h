// The static shape of a tensor.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace paceline {

/// Up to eight dimensions, each zero or more, row-major. A scalar has rank 0 and one element.
class Shape {
 public:
  static constexpr int kMaxRank = 8;  // the largest number of dimensions

  Shape() = default;
  /// The same as from a span.
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

}  // namespace paceline
