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
  static constexpr int kMaxRank = 8;  // the most dimensions

  Shape() = default;
  /// As from a span.
  Shape(std::initializer_list<std::int64_t> dims);
  /// Throws kInvalidArgument on more than kMaxRank dimensions, a negative one, or a product that
  /// does not fit int64.
  explicit Shape(std::span<const std::int64_t> dims);

  /// How many dimensions.
  int rank() const { return rank_; }
  /// Dimension i; a negative i counts from the end. Throws kInvalidArgument when out of range.
  std::int64_t operator[](int i) const;
  /// The product of the dimensions.
  std::int64_t elements() const;
  /// All of them; borrowed.
  std::span<const std::int64_t> dims() const { return {dims_.data(), std::size_t(rank_)}; }
  /// "(3,4)"; "()" for a scalar.
  std::string str() const;

  /// Same rank, same dimensions.
  bool operator==(const Shape& other) const;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace paceline
