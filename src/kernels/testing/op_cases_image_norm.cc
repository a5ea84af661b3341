// Normalisation of images, as (N,C,H,W) and as (N,H,W,C).
#include <fmt/format.h>

#include "kernels/testing/op_cases.h"
#include "ops/image.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

using Inputs = std::span<const Value>;
using Outputs = std::vector<Value>;

OpCase norm_case(const char* label, const ImageShape& x, bool last, const char* op,
                 std::vector<CaseInput> inputs, Attributes attributes) {
  attributes.set("channels_last", last);
  auto build = [op, attributes](Graph& graph, Inputs in) -> Outputs {
    const Node& node = graph.add(op, in, attributes);
    Outputs outputs;
    for (int k = 0; k < int(node.outputs().size()); ++k) outputs.push_back(node.output(k));
    return outputs;
  };
  return {op,
          fmt::format("{}{}", label, last ? "_channels_last" : ""),
          std::move(inputs),
          build,
          3e-6,
          x.n * x.c * x.h * x.w <= 200};
}

CaseInput statistics(const Shape& channels, double low, double high) {
  CaseInput input = floats(channels, low, high);
  input.differentiable = false;
  return input;
}

// The check of an op with several outputs covers the gradient through output 0 alone: the others
// are statistics without a gradient.
void add_batch_norm_cases(OpCases& cases, const char* label, const ImageShape& image, bool last) {
  const CaseInput x = floats(image.shape(last), -1, 3), dy = floats(image.shape(last));
  const Shape channels{image.c};
  const CaseInput gains = floats(channels, 0.5, 2), offsets = floats(channels);
  const CaseInput means = statistics(channels, 0.5, 1.5);
  const CaseInput variances = statistics(channels, 0.5, 2);
  const Attributes plain = {{"epsilon", 1e-3}};
  const Attributes leaky = {{"epsilon", 1e-3}, {"slope", 0.1}};
  const Attributes relu = {{"epsilon", 1e-3}, {"slope", 0.0}};
  const auto add = [&](const char* op, std::vector<CaseInput> inputs,
                       const Attributes& attributes) {
    cases.push_back(norm_case(label, image, last, op, std::move(inputs), attributes));
  };
  if (image.n > 0) {
    add("batch_norm", {x, gains, offsets}, plain);
    cases.back().check_gradient = false;
    add("batch_norm_activation", {x, gains, offsets}, leaky);
    add("batch_norm_activation", {x, gains, offsets}, relu);
    cases.back().label += "_relu";
  }
  add("batch_norm_inference", {x, gains, offsets, means, variances}, plain);
  add("batch_norm_inference_activation", {x, gains, offsets, means, variances}, leaky);
  add("batch_norm_grad", {dy, x, gains, means, variances}, plain);
  add("batch_norm_inference_grad", {dy, x, gains, means, variances}, plain);
  add("batch_norm_activation_grad", {dy, x, gains, means, variances, offsets}, leaky);
  add("batch_norm_activation_grad", {dy, x, gains, means, variances, offsets}, relu);
  cases.back().label += "_relu";
}

void add_batch_norm_gradient_case(OpCases& cases, bool last) {
  const Shape shape = ImageShape{2, 3, 2, 4}.shape(last);
  const Attributes attributes = {{"epsilon", 1e-3}, {"channels_last", last}};
  auto build = [attributes](Graph& graph, Inputs in) -> Outputs {
    return {graph.add("batch_norm", in, attributes).output(0)};
  };
  cases.push_back({"batch_norm",
                   fmt::format("gradient{}", last ? "_channels_last" : ""),
                   {floats(shape), floats({3}, 0.5, 2), floats({3})},
                   build,
                   3e-6});
}

void add_response_norm_cases(OpCases& cases, const char* label, const ImageShape& image, bool last,
                             const LocalResponseNormOptions& options) {
  const Attributes attributes = {{"radius", options.radius},
                                 {"bias", options.bias},
                                 {"alpha", options.alpha},
                                 {"beta", options.beta}};
  const CaseInput x = floats(image.shape(last), -2, 2), dy = floats(image.shape(last));
  cases.push_back(norm_case(label, image, last, "local_response_norm", {x}, attributes));
  cases.push_back(norm_case(label, image, last, "local_response_norm_grad", {dy, x}, attributes));
}

}  // namespace

void add_image_norm_cases(OpCases& cases) {
  for (const bool last : {false, true}) {
    add_batch_norm_cases(cases, "small", {2, 3, 2, 4}, last);
    add_batch_norm_cases(cases, "one_channel", {3, 1, 2, 2}, last);
    add_batch_norm_cases(cases, "no_images", {0, 3, 2, 4}, last);
    add_batch_norm_cases(cases, "large", {33, 16, 16, 17}, last);
    add_batch_norm_cases(cases, "odd_channels", {20, 70, 5, 5}, last);
    add_batch_norm_gradient_case(cases, last);
    add_response_norm_cases(cases, "cifar10", {2, 12, 2, 2}, last,
                            {.radius = 4, .bias = 1, .alpha = 0.001 / 9, .beta = 0.75});
    add_response_norm_cases(cases, "strong", {2, 7, 2, 3}, last,
                            {.radius = 2, .bias = 0.5, .alpha = 0.7, .beta = 0.6});
    add_response_norm_cases(cases, "radius_zero", {1, 3, 2, 2}, last, {.radius = 0});
    add_response_norm_cases(cases, "wide", {1, 3, 2, 2}, last, {.radius = 9, .beta = 1});
    add_response_norm_cases(cases, "large", {9, 64, 12, 12}, last,
                            {.radius = 4, .bias = 1, .alpha = 0.1, .beta = 0.75});
    add_response_norm_cases(cases, "odd_channels", {3, 37, 9, 9}, last,
                            {.radius = 4, .bias = 2, .alpha = 0.3, .beta = 0.3});
  }
}

}  // namespace paceline
