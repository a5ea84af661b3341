// The arithmetic of one step of a fused program, for one element.
#pragma once

#include <cmath>
#include <string>

#include "base/check.h"
#include "graph/fused_program.h"
#include "kernels/ranking.h"

namespace paceline {

/// Returns the result of the step for its operands; ignores operands that the step does not have.
template <typename T>
T fused_step(const FusedStep& step, T a, T b, T c) {
  const std::string& op = step.op;
  const T number = T(step.number);
  if (op == "add") return a + b;
  if (op == "sub") return a - b;
  if (op == "mul") return a * b;
  if (op == "div") return a / b;
  if (op == "scale") return a * number;
  if (op == "relu") return a < 0 ? T(0) : a;
  if (op == "leaky_relu") return a < 0 ? number * a : a;
  if (op == "sigmoid") return 1 / (1 + std::exp(-a));
  if (op == "tanh") return std::tanh(a);
  if (op == "exp") return std::exp(a);
  if (op == "log") return std::log(a);
  if (op == "sqrt") return std::sqrt(a);
  if (op == "square") return a * a;
  if (op == "abs") return std::abs(a);
  if (op == "sign") return sign_of(a);
  if (op == "erf") return std::erf(a);
  if (op == "maximum") return larger(a, b);
  if (op == "minimum") return smaller(a, b);
  if (op == "pow") return std::pow(a, b);
  if (op == "greater") return T(a > b);
  if (op == "greater_equal") return T(a >= b);
  if (op == "equal") return T(a == b);
  if (op == "where") return a != 0 ? b : c;
  if (op == "relu_grad") return b > 0 ? a : T(0);
  if (op == "leaky_relu_grad") return b < 0 ? number * a : a;
  if (op == "sigmoid_grad") return a * b * (1 - b);
  PACELINE_CHECK(op == "tanh_grad");
  return a * (1 - b * b);
}

}  // namespace paceline
