// Cases with each convolution as (N,C,H,W) and as (N,H,W,C).
#include <fmt/format.h>

#include "kernels/testing/op_cases.h"
#include "ops/image.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

using Inputs = std::span<const Value>;
using Outputs = std::vector<Value>;

struct ConvCase {
  const char* label;
  ImageShape x;
  std::int64_t outputs;
  std::array<std::int64_t, 2> size;
  Conv2dOptions options = {};
};

const ConvCase kConvolutions[] = {
    {"same", {2, 3, 5, 6}, 4, {3, 3}},
    {"valid", {2, 2, 6, 5}, 3, {3, 2}, {.padding = Padding::valid()}},
    {"explicit_pads", {1, 2, 4, 5}, 3, {3, 3}, {.padding = Padding::of(2, 0, 1, 3)}},
    {"strides", {2, 2, 7, 6}, 2, {3, 3}, {.strides = {2, 3}}},
    {"odd_row_left", {1, 1, 6, 6}, 2, {2, 2}, {.strides = {4, 4}, .padding = Padding::valid()}},
    {"dilations", {1, 2, 7, 8}, 2, {3, 2}, {.dilations = {2, 3}}},
    {"groups", {2, 4, 4, 4}, 6, {3, 3}, {.groups = 2}},
    {"depthwise", {1, 3, 5, 5}, 3, {3, 3}, {.groups = 3}},
    {"one_by_one", {3, 5, 2, 3}, 4, {1, 1}},
    {"no_images", {0, 2, 4, 4}, 3, {3, 3}},
    {"large_3x3", {5, 16, 11, 12}, 32, {3, 3}, {.strides = {2, 2}}},
    {"large_5x5", {3, 3, 13, 14}, 64, {5, 5}},
    {"large_groups", {4, 32, 6, 7}, 64, {3, 3}, {.groups = 2}},
};

/// Returns the attributes of the convolution as its builder makes them.
Attributes attributes_of(const ConvCase& c) {
  Graph graph;
  const Value x = graph.input("x", c.x.shape(false));
  const Value w = graph.input("w", {c.outputs, c.x.c / c.options.groups, c.size[0], c.size[1]});
  return conv2d(x, w, c.options).node().attributes();
}

Shape output_shape(const ConvCase& c, bool last) {
  Window2d window = Window2d::of(attributes_of(c));
  window.size = c.size;
  return ImageShape{c.x.n, c.outputs, window.outputs(0, c.x.h), window.outputs(1, c.x.w)}.shape(
      last);
}

/// A case of `op` with these attributes in addition to the convolution's.
using Items = std::vector<std::pair<std::string, Attributes::Item>>;
OpCase conv_case(const ConvCase& c, bool last, const char* op, std::vector<CaseInput> inputs,
                 const Items& items) {
  Attributes attributes = attributes_of(c);
  attributes.set("channels_last", last);
  for (const auto& [name, item] : items) attributes.set(name, item);
  auto build = [op, attributes](Graph& graph, Inputs in) -> Outputs {
    const Node& node = graph.add(op, in, attributes);
    Outputs outputs;
    for (int k = 0; k < int(node.outputs().size()); ++k) outputs.push_back(node.output(k));
    return outputs;
  };
  const bool small = c.x.n * c.x.c * c.x.h * c.x.w <= 200;
  return {op,
          fmt::format("{}{}", c.label, last ? "_channels_last" : ""),
          std::move(inputs),
          build,
          2e-6,
          small};
}

// Adds the case with its operands rounded to bfloat16. Small differences cannot check its gradient.
// Products of rounded numbers are exact in float32.
void add_rounded(OpCases& cases, const ConvCase& c, bool last, const char* op,
                 const std::vector<CaseInput>& inputs, Items items) {
  items.emplace_back("bfloat16_products", true);
  OpCase& added = cases.emplace_back(conv_case(c, last, op, inputs, items));
  added.label += "_bfloat16";
  added.check_gradient = false;
}

void add_cases_of(OpCases& cases, const ConvCase& c, bool last) {
  const CaseInput x = floats(c.x.shape(last)), dy = floats(output_shape(c, last));
  const CaseInput w =
      floats({c.outputs, c.x.c / c.options.groups, c.size[0], c.size[1]}, -0.5, 0.5);
  const CaseInput b = floats({c.outputs});
  cases.push_back(conv_case(c, last, "conv2d", {x, w}, {}));
  cases.push_back(conv_case(c, last, "conv2d", {x, w, b}, {}));
  cases.back().label += "_biased";
  cases.push_back(conv_case(c, last, "conv2d_activation", {x, w, b},
                            {{"activation", std::string("leaky_relu")}, {"slope", 0.1}}));
  cases.push_back(conv_case(c, last, "conv2d_activation", {x, w},
                            {{"activation", std::string("relu")}, {"slope", 0.0}}));
  cases.back().label += "_relu";
  add_rounded(cases, c, last, "conv2d", {x, w, b}, {});
  const std::vector<std::int64_t> extents = {c.x.h, c.x.w}, size = {c.size[0], c.size[1]};
  cases.push_back(conv_case(c, last, "conv2d_input_grad", {dy, w}, {{"extents", extents}}));
  add_rounded(cases, c, last, "conv2d_input_grad", {dy, w}, {{"extents", extents}});
  for (const bool biased : {false, true}) {
    cases.push_back(
        conv_case(c, last, "conv2d_weights_grad", {x, dy}, {{"size", size}, {"biased", biased}}));
    if (biased) cases.back().label += "_biased";
    add_rounded(cases, c, last, "conv2d_weights_grad", {x, dy},
                {{"size", size}, {"biased", biased}});
    if (biased) cases.back().label += "_biased";
  }
}

}  // namespace

void add_conv2d_cases(OpCases& cases) {
  for (const ConvCase& c : kConvolutions) {
    for (const bool last : {false, true}) add_cases_of(cases, c, last);
  }
}

}  // namespace paceline
