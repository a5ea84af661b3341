#include "kernels/testing/op_cases.h"

#include <cmath>

#include "base/philox.h"

namespace paceline {

CaseInput floats(const Shape& shape, double low, double high) {
  CaseInput input;
  input.type = {DType::kFloat32, shape};
  input.low = low;
  input.high = high;
  return input;
}

CaseInput integers(const Shape& shape, std::int64_t low, std::int64_t high) {
  CaseInput input;
  input.type = {DType::kInt32, shape};
  input.low = double(low);
  input.high = double(high);
  input.differentiable = false;
  return input;
}

namespace {

double value_of(const CaseInput& input, std::uint64_t stream, std::size_t i) {
  if (!input.values.empty()) return input.values[i];
  const float unit = to_unit_float(philox(stream, i, 0)[0]);
  return input.low + double(unit) * (input.high - input.low);
}

template <typename T>
Tensor filled(const CaseInput& input, std::uint64_t stream) {
  Tensor tensor(kDTypeOf<T>, input.type.shape);
  std::span<T> data = tensor.data<T>();
  for (std::size_t i = 0; i < data.size(); ++i) {
    const double value = value_of(input, stream, i);
    if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>) {
      data[i] = T(float(value));
    } else {
      data[i] = std::is_integral_v<T> ? T(std::floor(value)) : T(value);
    }
  }
  return tensor;
}

}  // namespace

Tensor fill(const CaseInput& input, bool in_double, std::uint64_t stream) {
  switch (input.type.dtype) {
    case DType::kFloat32:
      return in_double ? filled<double>(input, stream) : filled<float>(input, stream);
    case DType::kFloat64:
      return filled<double>(input, stream);
    case DType::kBFloat16:
      return filled<BFloat16>(input, stream);
    case DType::kFloat16:
      return filled<Float16>(input, stream);
    case DType::kInt32:
      return filled<std::int32_t>(input, stream);
    case DType::kInt64:
      return filled<std::int64_t>(input, stream);
    case DType::kUInt8:
      return filled<std::uint8_t>(input, stream);
    case DType::kBool:
      return filled<bool>(input, stream);
  }
  return {};
}

OpCases all_op_cases() {
  OpCases cases;
  add_elementwise_cases(cases);
  add_layout_cases(cases);
  add_reduce_cases(cases);
  add_row_op_cases(cases);
  add_matmul_cases(cases);
  add_loss_cases(cases);
  add_conv2d_cases(cases);
  add_pool2d_cases(cases);
  add_image_norm_cases(cases);
  add_lstm_cases(cases);
  add_embedding_cases(cases);
  add_norm_cases(cases);
  add_dropout_cases(cases);
  add_random_cases(cases);
  add_metric_cases(cases);
  return cases;
}

}  // namespace paceline
