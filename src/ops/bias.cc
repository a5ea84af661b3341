// The ops bias, and bias with an activation in one pass. Fusion makes the latter, so it has no
// gradient.
#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

std::vector<ValueType> infer_bias(const OpInputs& in) {
  in.expect_count(2);
  expect_one_float_type(in, in.types.size());
  const Shape& x = in.shape(0);
  const Shape& b = in.shape(1);
  if (x.rank() < 1 || b.rank() != 1 || b[0] != x[-1]) {
    in.fail("cannot add " + b.str() + " to the rows of " + x.str());
  }
  return {in.types[0]};
}

std::vector<Gradient> gradient_of_bias(const Node& node, std::span<const Value> dy) {
  std::vector<std::int64_t> axes;
  for (int i = 0; i + 1 < node.input(0).shape().rank(); ++i) axes.push_back(i);
  const Value db = axes.empty() ? dy[0] : reduce_sum(dy[0], axes);
  return {dy[0], db};
}

/// The attribute "activation" names a unary op; "slope" belongs to leaky_relu.
std::vector<ValueType> infer_bias_activation(const OpInputs& in) {
  const std::string& activation = in.attributes.get<std::string>("activation");
  if (activation == "leaky_relu") {
    in.attributes.get<double>("slope");
  } else if (activation != "relu" && activation != "sigmoid" && activation != "tanh") {
    in.fail("knows no activation " + activation);
  }
  return infer_bias(in);
}

}  // namespace

void add_bias_ops(OpRegistry& ops) {
  Op bias;
  bias.name = "bias";
  bias.infer = infer_bias;
  bias.gradient = gradient_of_bias;
  bias.cost = elementwise_cost(1);
  bias.in_place = {0};
  ops.add(std::move(bias));

  Op fused;
  fused.name = "bias_activation";
  fused.infer = infer_bias_activation;
  fused.no_gradient = "it is made by fusion, after differentiation";
  fused.cost = elementwise_cost(2);
  fused.in_place = {0};
  ops.add(std::move(fused));
}

Value bias(Value x, Value b) { return x.graph().apply("bias", {x, b}); }

}  // namespace paceline
