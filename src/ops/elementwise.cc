// Functions of one value, element by element, and the ops of their gradients.
#include <cmath>
#include <numbers>

#include "graph/open_graph.h"
#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

std::vector<ValueType> infer_unary(const OpInputs& in) {
  in.expect_count(1);
  expect_one_float_type(in, 1);
  return {in.types[0]};
}

/// Inputs: dy, and x or y; both have the same shape.
std::vector<ValueType> infer_gradient(const OpInputs& in) {
  in.expect_count(2);
  expect_one_float_type(in, in.types.size());
  if (in.shape(0) != in.shape(1)) in.fail("cannot pair " + shapes_str(in));
  return {in.types[0]};
}

std::vector<ValueType> infer_with_number(const OpInputs& in, const char* attribute) {
  in.attributes.get<double>(attribute);
  return in.types.size() == 2 ? infer_gradient(in) : infer_unary(in);
}

/// Makes an op with one input. `derivative` returns dx for a node of the op and its dy.
template <typename F>
Op unary(const char* name, F derivative) {
  Op op;
  op.name = name;
  op.infer = infer_unary;
  op.gradient = [derivative](const Node& node, std::span<const Value> dy) -> std::vector<Gradient> {
    return {derivative(node, dy[0])};
  };
  op.cost = fusable_cost(name);
  op.in_place = {0};
  return op;
}

/// An op that only occurs in gradients.
Op gradient_part(const char* name) {
  Op op;
  op.name = name;
  op.infer = infer_gradient;
  op.no_gradient = "it is part of a gradient; second derivatives of it are not offered";
  op.cost = fusable_cost(name);
  op.in_place = {0, 1};
  return op;
}

Value from_output(const char* op, const Node& node, Value dy) {
  return dy.graph().apply(op, {dy, node.output(0)});
}

void add_activations(OpRegistry& ops) {
  ops.add(unary("relu", [](const Node& n, Value dy) { return from_output("relu_grad", n, dy); }));
  ops.add(gradient_part("relu_grad"));

  Op leaky = unary("leaky_relu", [](const Node& n, Value dy) {
    return dy.graph().apply("leaky_relu_grad", {dy, n.input(0)}, n.attributes());
  });
  leaky.infer = [](const OpInputs& in) { return infer_with_number(in, "slope"); };
  ops.add(std::move(leaky));
  Op leaky_grad = gradient_part("leaky_relu_grad");
  leaky_grad.infer = [](const OpInputs& in) { return infer_with_number(in, "slope"); };
  ops.add(std::move(leaky_grad));

  ops.add(
      unary("sigmoid", [](const Node& n, Value dy) { return from_output("sigmoid_grad", n, dy); }));
  ops.add(gradient_part("sigmoid_grad"));
  ops.add(unary("tanh", [](const Node& n, Value dy) { return from_output("tanh_grad", n, dy); }));
  ops.add(gradient_part("tanh_grad"));
}

}  // namespace

void add_elementwise_ops(OpRegistry& ops) {
  Op scaled = unary("scale", [](const Node& n, Value dy) {
    return scale(dy, n.attributes().get<double>("factor"));
  });
  scaled.infer = [](const OpInputs& in) { return infer_with_number(in, "factor"); };
  ops.add(std::move(scaled));

  add_activations(ops);
  ops.add(unary("exp", [](const Node& n, Value dy) { return mul(dy, n.output(0)); }));
  ops.add(unary("log", [](const Node& n, Value dy) { return div(dy, n.input(0)); }));
  ops.add(unary("sqrt", [](const Node& n, Value dy) { return scale(div(dy, n.output(0)), 0.5); }));
  ops.add(unary("square", [](const Node& n, Value dy) { return scale(mul(dy, n.input(0)), 2); }));
  ops.add(unary("abs", [](const Node& n, Value dy) { return mul(dy, sign(n.input(0))); }));
  ops.add(unary("sign", [](const Node&, Value) { return Value(); }));
  ops.add(unary("erf", [](const Node& n, Value dy) {
    const Value slope = exp(scale(square(n.input(0)), -1));
    return scale(mul(dy, slope), 2 * std::numbers::inv_sqrtpi);
  }));
}

Value scale(Value x, double factor) {
  return x.graph().apply("scale", {x}, factor_attributes(factor));
}
Value relu(Value x) { return x.graph().apply("relu", {x}); }
Value leaky_relu(Value x, double slope) {
  return x.graph().apply("leaky_relu", {x}, {{"slope", slope}});
}
Value sigmoid(Value x) { return x.graph().apply("sigmoid", {x}); }
Value tanh(Value x) { return x.graph().apply("tanh", {x}); }
Value exp(Value x) { return x.graph().apply("exp", {x}); }
Value log(Value x) { return x.graph().apply("log", {x}); }
Value sqrt(Value x) { return x.graph().apply("sqrt", {x}); }
Value square(Value x) { return x.graph().apply("square", {x}); }
Value abs(Value x) { return x.graph().apply("abs", {x}); }
Value sign(Value x) { return x.graph().apply("sign", {x}); }
Value erf(Value x) { return x.graph().apply("erf", {x}); }

Value gelu(Value x, bool approximate) {
  if (!approximate) {
    return scale(mul(x, erf(scale(x, std::numbers::sqrt2 / 2)) + 1), 0.5);
  }
  const Value inner = add(x, scale(mul(x, square(x)), 0.044715));
  const double factor = std::sqrt(2 / std::numbers::pi);
  return scale(mul(x, tanh(scale(inner, factor)) + 1), 0.5);
}

}  // namespace paceline
