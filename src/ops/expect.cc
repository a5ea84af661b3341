#include "ops/expect.h"

#include <fmt/format.h>

namespace paceline {

void expect_floating(const OpInputs& in, int i) {
  if (in.dtype(i) == DType::kFloat32 || in.dtype(i) == DType::kFloat64) return;
  in.fail(fmt::format("takes float32 or float64, not {}", name_of(in.dtype(i))));
}

void expect_one_floating_type(const OpInputs& in) {
  for (const ValueType& type : in.types) {
    if (type.dtype == in.dtype(0)) continue;
    in.fail(fmt::format("takes inputs of one element type, not {} with {}", name_of(in.dtype(0)),
                        name_of(type.dtype)));
  }
  expect_floating(in);
}

int expect_axis(const OpInputs& in, std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    in.fail(fmt::format("has no axis {} in {}", axis, in.shape(0).str()));
  }
  return int(axis < 0 ? axis + rank : axis);
}

std::string shapes_str(const OpInputs& in) {
  return in.shape(0).str() + " with " + in.shape(1).str();
}

double touched_bytes(const Node& node) {
  double bytes = 0;
  auto count = [&](const ValueType& type) {
    bytes += double(type.shape.elements()) * double(size_of(type.dtype));
  };
  for (const Value& input : node.inputs()) count(input.type());
  for (const ValueType& output : node.outputs()) count(output);
  return bytes;
}

double output_elements(const Node& node) { return double(node.outputs()[0].shape.elements()); }

std::function<Cost(const Node&)> cost_per_element(double flops) {
  return [flops](const Node& node) {
    return Cost{flops * output_elements(node), touched_bytes(node)};
  };
}

}  // namespace paceline
