// Element-wise functions and sums of contiguous float32, vectorised for the machine that runs them
// (Highway, dynamic dispatch). An element's result does not depend on its place in the range.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "paceline/graph.h"

namespace paceline {

enum class UnaryFunction : std::uint8_t {
  kScale,
  kRelu,
  kLeakyRelu,
  kSigmoid,
  kTanh,
  kExp,
  kLog,
  kSqrt,
  kSquare,
  kAbs,
  kSign,
  kErf,
};
enum class BinaryFunction : std::uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kReluGrad,
  kLeakyReluGrad,
  kSigmoidGrad,
  kTanhGrad,
  kMaximum,
  kMinimum,
  kPow,
  kGreater,
  kGreaterEqual,
  kEqual,
};

/// Returns the function of the op with this name, if there is one.
std::optional<UnaryFunction> unary_function(std::string_view op);
std::optional<BinaryFunction> binary_function(std::string_view op);
/// Returns the attribute "factor" or "slope"; 0 if there is neither.
float function_parameter(const Attributes& attributes);

/// An operand of n elements, or one element repeated n times.
struct VectorOperand {
  const float* data = nullptr;
  bool repeats = false;
};

/// Computes y[i] = f(x[i]) for i in [0, n). y may be x.
void vector_unary(UnaryFunction f, float parameter, const float* x, float* y, std::int64_t n);
/// Computes z[i] = f(a[i], b[i]). z may be a or b.
void vector_binary(BinaryFunction f, float parameter, VectorOperand a, VectorOperand b, float* z,
                   std::int64_t n);
/// Computes z[i] = a[i] where condition[i] is not zero, else b[i]. z may be one of the operands.
void vector_where(VectorOperand condition, VectorOperand a, VectorOperand b, float* z,
                  std::int64_t n);
double vector_sum(const float* x, std::int64_t n);
/// Returns the largest of n > 0 elements; NaN if one of them is NaN.
float vector_max(const float* x, std::int64_t n);
/// Returns the position of the largest of n > 0 elements, the first of equals; 0 if x[0] is NaN. A
/// NaN elsewhere is never the largest.
std::int64_t vector_arg_max(const float* x, std::int64_t n);
/// Computes y[i] = max(y[i], x[i]); NaN if one of them is NaN.
void vector_max_into(const float* x, float* y, std::int64_t n);

}  // namespace paceline
