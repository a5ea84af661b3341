#include <fmt/format.h>

#include <cmath>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "ops/image.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

bool is_not_negative(double number) { return number >= 0 && std::isfinite(number); }

void expect_response_norm(const OpInputs& in) {
  expect_one_float_type(in, in.types.size());
  expect_image(in, 0, "x");
  const std::int64_t radius = in.attributes.get<std::int64_t>("radius");
  const double bias = in.attributes.get<double>("bias");
  const double alpha = in.attributes.get<double>("alpha");
  const double beta = in.attributes.get<double>("beta");
  const bool good = radius >= 0 && is_not_negative(bias) && bias > 0 && is_not_negative(alpha) &&
                    is_not_negative(beta);
  if (good) return;
  in.fail(fmt::format(
      "radius {}, bias {}, alpha {}, beta {}: bias must be above 0, and no other number below 0",
      radius, bias, alpha, beta));
}

std::vector<ValueType> infer_local_response_norm(const OpInputs& in) {
  in.expect_count(1);
  expect_response_norm(in);
  return {in.types[0]};
}

// Inputs: dy and x. Output: dx.
std::vector<ValueType> infer_local_response_norm_grad(const OpInputs& in) {
  in.expect_count(2);
  expect_response_norm(in);
  expect_shape(in, 0, "gradient", in.shape(1));
  return {in.types[0]};
}

std::vector<Gradient> local_response_norm_gradient(const Node& node, std::span<const Value> dy) {
  return {
      node.graph().apply("local_response_norm_grad", {dy[0], node.input(0)}, node.attributes())};
}

}  // namespace

// In the costs a power counts as ten FLOPs. The sum over a channel's neighbours is not computed
// anew for each channel, but updated from the one before.
void add_local_response_norm_ops(OpRegistry& ops) {
  Op norm;
  norm.name = "local_response_norm";
  norm.infer = infer_local_response_norm;
  norm.gradient = local_response_norm_gradient;
  norm.cost = elementwise_cost(16);
  ops.add(std::move(norm));

  Op grad;
  grad.name = "local_response_norm_grad";
  grad.infer = infer_local_response_norm_grad;
  grad.no_gradient = "second derivatives are not implemented";
  grad.cost = elementwise_cost(24);
  ops.add(std::move(grad));
}

Value local_response_norm(Value x, const LocalResponseNormOptions& options) {
  return x.graph().apply("local_response_norm", {x},
                         {{"radius", options.radius},
                          {"bias", options.bias},
                          {"alpha", options.alpha},
                          {"beta", options.beta}});
}

}  // namespace paceline
