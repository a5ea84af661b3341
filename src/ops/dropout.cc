// The mask is a function of (seed, stream, task, step). The gradient computes it again from the
// stream of the forward node, so nothing is kept between the two.
#include <fmt/format.h>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

// The attribute `stream`, if it is set, names the node whose mask is repeated.
std::vector<ValueType> infer_dropout(const OpInputs& in) {
  in.expect_count(1);
  expect_one_float_type(in, 1);
  const double keep = in.attributes.get<double>("keep");
  if (!(keep > 0 && keep <= 1)) in.fail(fmt::format("keep is {}; it must be in (0,1]", keep));
  return {in.types[0]};
}

std::vector<Gradient> dropout_gradient(const Node& node, std::span<const Value> output_gradients) {
  if (!output_gradients[0]) return {{}};
  Attributes attributes = node.attributes();
  if (!attributes.has("stream")) attributes.set("stream", node.name());
  Gradient x;
  x.dense = node.graph().apply("dropout", {output_gradients[0]}, attributes);
  return {x};
}

Cost dropout_cost(const Node& node) {
  // Every four random words take ten rounds of some eight operations.
  return {20.0 * double(node.outputs()[0].shape.elements()), moved_bytes(node)};
}

}  // namespace

void add_dropout_ops(OpRegistry& ops) {
  Op op;
  op.name = "dropout";
  op.infer = infer_dropout;
  op.gradient = dropout_gradient;
  op.cost = dropout_cost;
  op.in_place = {0};
  op.stateful = true;
  ops.add(std::move(op));
}

Value dropout(Value x, double keep) {
  if (keep == 1) return x;
  return x.graph().apply("dropout", {x}, {{"keep", keep}});
}

}  // namespace paceline
