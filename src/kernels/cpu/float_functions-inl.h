// exp, log, sigmoid, tanh and erf of vectors of float32. A file that includes this one after
// <hwy/foreach_target.h> compiles them once for each instruction set. On every instruction set a
// result is within 2 ulp of the exact one (vector_math_test.cc). The largest errors measured, in
// ulp, are 1.05 for exp (over all float32), and 1.98 for sigmoid, 1.46 for tanh and 0.83 for log
// (over all float32 where the function is not flat, with FMA and without). Subnormals are kept,
// unless the thread takes them for zero, as threads that run kernels do (base/denormals.h).
// Infinities and zeros give what the standard functions give. NaN stays NaN, so a diverged run
// shows.
//
// After Cody & Waite, "Software Manual for the Elementary Functions", 1980: the argument is reduced
// to a short interval, where a polynomial (minimax for the error in ulp) is exact enough.
#if defined(PACELINE_KERNELS_CPU_FLOAT_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PACELINE_KERNELS_CPU_FLOAT_FUNCTIONS_INL_H_
#undef PACELINE_KERNELS_CPU_FLOAT_FUNCTIONS_INL_H_
#else
#define PACELINE_KERNELS_CPU_FLOAT_FUNCTIONS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Returns c0 + x (c1 + x (c2 + …)).
template <class D, class V>
HWY_INLINE V polynomial(D d, V, float last) {
  return hn::Set(d, last);
}
template <class D, class V, typename... Floats>
HWY_INLINE V polynomial(D d, V x, float first, Floats... others) {
  return hn::MulAdd(polynomial(d, x, others...), x, hn::Set(d, first));
}

template <class D>
using IntegersOf = hn::RebindToSigned<D>;

/// Returns 2^k, where 2^k is a normal float.
template <class D, class K>
HWY_INLINE hn::Vec<D> power_of_two(D d, K k) {
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k, hn::Set(IntegersOf<D>(), 127))));
}

// ln 2 in two parts: the product of the first with a small integer is exact, even without FMA.
constexpr float kLn2High = 0.693359375f;
constexpr float kLn2Low = -2.12194440e-4f;

/// The parts of e^x = 2^k · y, with y from √½ to √2.
template <class D>
struct PowerParts {
  hn::Vec<IntegersOf<D>> k;
  hn::Vec<D> y;
};
template <class D, class V>
HWY_INLINE PowerParts<D> parts_of_exp(D d, V x) {
  const auto k = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504f)));
  const V whole = hn::ConvertTo(d, k);
  V r = hn::NegMulAdd(whole, hn::Set(d, kLn2High), x);
  r = hn::NegMulAdd(whole, hn::Set(d, kLn2Low), r);
  const V above =
      polynomial(d, r, 0.5f, 0.166665182f, 0.0416662022f, 0.00836902484f, 0.00139507256f);
  return {k, hn::Add(hn::MulAdd(hn::Mul(r, r), above, r), hn::Set(d, 1.0f))};
}

template <class D, class V>
HWY_INLINE V exp_of(D d, V x) {
  // Beyond these bounds the result is 0 or infinity. Both comparisons are false for NaN, so NaN
  // stays NaN.
  const V most = hn::Set(d, 89.0f), least = hn::Set(d, -104.0f);
  x = hn::IfThenElse(hn::Gt(x, most), most, x);
  x = hn::IfThenElse(hn::Lt(x, least), least, x);
  const PowerParts<D> parts = parts_of_exp(d, x);
  // Multiplies by 2^k in two steps, the last of which may round to a subnormal or overflow.
  const auto half = hn::ShiftRight<1>(parts.k);
  return hn::Mul(hn::Mul(parts.y, power_of_two(d, half)), power_of_two(d, hn::Sub(parts.k, half)));
}

/// Computes exp_of for x ≤ 0 with two thirds of its instructions; returns 0 where e^x is not a
/// normal float.
template <class D, class V>
HWY_INLINE V exp_of_negative(D d, V x) {
  const PowerParts<D> parts = parts_of_exp(d, x);
  const V y = hn::Mul(parts.y, power_of_two(d, parts.k));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.33654f)), y);  // NaN passes through
}

/// Returns 1 / (1 + e^-x), computed from e^-|x|, which cannot overflow.
template <class D, class V>
HWY_INLINE V sigmoid_of(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V e = exp_of(d, hn::Neg(hn::Abs(x))), sum = hn::Add(one, e);
  const V lost = hn::Sub(e, hn::Sub(sum, one));  // the rounding error of the sum
  const V y = hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), sum);
  return hn::NegMulAdd(y, lost, y);
}

/// Returns tanh x. Uses a polynomial near zero, else 1 − 2 e / (1 + e) with e = e^-2|x| and the
/// sign of x.
template <class D, class V>
HWY_INLINE V tanh_of(D d, V x) {
  const V one = hn::Set(d, 1.0f), z = hn::Abs(x);
  const V square = hn::Mul(x, x);
  const V bend = polynomial(d, square, -0.333332717f, 0.133311525f, -0.0537141077f, 0.0205517188f,
                            -0.00560391415f);
  const V near = hn::MulAdd(hn::Mul(square, z), bend, z);
  const V e = exp_of_negative(d, hn::Mul(z, hn::Set(d, -2.0f)));
  const V far = hn::Sub(one, hn::Div(hn::Add(e, e), hn::Add(one, e)));
  return hn::CopySignToAbs(hn::IfThenElse(hn::Lt(z, hn::Set(d, 0.625f)), near, far), x);
}

/// Returns erf x. Uses x·(1 + P(x²)) near zero, else 1 − e^−Q(|x|) with the sign of x.
template <class D, class V>
HWY_INLINE V erf_of(D d, V x) {
  const V t = hn::Abs(x), square = hn::Mul(x, x);
  const V bend = polynomial(d, square, 0.128379166f, -0.376125336f, 0.112819925f, -0.0267681349f,
                            0.00499119423f, -5.96761703e-4f);
  // bend·x + x would lose digits: the product alone may be a denormal where the sum is not.
  const V near = hn::Mul(hn::Add(bend, hn::Set(d, 1.0f)), x);
  const V q = polynomial(d, t, -0.128717512f, -0.634846687f, -0.106777877f, 0.0242546219f,
                         -0.00388396438f, 3.83197126e-4f, -1.7285347e-5f);
  const V far =
      hn::Sub(hn::Set(d, 1.0f), exp_of_negative(d, hn::NegMulAdd(t, hn::Neg(q), hn::Neg(t))));
  return hn::IfThenElse(hn::Gt(t, hn::Set(d, 0.927734375f)), hn::CopySignToAbs(far, x), near);
}

/// Returns ln x, computed as e ln 2 + ln m, with √½ ≤ m < √2.
template <class D, class V>
HWY_INLINE V log_of(D d, V x) {
  const IntegersOf<D> di;
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto tiny = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  const auto bits = hn::BitCast(di, hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 0x1p25f)), x));
  // The bits of √½. Subtracting them before taking the exponent makes the mantissa begin at √½.
  const auto root = hn::Set(di, 0x3f3504f3);
  const auto e = hn::ShiftRight<23>(hn::Sub(bits, root));
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(e)));
  const V exponent = hn::Sub(hn::ConvertTo(d, e), hn::IfThenElseZero(tiny, hn::Set(d, 25.0f)));
  const V f = hn::Sub(m, hn::Set(d, 1.0f)), square = hn::Mul(f, f);
  const V bend =
      polynomial(d, f, 0.333333105f, -0.249999851f, 0.200022697f, -0.166693643f, 0.142177731f,
                 -0.123817071f, 0.118774466f, -0.118082404f, 0.0692726895f);
  V low = hn::MulAdd(exponent, hn::Set(d, kLn2Low), hn::Mul(hn::Mul(square, f), bend));
  low = hn::NegMulAdd(hn::Set(d, 0.5f), square, low);
  const V y = hn::MulAdd(exponent, hn::Set(d, kLn2High), hn::Add(f, low));
  // For arguments that are not above zero: −infinity at zero, NaN below. NaN and infinity stay.
  const V zero = hn::Zero(d);
  const V beyond = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity),
                                  hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
  return hn::IfThenElse(hn::Gt(x, zero), hn::IfThenElse(hn::Eq(x, infinity), x, y), beyond);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#endif
