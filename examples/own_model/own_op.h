// An op outside the library: swish(x) = x · σ(x) (Ramachandran et al., arXiv 1710.05941). Its
// gradient is made of the library's ops. Its kernel is a loop, which is divided among threads.
#pragma once

#include <paceline/paceline.h>

#include <cmath>

// Returns the library's ops and swish.
inline paceline::OpRegistry ops_with_swish() {
  using namespace paceline;
  Op op;
  op.name = "swish";
  op.infer = [](const OpInputs& in) {
    in.expect_count(1);
    if (in.dtype(0) != DType::kFloat32) in.fail("needs float32, not " + in.types[0].str());
    return std::vector<ValueType>{in.types[0]};
  };
  op.gradient = [](const Node& node, std::span<const Value> dy) {
    // d swish = σ + swish · (1 − σ) = σ + swish − swish · σ.
    const Value s = sigmoid(node.input(0)), y = node.output(0);
    return std::vector<Gradient>{mul(dy[0], sub(add(s, y), mul(y, s)))};
  };
  op.kernel = [](const Node&, const KernelCall& call) {
    const TensorView &x = call.inputs[0], &y = call.outputs[0];
    // The threads of the device each compute parts of some 4,096 elements.
    call.parallel_for(x.shape.elements(), 4096, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        y.as<float>()[i] = x.as<float>()[i] / (1 + std::exp(-x.as<float>()[i]));
      }
    });
  };
  op.in_place = {0};
  OpRegistry ops = copy_of_builtin_ops();
  register_op(ops, std::move(op));
  return ops;
}

inline paceline::Value swish(paceline::Value x) { return x.graph().apply("swish", {x}); }
