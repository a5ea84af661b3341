// Cases with each pool as (N,C,H,W) and as (N,H,W,C).
#include <fmt/format.h>

#include "kernels/testing/op_cases.h"
#include "ops/image.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

using Inputs = std::span<const Value>;
using Outputs = std::vector<Value>;

struct PoolCase {
  const char* label;
  ImageShape x;
  Pool2dOptions options = {};
};

const PoolCase kPools[] = {
    {"two_by_two", {2, 3, 4, 6}},
    {"overlapping_same", {1, 3, 6, 6}, {.size = {3, 3}, .padding = Padding::same()}},
    {"odd_extents_same", {2, 2, 5, 3}, {.size = {3, 3}, .padding = Padding::same()}},
    {"gaps", {1, 2, 7, 8}, {.size = {2, 1}, .strides = {3, 4}}},
    {"explicit_pads",
     {1, 2, 4, 4},
     {.size = {3, 2}, .strides = {1, 2}, .padding = Padding::of(2, 1, 0, 0)}},
    {"whole_image", {2, 3, 4, 4}, {.size = {4, 4}, .strides = {4, 4}}},
    {"no_images", {0, 2, 4, 4}},
    {"large", {9, 64, 24, 24}, {.size = {3, 3}, .padding = Padding::same()}},
    {"many_images", {33, 20, 8, 8}},
};

Outputs outputs_of(const Node& node) {
  Outputs outputs;
  for (int k = 0; k < int(node.outputs().size()); ++k) outputs.push_back(node.output(k));
  return outputs;
}

OpCase pool_case(const PoolCase& c, bool last, const char* op, std::vector<CaseInput> inputs,
                 Attributes attributes) {
  attributes.set("channels_last", last);
  auto build = [op, attributes](Graph& graph, Inputs in) -> Outputs {
    return outputs_of(graph.add(op, in, attributes));
  };
  return {op,
          fmt::format("{}{}", c.label, last ? "_channels_last" : ""),
          std::move(inputs),
          build,
          1e-6,
          c.x.n * c.x.c * c.x.h * c.x.w <= 200};
}

/// Returns elements that all differ, in a random-looking order: central differences must not switch
/// from one maximum to another.
CaseInput distinct(const Shape& shape) {
  CaseInput input = floats(shape);
  const std::int64_t n = shape.elements();
  for (std::int64_t i = 0; i < n; ++i) input.values.push_back(double(i * 7919 % 100003) / 10000);
  return input;
}

void add_cases_of(OpCases& cases, const PoolCase& c, bool last) {
  Graph graph;
  const Value y = max_pool2d(graph.input("x", c.x.shape(false)), c.options);
  Attributes attributes = y.node().attributes();
  const Shape x = c.x.shape(last);
  const Shape pooled = ImageShape::of(y.shape(), false).shape(last);
  cases.push_back(pool_case(c, last, "max_pool2d", {distinct(x)}, attributes));
  CaseInput partly_below_zero = distinct(x);
  for (double& value : partly_below_zero.values) value -= 7;
  cases.push_back(pool_case(c, last, "relu_max_pool2d", {partly_below_zero}, attributes));
  cases.push_back(pool_case(c, last, "avg_pool2d", {floats(x)}, attributes));
  attributes.set("extents", std::vector<std::int64_t>{c.x.h, c.x.w});
  CaseInput places = integers(pooled, 0, c.options.size[0] * c.options.size[1]);
  places.type.dtype = DType::kUInt8;
  cases.push_back(pool_case(c, last, "max_pool2d_grad", {floats(pooled), places}, attributes));
  cases.push_back(pool_case(c, last, "avg_pool2d_grad", {floats(pooled)}, attributes));
}

}  // namespace

void add_pool2d_cases(OpCases& cases) {
  for (const PoolCase& c : kPools) {
    for (const bool last : {false, true}) add_cases_of(cases, c, last);
  }
}

}  // namespace paceline
