#include "kernels/cpu/vector_cast.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_cast.cc"
#include <hwy/foreach_target.h>  // must precede the code that Highway compiles for each target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The words of 16-bit floats are computed in lanes of 32 bits. The code uses integer instructions,
// because those for bfloat16 flush subnormals, and those for float16 keep a NaN's payload.
template <class D>
using Words = hn::Rebind<std::uint32_t, D>;

template <class D>
HWY_INLINE hn::Vec<D> constant(D d, std::uint32_t word) {
  return hn::Set(d, word);
}

struct ToBFloat16 {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V word) const {
    const V high = hn::ShiftRight<16>(word);
    const V odd = hn::And(high, constant(d, 1));
    const V rounded = hn::ShiftRight<16>(hn::Add(word, hn::Add(odd, constant(d, 0x7fff))));
    const hn::RebindToFloat<D> df;
    const auto nan =
        hn::MaskFromVec(hn::BitCast(d, hn::VecFromMask(df, hn::IsNaN(hn::BitCast(df, word)))));
    return hn::IfThenElse(nan, hn::Or(high, constant(d, 0x40)), rounded);
  }
};

struct ToFloat16 {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V word) const {
    const hn::RebindToFloat<D> df;
    const hn::RebindToSigned<D> di;
    const V sign = hn::And(hn::ShiftRight<16>(word), constant(d, 0x8000));
    const V magnitude = hn::And(word, constant(d, 0x7fffffff));
    const auto below = [&](std::uint32_t limit) HWY_ATTR {
      const auto is = hn::Lt(hn::BitCast(di, magnitude), hn::Set(di, std::int32_t(limit)));
      return hn::MaskFromVec(hn::BitCast(d, hn::VecFromMask(di, is)));
    };
    const V odd = hn::And(hn::ShiftRight<13>(magnitude), constant(d, 1));
    const V rounded = hn::Add(magnitude, hn::Add(odd, constant(d, 0xfff)));
    const V normal = hn::ShiftRight<13>(hn::Sub(rounded, constant(d, 0x38000000)));
    // Adding 0.5, whose last place equals that of a subnormal result, rounds the number.
    const auto shifted = hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5f));
    const V subnormal = hn::Sub(hn::BitCast(d, shifted), constant(d, 0x3f000000));
    V result = hn::IfThenElse(below(0x38800000), subnormal, normal);
    result = hn::IfThenElse(below(0x477ff000), result, constant(d, 0x7c00));
    result = hn::IfThenElse(below(0x7f800001), result, constant(d, 0x7e00));
    return hn::Or(sign, result);
  }
};

struct FromBFloat16 {
  template <class D, class V>
  HWY_INLINE V operator()(D, V word) const {
    return hn::ShiftLeft<16>(word);
  }
};

struct FromFloat16 {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V word) const {
    const hn::RebindToFloat<D> df;
    const hn::RebindToSigned<D> di;
    const V sign = hn::ShiftLeft<16>(hn::And(word, constant(d, 0x8000)));
    const V magnitude = hn::And(word, constant(d, 0x7fff));
    const V wide = hn::ShiftLeft<13>(magnitude);
    const auto whole = hn::ConvertTo(df, hn::BitCast(di, magnitude));
    const V subnormal = hn::BitCast(d, hn::Mul(whole, hn::Set(df, 0x1p-24f)));
    const auto is_below = [&](std::int32_t limit) HWY_ATTR {
      const auto is = hn::Lt(hn::BitCast(di, magnitude), hn::Set(di, limit));
      return hn::MaskFromVec(hn::BitCast(d, hn::VecFromMask(di, is)));
    };
    V result = hn::IfThenElse(is_below(0x400), subnormal, hn::Add(wide, constant(d, 112u << 23)));
    result = hn::IfThenElse(is_below(0x7c00), result, hn::Or(wide, constant(d, 0x7f800000)));
    return hn::Or(sign, result);
  }
};

template <class D, class F>
HWY_INLINE void narrow_at(D df, F f, const float* x, std::uint16_t* y) {
  const Words<D> d;
  const hn::Rebind<std::int32_t, D> di;
  const hn::Rebind<std::uint16_t, D> half;
  const auto words = f(d, hn::BitCast(d, hn::LoadU(df, x)));
  hn::StoreU(hn::DemoteTo(half, hn::BitCast(di, words)), half, y);
}

template <class D, class F>
HWY_INLINE void widen_at(D df, F f, const std::uint16_t* x, float* y) {
  const Words<D> d;
  const hn::Rebind<std::uint16_t, D> half;
  hn::StoreU(hn::BitCast(df, f(d, hn::PromoteTo(d, hn::LoadU(half, x)))), df, y);
}

template <class F>
HWY_INLINE void narrow(F f, const float* x, std::uint16_t* y, std::size_t n) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) narrow_at(d, f, x + i, y + i);
  for (; i < n; ++i) narrow_at(hn::CappedTag<float, 1>(), f, x + i, y + i);
}

template <class F>
HWY_INLINE void widen(F f, const std::uint16_t* x, float* y, std::size_t n) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) widen_at(d, f, x + i, y + i);
  for (; i < n; ++i) widen_at(hn::CappedTag<float, 1>(), f, x + i, y + i);
}

template <class D>
HWY_INLINE void narrow_with_errors_at(D df, const float* x, float* errors, std::uint16_t* y) {
  const Words<D> d;
  const hn::Rebind<std::int32_t, D> di;
  const hn::Rebind<std::uint16_t, D> half;
  const auto wanted = hn::Add(hn::LoadU(df, x), hn::LoadU(df, errors));
  const auto words = ToBFloat16{}(d, hn::BitCast(d, wanted));
  const auto error = hn::Sub(wanted, hn::BitCast(df, hn::ShiftLeft<16>(words)));
  hn::StoreU(hn::IfThenElseZero(hn::IsFinite(error), error), df, errors);
  hn::StoreU(hn::DemoteTo(half, hn::BitCast(di, words)), half, y);
}

void NarrowWithErrors(const float* x, float* errors, std::uint16_t* y, std::size_t n) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    narrow_with_errors_at(d, x + i, errors + i, y + i);
  }
  for (; i < n; ++i) narrow_with_errors_at(hn::CappedTag<float, 1>(), x + i, errors + i, y + i);
}

void NarrowToBFloat16(const float* x, std::uint16_t* y, std::size_t n) {
  narrow(ToBFloat16{}, x, y, n);
}
void NarrowToFloat16(const float* x, std::uint16_t* y, std::size_t n) {
  narrow(ToFloat16{}, x, y, n);
}
void WidenBFloat16(const std::uint16_t* x, float* y, std::size_t n) {
  widen(FromBFloat16{}, x, y, n);
}
void WidenFloat16(const std::uint16_t* x, float* y, std::size_t n) {
  widen(FromFloat16{}, x, y, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {

namespace {
HWY_EXPORT(NarrowWithErrors);
HWY_EXPORT(NarrowToBFloat16);
HWY_EXPORT(NarrowToFloat16);
HWY_EXPORT(WidenBFloat16);
HWY_EXPORT(WidenFloat16);
}  // namespace

void vector_cast(const float* x, BFloat16* y, std::int64_t n) {
  if (n == 0) return;  // here and below: without elements there may be no memory
  HWY_DYNAMIC_DISPATCH(NarrowToBFloat16)(x, &y->bits, std::size_t(n));
}
void vector_cast_with_errors(const float* x, float* errors, BFloat16* y, std::int64_t n) {
  if (n == 0) return;
  HWY_DYNAMIC_DISPATCH(NarrowWithErrors)(x, errors, &y->bits, std::size_t(n));
}
void vector_cast(const float* x, Float16* y, std::int64_t n) {
  if (n == 0) return;
  HWY_DYNAMIC_DISPATCH(NarrowToFloat16)(x, &y->bits, std::size_t(n));
}
void vector_cast(const BFloat16* x, float* y, std::int64_t n) {
  if (n == 0) return;
  HWY_DYNAMIC_DISPATCH(WidenBFloat16)(&x->bits, y, std::size_t(n));
}
void vector_cast(const Float16* x, float* y, std::int64_t n) {
  if (n == 0) return;
  HWY_DYNAMIC_DISPATCH(WidenFloat16)(&x->bits, y, std::size_t(n));
}

}  // namespace paceline
#endif  // HWY_ONCE
