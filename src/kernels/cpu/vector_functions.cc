#include <iterator>

#include "kernels/cpu/vector_math.h"

namespace paceline {

namespace {

// Names in the order of the enumerations.
constexpr std::string_view kUnaryOps[] = {"scale", "relu", "leaky_relu", "sigmoid", "tanh", "exp",
                                          "log",   "sqrt", "square",     "abs",     "sign", "erf"};
constexpr std::string_view kBinaryOps[] = {
    "add",       "sub",     "mul",     "div", "relu_grad", "leaky_relu_grad", "sigmoid_grad",
    "tanh_grad", "maximum", "minimum", "pow", "greater",   "greater_equal",   "equal"};

template <typename F, std::size_t n>
std::optional<F> position_in(const std::string_view (&ops)[n], std::string_view op) {
  for (std::size_t i = 0; i < n; ++i) {
    if (ops[i] == op) return F(i);
  }
  return std::nullopt;
}

}  // namespace

std::optional<UnaryFunction> unary_function(std::string_view op) {
  return position_in<UnaryFunction>(kUnaryOps, op);
}

std::optional<BinaryFunction> binary_function(std::string_view op) {
  return position_in<BinaryFunction>(kBinaryOps, op);
}

float function_parameter(const Attributes& attributes) {
  for (const char* name : {"factor", "slope"}) {
    if (attributes.has(name)) return float(attributes.get<double>(name));
  }
  return 0;
}

}  // namespace paceline
