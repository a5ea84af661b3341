#include "data/resize_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/resize_rows.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> floats_at(D d, const std::uint8_t* bytes) {
  const hn::Rebind<std::uint8_t, D> narrow;
  return hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<D>(), hn::LoadU(narrow, bytes)));
}

template <class D>
HWY_INLINE void blend_row_at(D d, const std::uint8_t* above, const std::uint8_t* below,
                             float weight, float* values) {
  const auto first = floats_at(d, above);
  const auto change = hn::Sub(floats_at(d, below), first);
  hn::StoreU(hn::MulAdd(change, hn::Set(d, weight), first), d, values);
}

template <class D>
HWY_INLINE void blend_column_at(D d, const float* values, const std::int32_t* first,
                                const std::int32_t* second, const float* weights,
                                std::uint8_t* to) {
  const hn::RebindToSigned<D> di;
  const auto one = hn::GatherIndex(d, values, hn::LoadU(di, first));
  const auto change = hn::Sub(hn::GatherIndex(d, values, hn::LoadU(di, second)), one);
  const auto value = hn::MulAdd(change, hn::LoadU(d, weights), one);
  const hn::Rebind<std::uint8_t, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(value)), narrow, to);
}

void BlendRows(const std::uint8_t* above, const std::uint8_t* below, float weight,
               std::size_t count, float* values) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    blend_row_at(d, above + i, below + i, weight, values + i);
  }
  for (; i < count; ++i) blend_row_at(one, above + i, below + i, weight, values + i);
}

void BlendColumns(const float* values, const std::int32_t* first, const std::int32_t* second,
                  const float* weights, std::size_t count, std::uint8_t* to) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    blend_column_at(d, values, first + i, second + i, weights + i, to + i);
  }
  for (; i < count; ++i) blend_column_at(one, values, first + i, second + i, weights + i, to + i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {

namespace {
HWY_EXPORT(BlendRows);
HWY_EXPORT(BlendColumns);
}  // namespace

void blend_rows(const std::uint8_t* above, const std::uint8_t* below, float weight,
                std::size_t count, float* values) {
  HWY_DYNAMIC_DISPATCH(BlendRows)(above, below, weight, count, values);
}
void blend_columns(const float* values, const std::int32_t* first, const std::int32_t* second,
                   const float* weights, std::size_t count, std::uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(BlendColumns)(values, first, second, weights, count, to);
}

}  // namespace paceline
#endif  // HWY_ONCE
