#include "ops/padding.h"

#include <algorithm>

namespace paceline {

std::vector<std::int64_t> pads_of(const Padding& padding, const Shape& x,
                                  std::array<std::int64_t, 2> reach,
                                  std::array<std::int64_t, 2> strides) {
  if (padding.kind == Padding::Kind::kExplicit) {
    return {padding.amounts.begin(), padding.amounts.end()};
  }
  std::vector<std::int64_t> pads(4, 0);
  const bool good = x.rank() == 4 && strides[0] > 0 && strides[1] > 0;
  if (padding.kind == Padding::Kind::kValid || !good) return pads;
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t extent = x[int(d) + 2], stride = strides[d];
    const std::int64_t outputs = (extent + stride - 1) / stride;
    const std::int64_t all = std::max<std::int64_t>((outputs - 1) * stride + reach[d] - extent, 0);
    pads[d] = all / 2;
    pads[d + 2] = all - all / 2;
  }
  return pads;
}

}  // namespace paceline
