#include "kernels/cpu/lstm_cells.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/lstm_cells.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "kernels/cpu/float_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

template <class D>
HWY_INLINE void forward_at(D d, const LstmForwardRow& row, std::size_t u) {
  const std::size_t h = std::size_t(row.hidden);
  const auto product = [&](std::size_t gate) HWY_ATTR {
    return hn::Add(hn::LoadU(d, row.gates + gate * h + u), hn::LoadU(d, row.biases + gate * h + u));
  };
  const auto i = sigmoid_of(d, product(0));
  const auto j = tanh_of(d, product(1));
  const auto f = sigmoid_of(d, hn::Add(product(2), hn::Set(d, row.forget_bias)));
  const auto o = sigmoid_of(d, product(3));
  const auto c = hn::MulAdd(hn::LoadU(d, row.cell_before + u), f, hn::Mul(i, j));
  hn::StoreU(i, d, row.gates + u);
  hn::StoreU(j, d, row.gates + h + u);
  hn::StoreU(f, d, row.gates + 2 * h + u);
  hn::StoreU(o, d, row.gates + 3 * h + u);
  hn::StoreU(c, d, row.cell + u);
  hn::StoreU(hn::Mul(tanh_of(d, c), o), d, row.output + u);
}

template <class D>
HWY_INLINE void backward_at(D d, const LstmBackwardRow& row, std::size_t u) {
  const std::size_t h = std::size_t(row.hidden);
  const auto one = hn::Set(d, 1.0f);
  const auto i = hn::LoadU(d, row.gates + u), j = hn::LoadU(d, row.gates + h + u);
  const auto f = hn::LoadU(d, row.gates + 2 * h + u), o = hn::LoadU(d, row.gates + 3 * h + u);
  const auto tc = tanh_of(d, hn::LoadU(d, row.cell + u));
  auto dh = hn::LoadU(d, row.d_state_h + u);
  if (row.d_output != nullptr) dh = hn::Add(dh, hn::LoadU(d, row.d_output + u));
  const auto through_tanh = hn::Mul(hn::Mul(dh, o), hn::NegMulAdd(tc, tc, one));
  const auto dc = hn::Add(hn::LoadU(d, row.d_state_c + u), through_tanh);
  const auto di = hn::Mul(hn::Mul(dc, j), hn::Mul(i, hn::Sub(one, i)));
  const auto dj = hn::Mul(hn::Mul(dc, i), hn::NegMulAdd(j, j, one));
  const auto df =
      hn::Mul(hn::Mul(dc, hn::LoadU(d, row.cell_before + u)), hn::Mul(f, hn::Sub(one, f)));
  const auto d_o = hn::Mul(hn::Mul(dh, tc), hn::Mul(o, hn::Sub(one, o)));
  hn::StoreU(di, d, row.d_products + u);
  hn::StoreU(dj, d, row.d_products + h + u);
  hn::StoreU(df, d, row.d_products + 2 * h + u);
  hn::StoreU(d_o, d, row.d_products + 3 * h + u);
  hn::StoreU(hn::Mul(dc, f), d, row.d_state_c + u);
}

/// Calls at(d, u) for all units from u on: with whole vectors first, then with a vector of half the
/// size, a quarter of it and so on, down to one unit.
template <std::size_t kLanes, class At>
HWY_INLINE void for_units(std::size_t u, std::size_t hidden, const At& at) {
  const hn::CappedTag<float, kLanes> d;
  const std::size_t lanes = hn::Lanes(d);
  for (; u + lanes <= hidden; u += lanes) at(d, u);
  if constexpr (kLanes > 1) {
    if (u < hidden) for_units<kLanes / 2>(u, hidden, at);
  }
}

void Forward(const LstmForwardRow& row) {
  for_units<HWY_MAX_BYTES / sizeof(float)>(
      0, std::size_t(row.hidden), [&](auto d, std::size_t u) HWY_ATTR { forward_at(d, row, u); });
}

void Backward(const LstmBackwardRow& row) {
  for_units<HWY_MAX_BYTES / sizeof(float)>(
      0, std::size_t(row.hidden), [&](auto d, std::size_t u) HWY_ATTR { backward_at(d, row, u); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {

HWY_EXPORT(Forward);
HWY_EXPORT(Backward);

void lstm_forward(const LstmForwardRow& row) { HWY_DYNAMIC_DISPATCH(Forward)(row); }
void lstm_backward(const LstmBackwardRow& row) { HWY_DYNAMIC_DISPATCH(Backward)(row); }

}  // namespace paceline
#endif
