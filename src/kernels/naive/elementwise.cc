// Element-wise ops: y (…) = f(x (…)), and z = f(a, b) with NumPy broadcasting.
#include <cmath>

#include "kernels/naive/broadcast_index.h"
#include "kernels/naive/naive_kernels.h"
#include "kernels/ranking.h"

namespace paceline {

namespace {

// One function object for each op; made from the node's attributes.
struct Scale {
  explicit Scale(const Node& node) : factor(node.attributes().get<double>("factor")) {}
  template <typename T>
  T operator()(T x) const {
    return x * T(factor);
  }
  double factor;
};

struct LeakyRelu {
  explicit LeakyRelu(const Node& node) : slope(node.attributes().get<double>("slope")) {}
  template <typename T>
  T operator()(T x) const {
    return x < 0 ? T(slope) * x : x;
  }
  template <typename T>
  T operator()(T dy, T x) const {
    return x < 0 ? T(slope) * dy : dy;
  }
  double slope;
};

template <typename F>
struct Plain : F {
  explicit Plain(const Node&) : F{} {}
};

/// Computes y = f(x).
template <typename T, typename F>
void run_unary(const Node& node, const KernelCall& call) {
  const F f(node);
  const T* x = call.inputs[0].as<T>();
  T* y = call.outputs[0].as<T>();
  for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) y[i] = f(x[i]);
}

/// Computes z = f(a, b).
template <typename T, typename F>
void run_binary(const Node& node, const KernelCall& call) {
  const F f(node);
  const TensorView& a = call.inputs[0];
  const TensorView& b = call.inputs[1];
  const Shape& shape = call.outputs[0].shape;
  T* z = call.outputs[0].as<T>();
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    z[i] = f(a.as<T>()[broadcast_index(i, shape, a.shape)],
             b.as<T>()[broadcast_index(i, shape, b.shape)]);
  }
}

/// Computes z = a where c is not zero, else b; each input has the output's shape or one element.
template <typename T>
struct Where {
  static void run(const Node&, const KernelCall& call) {
    const auto at = [&](std::size_t input, std::int64_t i) {
      const TensorView& view = call.inputs[input];
      return view.as<T>()[view.shape.elements() == 1 ? 0 : i];
    };
    for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) {
      call.outputs[0].as<T>()[i] = at(0, i) != 0 ? at(1, i) : at(2, i);
    }
  }
};

using Run = PlainKernel::Function;

std::unique_ptr<Kernel> choose(const Node& node, Run of_float, Run of_double) {
  const DType dtype = node.outputs()[0].dtype;
  if (dtype == DType::kFloat32) return std::make_unique<PlainKernel>(node, of_float);
  if (dtype == DType::kFloat64) return std::make_unique<PlainKernel>(node, of_double);
  return nullptr;
}

template <typename F>
std::unique_ptr<Kernel> make_unary(const Node& node, ThreadPool&) {
  return choose(node, &run_unary<float, F>, &run_unary<double, F>);
}

template <typename F>
std::unique_ptr<Kernel> make_binary(const Node& node, ThreadPool&) {
  return choose(node, &run_binary<float, F>, &run_binary<double, F>);
}

template <typename F>
void add_unary(KernelTable& table, const char* op, F) {
  table.add(op, &make_unary<Plain<F>>);
}

template <typename F>
void add_binary(KernelTable& table, const char* op, F) {
  table.add(op, &make_binary<Plain<F>>);
}

/// Adds b (n) to x (…,n) as `add` does, then applies the activation.
template <typename T>
struct BiasActivation {
  static T activate(const std::string& name, const Node& node, T x) {
    if (name == "relu") return x < 0 ? T(0) : x;
    if (name == "sigmoid") return 1 / (1 + std::exp(-x));
    if (name == "tanh") return std::tanh(x);
    return LeakyRelu(node)(x);
  }
  static void run(const Node& node, const KernelCall& call) {
    const std::string& name = node.attributes().get<std::string>("activation");
    const std::int64_t columns = call.inputs[1].shape[0];
    const T* x = call.inputs[0].as<T>();
    const T* b = call.inputs[1].as<T>();
    T* y = call.outputs[0].as<T>();
    for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) {
      y[i] = activate(name, node, x[i] + b[i % columns]);
    }
  }
};

}  // namespace

void add_naive_elementwise_kernels(KernelTable& table) {
  add_binary(table, "add", [](auto a, auto b) { return a + b; });
  add_binary(table, "sub", [](auto a, auto b) { return a - b; });
  add_binary(table, "mul", [](auto a, auto b) { return a * b; });
  add_binary(table, "div", [](auto a, auto b) { return a / b; });
  add_binary(table, "bias", [](auto a, auto b) { return a + b; });
  table.add("bias_activation", &make_naive_kernel_of<BiasActivation>);

  table.add("scale", &make_unary<Scale>);
  table.add("leaky_relu", &make_unary<LeakyRelu>);
  add_unary(table, "relu", [](auto x) { return x < 0 ? decltype(x)(0) : x; });
  add_unary(table, "sigmoid", [](auto x) { return 1 / (1 + std::exp(-x)); });
  add_unary(table, "tanh", [](auto x) { return std::tanh(x); });
  add_unary(table, "exp", [](auto x) { return std::exp(x); });
  add_unary(table, "log", [](auto x) { return std::log(x); });
  add_unary(table, "sqrt", [](auto x) { return std::sqrt(x); });
  add_unary(table, "square", [](auto x) { return x * x; });
  add_unary(table, "abs", [](auto x) { return std::abs(x); });
  add_unary(table, "sign", [](auto x) { return sign_of(x); });
  add_unary(table, "erf", [](auto x) { return std::erf(x); });

  add_binary(table, "maximum", [](auto a, auto b) { return larger(a, b); });
  add_binary(table, "minimum", [](auto a, auto b) { return smaller(a, b); });
  add_binary(table, "pow", [](auto a, auto b) { return std::pow(a, b); });
  add_binary(table, "greater", [](auto a, auto b) { return decltype(a)(a > b); });
  add_binary(table, "greater_equal", [](auto a, auto b) { return decltype(a)(a >= b); });
  add_binary(table, "equal", [](auto a, auto b) { return decltype(a)(a == b); });
  table.add("where", &make_naive_kernel_of<Where>);

  table.add("leaky_relu_grad", &make_binary<LeakyRelu>);
  add_binary(table, "relu_grad", [](auto dy, auto y) { return y > 0 ? dy : decltype(dy)(0); });
  add_binary(table, "sigmoid_grad", [](auto dy, auto y) { return dy * y * (1 - y); });
  add_binary(table, "tanh_grad", [](auto dy, auto y) { return dy * (1 - y * y); });
}

}  // namespace paceline
