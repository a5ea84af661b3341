// For tests of src/graph: a handful of float32 ops with plain kernels, and functions that run them.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "graph/fused_program.h"
#include "graph/sources.h"
#include "paceline/op.h"

namespace paceline::small_ops {

using Items = std::vector<std::int64_t>;

inline Cost cost_of_output(const Node& node) {
  return {double(node.outputs()[0].shape.elements()), 4.0};
}

/// An op without `gradient` has none for the reason "no gradient, for a test".
inline Op make(std::string name, decltype(Op::infer) infer, KernelFunction kernel,
               decltype(Op::gradient) gradient = {}) {
  Op op;
  op.name = std::move(name);
  op.infer = std::move(infer);
  op.kernel = std::move(kernel);
  op.gradient = std::move(gradient);
  op.no_gradient = "no gradient, for a test";
  op.cost = cost_of_output;
  return op;
}

inline std::vector<ValueType> infer_first(const OpInputs& in) { return {in.types[0]}; }

/// The output has the type of the largest operand; operands of one element are used everywhere.
inline std::vector<ValueType> infer_wider(const OpInputs& in) {
  std::size_t widest = 0;
  for (std::size_t i = 0; i < in.types.size(); ++i) {
    if (in.shape(int(i)).elements() > in.shape(int(widest)).elements()) widest = i;
  }
  return {in.types[widest]};
}

inline std::vector<ValueType> infer_add(const OpInputs& in) {
  in.expect_count(2);
  const std::int64_t a = in.shape(0).elements(), b = in.shape(1).elements();
  if (in.dtype(0) != in.dtype(1) || (in.shape(0) != in.shape(1) && a != 1 && b != 1)) {
    in.fail("cannot add " + in.types[0].str() + " and " + in.types[1].str());
  }
  return infer_wider(in);
}

inline std::vector<ValueType> infer_declared(const OpInputs& in) {
  return {{in.attributes.get<DType>("dtype"), Shape(in.attributes.get<Items>("shape"))}};
}

inline std::vector<ValueType> infer_scalar(const OpInputs& in) {
  return {{in.types[0].dtype, Shape{}}};
}

inline float at(const TensorView& view, std::int64_t i) {
  return view.as<float>()[view.shape.elements() == 1 ? 0 : i];
}

/// A kernel that computes y = f(x) or y = f(x0, x1), element by element.
template <typename F>
KernelFunction each(F f) {
  return [f](const Node& node, const KernelCall& call) {
    for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) {
      if constexpr (std::is_invocable_v<F, const Node&, float, float>) {
        call.outputs[0].as<float>()[i] = f(node, at(call.inputs[0], i), at(call.inputs[1], i));
      } else {
        call.outputs[0].as<float>()[i] = f(node, at(call.inputs[0], i));
      }
    }
  };
}

inline double number(const Node& node, const char* name) {
  return node.attributes().get<double>(name);
}

inline float unary(const std::string& op, float x, double number) {
  if (op == "relu") return x > 0 ? x : 0;
  if (op == "leaky_relu") return x > 0 ? x : float(number) * x;
  if (op == "scale") return x * float(number);
  if (op == "square") return x * x;
  return std::tanh(x);
}

inline void run_fused(const Node& node, const KernelCall& call) {
  const std::vector<FusedStep> steps =
      parse_fused_program(node.attributes().get<std::string>("program"));
  for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) {
    std::vector<float> results;
    for (const FusedStep& step : steps) {
      std::vector<float> x;
      for (const FusedOperand& operand : step.operands) {
        const auto k = std::size_t(operand.index);
        const bool is_input = operand.kind == FusedOperand::Kind::kInput;
        x.push_back(is_input ? at(call.inputs[k], i) : results[k]);
      }
      if (step.op == "add") results.push_back(x[0] + x[1]);
      if (step.op == "mul") results.push_back(x[0] * x[1]);
      if (step.op == "relu_grad") results.push_back(x[1] > 0 ? x[0] : 0);
      if (x.size() == 1) results.push_back(unary(step.op, x[0], step.number));
    }
    call.outputs[0].as<float>()[i] = results.back();
  }
}

inline void run_lookup(const Node&, const KernelCall& call) {
  const std::int64_t width = call.inputs[0].shape[1];
  for (std::int64_t r = 0; r < call.inputs[1].shape.elements(); ++r) {
    const std::int64_t id = call.inputs[1].as<std::int32_t>()[r];
    for (std::int64_t c = 0; c < width; ++c) {
      call.outputs[0].as<float>()[r * width + c] = call.inputs[0].as<float>()[id * width + c];
    }
  }
}

inline void run_scatter(const Node&, const KernelCall& call) {
  const std::int64_t width = call.outputs[0].shape[1];
  for (std::int64_t r = 0; r < call.inputs[0].shape.elements(); ++r) {
    const std::int64_t id = call.inputs[0].as<std::int32_t>()[r];
    for (std::int64_t c = 0; c < width; ++c) {
      call.outputs[0].as<float>()[id * width + c] += call.inputs[1].as<float>()[r * width + c];
    }
  }
}

inline void run_concat(const Node&, const KernelCall& call) {
  auto* out = call.outputs[0].as<std::byte>();
  for (const TensorView& part : call.inputs) {
    out = std::copy_n(part.as<std::byte>(), part.bytes(), out);
  }
}

inline void run_sum(const Node&, const KernelCall& call) {
  for (std::int64_t i = 0; i < call.inputs[0].shape.elements(); ++i) {
    *call.outputs[0].as<float>() += call.inputs[0].as<float>()[i];
  }
}

inline void add_sources(OpRegistry& ops) {
  for (const char* name : {"input", "variable", "local"}) ops.add(make(name, infer_declared, {}));
  const auto infer = [](const OpInputs& in) -> std::vector<ValueType> {
    const Tensor& value = in.attributes.get<Tensor>("value");
    return {{value.dtype(), value.shape()}};
  };
  ops.add(make("constant", infer, {}));
}

inline void add_elementwise(OpRegistry& ops) {
  using Gradients = std::vector<Gradient>;
  const auto g = [](Value v) { return Gradient(v); };
  const auto apply = [](const char* op, std::initializer_list<Value> in, Attributes a = {}) {
    return in.begin()->graph().apply(op, in, std::move(a));
  };
  ops.add(make("add", infer_add, each([](const Node&, float a, float b) { return a + b; }),
               [=](const Node&, auto dy) {
                 return Gradients{g(dy[0]), g(dy[0])};
               }));
  ops.add(make("mul", infer_add, each([](const Node&, float a, float b) { return a * b; }),
               [=](const Node& n, auto dy) {
                 return Gradients{g(apply("mul", {dy[0], n.input(1)})),
                                  g(apply("mul", {dy[0], n.input(0)}))};
               }));
  ops.add(make("maximum", infer_add,
               each([](const Node&, float a, float b) { return std::max(a, b); })));
  ops.add(make("minimum", infer_add,
               each([](const Node&, float a, float b) { return std::min(a, b); })));
  ops.add(make("relu_grad", infer_first,
               each([](const Node&, float dy, float y) { return y > 0 ? dy : 0; })));
  ops.add(make("relu", infer_first, each([](const Node&, float x) { return x > 0 ? x : 0; }),
               [=](const Node& n, auto dy) {
                 return Gradients{g(apply("relu_grad", {dy[0], n.output(0)}))};
               }));
  ops.add(make("scale", infer_first,
               each([](const Node& n, float x) { return unary("scale", x, number(n, "factor")); }),
               [=](const Node& n, auto dy) {
                 return Gradients{g(apply("scale", {dy[0]}, n.attributes()))};
               }));
  ops.add(make("square", infer_first, each([](const Node&, float x) { return x * x; }),
               [=](const Node& n, auto dy) {
                 const Value twice = apply("scale", {n.input(0)}, {{"factor", 2.0}});
                 return Gradients{g(apply("mul", {dy[0], twice}))};
               }));
  ops.add(make("tanh", infer_first, each([](const Node&, float x) { return std::tanh(x); })));
  ops.add(make("leaky_relu", infer_first, each([](const Node& n, float x) {
                 return unary("leaky_relu", x, number(n, "slope"));
               })));
}

/// Adds bias, whose b has the shape (n), and the fused ops.
inline void add_fused(OpRegistry& ops) {
  const auto run = [](const Node& node, const KernelCall& call) {
    const Attributes& attributes = node.attributes();
    const std::int64_t columns = call.inputs[1].shape[0];
    for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) {
      float& y = call.outputs[0].as<float>()[i];
      y = at(call.inputs[0], i) + call.inputs[1].as<float>()[i % columns];
      if (!attributes.has("activation")) continue;
      y = unary(attributes.get<std::string>("activation"), y, number(node, "slope"));
    }
  };
  ops.add(make("bias", infer_first, run));
  ops.add(make("bias_activation", infer_first, run));
  ops.add(make("fused_elementwise", infer_wider, run_fused));
}

inline void add_rows(OpRegistry& ops) {
  const auto lookup = [](const OpInputs& in) -> std::vector<ValueType> {
    return {{in.dtype(0), Shape{in.shape(1)[0], in.shape(0)[1]}}};
  };
  ops.add(make("embedding_lookup", lookup, run_lookup, [](const Node& n, auto dy) {
    return std::vector<Gradient>{{n.input(1), dy[0]}, {}};
  }));
  const auto scatter = [](const OpInputs& in) -> std::vector<ValueType> {
    return {{in.dtype(1), Shape{in.attributes.get<std::int64_t>("rows"), in.shape(1)[1]}}};
  };
  ops.add(make("scatter_rows", scatter, run_scatter));
  const auto concat = [](const OpInputs& in) -> std::vector<ValueType> {
    Items dims(in.shape(0).dims().begin(), in.shape(0).dims().end());
    for (std::size_t i = 1; i < in.types.size(); ++i) dims[0] += in.shape(int(i))[0];
    return {{in.dtype(0), Shape(dims)}};
  };
  ops.add(make("concat", concat, run_concat));
  const auto sums = [](const OpInputs& in) -> std::vector<ValueType> {
    in.attributes.get<std::int64_t>("table_rows");
    return {in.types[0], in.types[1], {DType::kInt32, Shape{}}};
  };
  ops.add(make("sum_rows", sums, {}));
}

inline void add_others(OpRegistry& ops) {
  // The gradient dy goes to every element: `x` times zero, plus dy.
  ops.add(make("reduce_sum", infer_scalar, run_sum, [](const Node& n, auto dy) {
    Graph& graph = n.graph();
    const Value zeros = graph.apply("scale", {n.input(0)}, {{"factor", 0.0}});
    return std::vector<Gradient>{graph.apply("add", {zeros, dy[0]})};
  }));
  ops.add(make("global_norm", infer_scalar, {}));
  ops.add(make("floor", infer_first, each([](const Node&, float x) { return std::floor(x); })));
  const auto largest = [](const OpInputs&) -> std::vector<ValueType> {
    return {{DType::kInt32, Shape{}}};
  };
  ops.add(make("arg_max", largest, {}));
  // Two outputs, x and 2x. The gradient of an output that nobody reads counts as zero.
  const auto twins = [](const OpInputs& in) { return std::vector{in.types[0], in.types[0]}; };
  const auto run_twins = [](const Node&, const KernelCall& call) {
    for (std::int64_t i = 0; i < call.inputs[0].shape.elements(); ++i) {
      call.outputs[0].as<float>()[i] = at(call.inputs[0], i);
      call.outputs[1].as<float>()[i] = 2 * at(call.inputs[0], i);
    }
  };
  ops.add(make("twins", twins, run_twins, [](const Node& n, auto dy) {
    Value sum = dy[0];
    if (dy[1]) {
      const Value twice = n.graph().apply("scale", {dy[1]}, {{"factor", 2.0}});
      sum = sum ? n.graph().apply("add", {sum, twice}) : twice;
    }
    return std::vector<Gradient>{sum};
  }));
  Op random = make("random", infer_declared, {});
  random.stateful = true;
  ops.add(std::move(random));
}

inline OpRegistry all() {
  OpRegistry ops;
  add_sources(ops);
  add_elementwise(ops);
  add_fused(ops);
  add_rows(ops);
  add_others(ops);
  return ops;
}

using Feeds = std::map<std::string, Tensor>;

inline std::vector<Tensor> run_node(const Node& node, std::span<const Tensor> inputs) {
  std::vector<TensorView> in, out;
  std::vector<Tensor> outputs;
  for (const Tensor& tensor : inputs) in.push_back(tensor.view());
  for (const ValueType& type : node.outputs()) outputs.emplace_back(type.dtype, type.shape);
  for (const Tensor& tensor : outputs) out.push_back(tensor.view());
  node.op().kernel(node, {in, out, {}, {}});
  return outputs;
}

/// Computes a value; `feeds` has the nodes without kernels, by name.
inline Tensor evaluate(Value value, const Feeds& feeds) {
  const Node& node = value.node();
  if (is_constant(node)) return node.attributes().get<Tensor>("value");
  if (!node.op().kernel) return feeds.at(node.name());
  std::vector<Tensor> inputs;
  for (const Value& input : node.inputs()) inputs.push_back(evaluate(input, feeds));
  return run_node(node, inputs)[std::size_t(value.output())];
}

inline std::vector<float> floats(const Tensor& tensor) {
  const auto data = tensor.data<float>();
  return {data.begin(), data.end()};
}

}  // namespace paceline::small_ops
