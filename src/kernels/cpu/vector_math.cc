// exp, log, sigmoid, tanh and erf are our own (float_functions-inl.h). Highway 1.0.3 is off by up
// to 2.6 ulp in tanh, and promises nothing about NaN or about arguments beyond its range.
#include "kernels/cpu/vector_math.h"

#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_math.cc"
#include <hwy/foreach_target.h>  // must precede the code that Highway compiles for each target

#include <hwy/highway.h>

#include "kernels/cpu/float_functions-inl.h"
#include "kernels/ranking.h"

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

/// Loads the first n < lanes elements, followed by zeros.
HWY_INLINE Vector load_some(Tag d, const float* x, std::size_t n) {
  HWY_ALIGN float lanes[hn::MaxLanes(d)] = {};
  std::memcpy(lanes, x, n * sizeof(float));
  return hn::Load(d, lanes);
}

HWY_INLINE void store_some(Tag d, Vector v, float* y, std::size_t n) {
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  std::memcpy(y, lanes, n * sizeof(float));
}

struct Scale {
  Vector factor;
  HWY_INLINE Vector operator()(Tag, Vector x) const { return hn::Mul(x, factor); }
};
struct Relu {
  HWY_INLINE Vector operator()(Tag d, Vector x) const {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  }
};
struct LeakyRelu {
  Vector slope;
  HWY_INLINE Vector operator()(Tag d, Vector x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(slope, x), x);
  }
  HWY_INLINE Vector operator()(Tag d, Vector dy, Vector x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(slope, dy), dy);
  }
};
struct Sigmoid {
  HWY_INLINE Vector operator()(Tag d, Vector x) const { return sigmoid_of(d, x); }
};
struct Tanh {
  HWY_INLINE Vector operator()(Tag d, Vector x) const { return tanh_of(d, x); }
};
struct Exp {
  HWY_INLINE Vector operator()(Tag d, Vector x) const { return exp_of(d, x); }
};
struct Log {
  HWY_INLINE Vector operator()(Tag d, Vector x) const { return log_of(d, x); }
};
struct Sqrt {
  HWY_INLINE Vector operator()(Tag, Vector x) const { return hn::Sqrt(x); }
};
struct Square {
  HWY_INLINE Vector operator()(Tag, Vector x) const { return hn::Mul(x, x); }
};
struct Abs {
  HWY_INLINE Vector operator()(Tag, Vector x) const { return hn::Abs(x); }
};
struct Sign {
  HWY_INLINE Vector operator()(Tag d, Vector x) const {
    const Vector below = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, -1.0f), x);
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1.0f), below);
  }
};
struct Erf {
  HWY_INLINE Vector operator()(Tag d, Vector x) const { return erf_of(d, x); }
};

struct AddOf {
  HWY_INLINE Vector operator()(Tag, Vector a, Vector b) const { return hn::Add(a, b); }
};
struct SubOf {
  HWY_INLINE Vector operator()(Tag, Vector a, Vector b) const { return hn::Sub(a, b); }
};
struct MulOf {
  HWY_INLINE Vector operator()(Tag, Vector a, Vector b) const { return hn::Mul(a, b); }
};
struct DivOf {
  HWY_INLINE Vector operator()(Tag, Vector a, Vector b) const { return hn::Div(a, b); }
};
// hn::Max of NaN and a number returns either, depending on the instruction set.
struct MaxOf {
  HWY_INLINE Vector operator()(Tag, Vector a, Vector b) const {
    return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::Gt(a, b), a, b));
  }
};
struct MinOf {
  HWY_INLINE Vector operator()(Tag, Vector a, Vector b) const {
    return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::Lt(a, b), a, b));
  }
};
// Computes each lane with the standard function: e^(b ln a) in float would lose digits.
struct PowOf {
  HWY_INLINE Vector operator()(Tag d, Vector a, Vector b) const {
    HWY_ALIGN float bases[hn::MaxLanes(d)], exponents[hn::MaxLanes(d)];
    hn::Store(a, d, bases);
    hn::Store(b, d, exponents);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) bases[i] = std::pow(bases[i], exponents[i]);
    return hn::Load(d, bases);
  }
};
struct Greater {
  HWY_INLINE Vector operator()(Tag d, Vector a, Vector b) const {
    return hn::IfThenElseZero(hn::Gt(a, b), hn::Set(d, 1.0f));
  }
};
struct GreaterEqual {
  HWY_INLINE Vector operator()(Tag d, Vector a, Vector b) const {
    return hn::IfThenElseZero(hn::Ge(a, b), hn::Set(d, 1.0f));
  }
};
struct Equal {
  HWY_INLINE Vector operator()(Tag d, Vector a, Vector b) const {
    return hn::IfThenElseZero(hn::Eq(a, b), hn::Set(d, 1.0f));
  }
};
struct ReluGrad {
  HWY_INLINE Vector operator()(Tag d, Vector dy, Vector y) const {
    return hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), dy);
  }
};
struct SigmoidGrad {
  HWY_INLINE Vector operator()(Tag d, Vector dy, Vector y) const {
    return hn::Mul(hn::Mul(dy, y), hn::Sub(hn::Set(d, 1.0f), y));
  }
};
struct TanhGrad {
  HWY_INLINE Vector operator()(Tag d, Vector dy, Vector y) const {
    return hn::Mul(dy, hn::Sub(hn::Set(d, 1.0f), hn::Mul(y, y)));
  }
};

template <typename F>
HWY_INLINE void map(F f, const float* x, float* y, std::size_t n) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
  if (i < n) store_some(d, f(d, load_some(d, x + i, n - i)), y + i, n - i);
}

template <bool repeats_a, bool repeats_b, typename F>
HWY_INLINE void map_two(F f, const float* a, const float* b, float* z, std::size_t n) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  const Vector first_a = hn::Set(d, *a), first_b = hn::Set(d, *b);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vector of_a = repeats_a ? first_a : hn::LoadU(d, a + i);
    const Vector of_b = repeats_b ? first_b : hn::LoadU(d, b + i);
    hn::StoreU(f(d, of_a, of_b), d, z + i);
  }
  if (i == n) return;
  const Vector of_a = repeats_a ? first_a : load_some(d, a + i, n - i);
  const Vector of_b = repeats_b ? first_b : load_some(d, b + i, n - i);
  store_some(d, f(d, of_a, of_b), z + i, n - i);
}

template <typename F>
HWY_INLINE void map_operands(F f, VectorOperand a, VectorOperand b, float* z, std::size_t n) {
  if (n == 0) return;
  if (a.repeats && b.repeats) return map_two<true, true>(f, a.data, b.data, z, n);
  if (a.repeats) return map_two<true, false>(f, a.data, b.data, z, n);
  if (b.repeats) return map_two<false, true>(f, a.data, b.data, z, n);
  return map_two<false, false>(f, a.data, b.data, z, n);
}

void Unary(UnaryFunction f, float parameter, const float* x, float* y, std::size_t n) {
  const Tag d;
  switch (f) {
    case UnaryFunction::kScale:
      return map(Scale{hn::Set(d, parameter)}, x, y, n);
    case UnaryFunction::kRelu:
      return map(Relu{}, x, y, n);
    case UnaryFunction::kLeakyRelu:
      return map(LeakyRelu{hn::Set(d, parameter)}, x, y, n);
    case UnaryFunction::kSigmoid:
      return map(Sigmoid{}, x, y, n);
    case UnaryFunction::kTanh:
      return map(Tanh{}, x, y, n);
    case UnaryFunction::kExp:
      return map(Exp{}, x, y, n);
    case UnaryFunction::kLog:
      return map(Log{}, x, y, n);
    case UnaryFunction::kSqrt:
      return map(Sqrt{}, x, y, n);
    case UnaryFunction::kSquare:
      return map(Square{}, x, y, n);
    case UnaryFunction::kAbs:
      return map(Abs{}, x, y, n);
    case UnaryFunction::kSign:
      return map(Sign{}, x, y, n);
    case UnaryFunction::kErf:
      return map(Erf{}, x, y, n);
  }
}

void Binary(BinaryFunction f, float parameter, VectorOperand a, VectorOperand b, float* z,
            std::size_t n) {
  const Tag d;
  switch (f) {
    case BinaryFunction::kAdd:
      return map_operands(AddOf{}, a, b, z, n);
    case BinaryFunction::kSub:
      return map_operands(SubOf{}, a, b, z, n);
    case BinaryFunction::kMul:
      return map_operands(MulOf{}, a, b, z, n);
    case BinaryFunction::kDiv:
      return map_operands(DivOf{}, a, b, z, n);
    case BinaryFunction::kReluGrad:
      return map_operands(ReluGrad{}, a, b, z, n);
    case BinaryFunction::kLeakyReluGrad:
      return map_operands(LeakyRelu{hn::Set(d, parameter)}, a, b, z, n);
    case BinaryFunction::kSigmoidGrad:
      return map_operands(SigmoidGrad{}, a, b, z, n);
    case BinaryFunction::kTanhGrad:
      return map_operands(TanhGrad{}, a, b, z, n);
    case BinaryFunction::kMaximum:
      return map_operands(MaxOf{}, a, b, z, n);
    case BinaryFunction::kMinimum:
      return map_operands(MinOf{}, a, b, z, n);
    case BinaryFunction::kPow:
      return map_operands(PowOf{}, a, b, z, n);
    case BinaryFunction::kGreater:
      return map_operands(Greater{}, a, b, z, n);
    case BinaryFunction::kGreaterEqual:
      return map_operands(GreaterEqual{}, a, b, z, n);
    case BinaryFunction::kEqual:
      return map_operands(Equal{}, a, b, z, n);
  }
}

struct Operand {
  const float* data;
  bool repeats;
  Vector first;
  Operand(Tag d, VectorOperand x) : data(x.data), repeats(x.repeats), first(hn::Set(d, *x.data)) {}
  HWY_INLINE Vector load(Tag d, std::size_t i) const {
    return repeats ? first : hn::LoadU(d, data + i);
  }
  HWY_INLINE Vector load_rest(Tag d, std::size_t i, std::size_t n) const {
    return repeats ? first : load_some(d, data + i, n - i);
  }
};

HWY_INLINE Vector choose(Tag d, Vector condition, Vector a, Vector b) {
  return hn::IfThenElse(hn::Eq(condition, hn::Zero(d)), b, a);
}

void Where(VectorOperand condition, VectorOperand a, VectorOperand b, float* z, std::size_t n) {
  if (n == 0) return;
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  const Operand c(d, condition), x(d, a), y(d, b);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(choose(d, c.load(d, i), x.load(d, i), y.load(d, i)), d, z + i);
  }
  if (i == n) return;
  const Vector last = choose(d, c.load_rest(d, i, n), x.load_rest(d, i, n), y.load_rest(d, i, n));
  store_some(d, last, z + i, n - i);
}

// Sums short blocks in float lanes, and the sums of blocks in double. To the last digit of a float,
// this is as exact as a sum in double, at the speed of floats.
double Sum(const float* x, std::size_t n) {
  constexpr std::size_t kBlock = 512;
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  double sum = 0;
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t end = begin + kBlock < n ? begin + kBlock : n;
    Vector of_block = hn::Zero(d);
    std::size_t i = begin;
    for (; i + lanes <= end; i += lanes) of_block = hn::Add(of_block, hn::LoadU(d, x + i));
    if (i < end) of_block = hn::Add(of_block, load_some(d, x + i, end - i));
    sum += double(hn::GetLane(hn::SumOfLanes(d, of_block)));
  }
  return sum;
}

float Max(const float* x, std::size_t n) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  Vector most = hn::Set(d, x[0]);
  auto is_nan = hn::IsNaN(most);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vector v = hn::LoadU(d, x + i);
    most = hn::Max(most, v);
    is_nan = hn::Or(is_nan, hn::IsNaN(v));
  }
  if (!hn::AllFalse(d, is_nan)) return std::numeric_limits<float>::quiet_NaN();
  float result = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < n; ++i) result = larger(result, x[i]);
  return result;
}

// NaN compares greater than nothing, so NaN is never the largest, except in the first element: then
// nothing compares greater, and the result is 0.
std::size_t ArgMax(const float* x, std::size_t n) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  if (x[0] != x[0]) return 0;
  Vector most = hn::Set(d, x[0]);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vector v = hn::LoadU(d, x + i);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
  }
  float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  const Vector wanted = hn::Set(d, largest);
  for (i = 0; i + lanes <= n; i += lanes) {
    const auto equal = hn::Eq(hn::LoadU(d, x + i), wanted);
    if (!hn::AllFalse(d, equal)) break;
  }
  while (x[i] != largest) ++i;
  return i;
}

void MaxInto(const float* x, float* y, std::size_t n) {
  map_operands(MaxOf{}, {y, false}, {x, false}, y, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {

namespace {
HWY_EXPORT(Unary);
HWY_EXPORT(Binary);
HWY_EXPORT(Where);
HWY_EXPORT(Sum);
HWY_EXPORT(Max);
HWY_EXPORT(ArgMax);
HWY_EXPORT(MaxInto);
}  // namespace

void vector_unary(UnaryFunction f, float parameter, const float* x, float* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(Unary)(f, parameter, x, y, std::size_t(n));
}

void vector_binary(BinaryFunction f, float parameter, VectorOperand a, VectorOperand b, float* z,
                   std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(Binary)(f, parameter, a, b, z, std::size_t(n));
}

void vector_where(VectorOperand condition, VectorOperand a, VectorOperand b, float* z,
                  std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(Where)(condition, a, b, z, std::size_t(n));
}

double vector_sum(const float* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(Sum)(x, std::size_t(n));
}

float vector_max(const float* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(Max)(x, std::size_t(n));
}

std::int64_t vector_arg_max(const float* x, std::int64_t n) {
  return std::int64_t(HWY_DYNAMIC_DISPATCH(ArgMax)(x, std::size_t(n)));
}

void vector_max_into(const float* x, float* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(MaxInto)(x, y, std::size_t(n));
}

}  // namespace paceline
#endif  // HWY_ONCE
