#include "ops/scalar.h"

#include <fmt/format.h>

#include "graph/open_graph.h"
#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline {

// Refuses a number that stands for an open dimension: a constant cannot take the size later.
Value scalar_like(Value x, double number) {
  if (const auto open = open_number(number)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[graph] {} stands for the open dimension {}: shapes and factors of "
                            "scale take it, such as 1.0 / {}",
                            number, dimension_text(*open), dimension_text(*open)));
  }
  const bool wide = x.dtype() == DType::kFloat64;
  return x.graph().constant(wide ? Tensor::scalar(number) : Tensor::scalar(float(number)));
}

Value operator+(Value x, double number) { return add(x, scalar_like(x, number)); }
Value operator+(double number, Value x) { return add(scalar_like(x, number), x); }
Value operator-(Value x, double number) { return sub(x, scalar_like(x, number)); }
Value operator-(double number, Value x) { return sub(scalar_like(x, number), x); }
Value operator/(Value x, double number) {
  return open_number(number) ? scale(x, 1 / number) : div(x, scalar_like(x, number));
}
Value operator/(double number, Value x) { return div(scalar_like(x, number), x); }
Value maximum(Value x, double number) { return maximum(x, scalar_like(x, number)); }
Value minimum(Value x, double number) { return minimum(x, scalar_like(x, number)); }
Value greater(Value x, double number) { return greater(x, scalar_like(x, number)); }
Value less(Value x, double number) { return less(x, scalar_like(x, number)); }

Value pow(Value x, double exponent) {
  return exponent == 2 ? square(x) : pow(x, scalar_like(x, exponent));
}

Value clip(Value x, double low, double high) {
  if (!(low <= high)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[clip] cannot clip {} between {} and {}: the first must not be above "
                            "the second",
                            x.type().str(), low, high));
  }
  return minimum(maximum(x, low), high);
}

}  // namespace paceline
