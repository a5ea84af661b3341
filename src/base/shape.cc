#include "paceline/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/open_dimension.h"
#include "paceline/error.h"

namespace paceline {

Shape::Shape(std::initializer_list<std::int64_t> dims)
    : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const std::int64_t> dims) : rank_(int(dims.size())) {
  if (dims.size() > kMaxRank) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("[shape] {} dimensions, at most {} are possible", dims.size(), kMaxRank));
  }
  std::int64_t product = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[shape] dimension {} is {}: it is negative", i, dims[i]));
    }
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(dims[i], 1), &product)) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[shape] ({}) has too many elements", fmt::join(dims, ",")));
    }
    dims_[i] = dims[i];
  }
}

std::int64_t Shape::operator[](int i) const {
  const int index = i < 0 ? i + rank_ : i;
  if (index < 0 || index >= rank_) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[shape] no dimension {} in {}", i, str()));
  }
  return dims_[std::size_t(index)];
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (std::int64_t dim : dims()) product *= dim;
  return product;
}

std::string Shape::str() const {
  std::string text = "(";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) text += ',';
    text += dimension_text(dims_[std::size_t(i)]);
  }
  return text + ')';
}

bool Shape::operator==(const Shape& other) const {
  return std::ranges::equal(dims(), other.dims());
}

}  // namespace paceline
