#include "tools/checkpoint_values.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/printed.h"
#include "base/row_count.h"

namespace paceline {
namespace {

constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 20;

template <typename T>
std::vector<double> converted(const Tensor& tensor) {
  std::vector<double> values;
  values.reserve(std::size_t(tensor.elements()));
  for (const T value : tensor.data<T>()) {
    if constexpr (std::is_arithmetic_v<T>) {
      values.push_back(double(value));
    } else {
      values.push_back(double(float(value)));
    }
  }
  return values;
}

std::vector<double> doubles_of(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return converted<float>(tensor);
    case DType::kFloat64:
      return converted<double>(tensor);
    case DType::kBFloat16:
      return converted<BFloat16>(tensor);
    case DType::kFloat16:
      return converted<Float16>(tensor);
    case DType::kInt32:
      return converted<std::int32_t>(tensor);
    case DType::kInt64:
      return converted<std::int64_t>(tensor);
    case DType::kUInt8:
      return converted<std::uint8_t>(tensor);
    case DType::kBool:
      return converted<bool>(tensor);
  }
  return {};
}

struct Rows {
  std::int64_t first, count;
};

// Ranges of rows that hold about kElementsAtOnce. Rows without elements need none.
std::vector<Rows> ranges_of(const Shape& shape) {
  if (shape.elements() == 0) return {};
  const std::int64_t all = row_count(shape);
  const std::int64_t row = shape.elements() / all;
  const std::int64_t at_once = std::max<std::int64_t>(kElementsAtOnce / row, 1);
  std::vector<Rows> ranges;
  for (std::int64_t first = 0; first < all; first += at_once) {
    ranges.push_back({first, std::min(at_once, all - first)});
  }
  return ranges;
}

std::vector<double> values_of(const CheckpointReader& checkpoint, const SavedVariable& variable,
                              std::size_t array, const Rows& rows) {
  const DType dtype = array == 0 ? variable.dtype : variable.slots[array - 1].dtype;
  const bool scalar = array > 0 && variable.slots[array - 1].scalar;
  const std::int64_t all = row_count(variable.shape);
  const std::int64_t elements = scalar ? 1 : variable.shape.elements() / all * rows.count;
  const Tensor tensor(dtype, {elements});
  checkpoint.read_rows(variable, array, rows.first, rows.count,
                       {static_cast<std::byte*>(tensor.raw()), tensor.bytes()});
  return doubles_of(tensor);
}

}  // namespace

double norm_of(const CheckpointReader& checkpoint, const SavedVariable& variable,
               std::size_t array) {
  double squares = 0;
  for (const Rows& rows : ranges_of(variable.shape)) {
    for (const double value : values_of(checkpoint, variable, array, rows)) {
      squares += value * value;
    }
  }
  return printed(std::sqrt(squares));
}

Difference difference_of(const CheckpointReader& a, const CheckpointReader& b,
                         const SavedVariable& in_a, const SavedVariable& in_b) {
  double largest = 0, sum = 0;
  for (const Rows& rows : ranges_of(in_a.shape)) {
    const std::vector<double> left = values_of(a, in_a, 0, rows);
    const std::vector<double> right = values_of(b, in_b, 0, rows);
    for (std::size_t i = 0; i < left.size(); ++i) {
      const bool same = left[i] == right[i] || (std::isnan(left[i]) && std::isnan(right[i]));
      const double apart = same ? 0 : std::abs(left[i] - right[i]);
      largest = std::isnan(apart) || apart > largest ? apart : largest;
      sum += apart;
    }
  }
  if (std::isnan(sum)) largest = sum;
  const auto elements = double(std::max<std::int64_t>(in_a.shape.elements(), 1));
  return {printed(largest), printed(sum / elements)};
}

}  // namespace paceline
