#include "ops/expect.h"

#include <fmt/format.h>

#include "graph/fused_program.h"
#include "ops/axis.h"

namespace paceline {

void expect_one_float_type(const OpInputs& in, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const DType dtype = in.dtype(int(i));
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64) {
      in.fail(fmt::format("input {} is {}; float32 or float64 is needed", i, in.types[i].str()));
    }
    if (dtype != in.dtype(0)) {
      in.fail(fmt::format("inputs of two types: {} and {}", in.types[0].str(), in.types[i].str()));
    }
  }
}

void expect_shape(const OpInputs& in, int i, std::string_view what, const Shape& shape) {
  if (in.shape(i) == shape) return;
  in.fail(fmt::format("{} is {}, not {}", what, in.shape(i).str(), shape.str()));
}

void expect_rank(const OpInputs& in, int i, std::string_view what, int rank) {
  if (in.shape(i).rank() == rank) return;
  in.fail(fmt::format("{} is {}; {} dimensions are needed", what, in.shape(i).str(), rank));
}

void expect_int32(const OpInputs& in, int i, std::string_view what) {
  if (in.dtype(i) == DType::kInt32) return;
  in.fail(fmt::format("{} is {}; int32 is needed", what, in.types[std::size_t(i)].str()));
}

int expect_axis(const OpInputs& in, std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    in.fail(fmt::format("has no axis {} in {}", axis, in.shape(0).str()));
  }
  return axis_from_start(axis, rank);
}

std::string shapes_str(const OpInputs& in) {
  return in.shape(0).str() + " with " + in.shape(1).str();
}

// A part is contiguous if it covers its last dimensions wholly, may cut the dimension before them,
// and has one element in all earlier dimensions.
std::int64_t first_of_part(const Shape& whole, std::span<const std::int64_t> begin,
                           std::span<const std::int64_t> size) {
  std::int64_t first = 0, stride = 1;
  bool cut = false;
  for (int i = whole.rank() - 1; i >= 0; --i) {
    const std::int64_t taken = size[std::size_t(i)];
    if (taken == 0 || (cut && taken != 1)) return -1;
    cut = cut || taken != whole[i];
    first += begin[std::size_t(i)] * stride;
    stride *= whole[i];
  }
  return first;
}

double moved_bytes(const Node& node) {
  double bytes = 0;
  for (const Value& input : node.inputs()) bytes += double(input.type().bytes());
  for (const ValueType& output : node.outputs()) bytes += double(output.bytes());
  return bytes;
}

double output_elements(const Node& node) { return double(node.outputs()[0].shape.elements()); }

std::function<Cost(const Node&)> elementwise_cost(double flops) {
  return [flops](const Node& node) {
    return Cost{flops * output_elements(node), moved_bytes(node)};
  };
}

std::function<Cost(const Node&)> fusable_cost(std::string_view op) {
  return elementwise_cost(find_fusable_op(op)->flops);
}

}  // namespace paceline
