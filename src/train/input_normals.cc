#include "train/input_normals.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"

namespace paceline {
namespace {

constexpr int kPoints = 1 << 16;
constexpr std::size_t kPerBlock = 8;

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// Finds the quantile of `share` by Halley's method. `start` is the quantile before it, which is
// near, since quantiles are made in ascending order.
double quantile_near(double start, double share) {
  double x = start;
  for (int round = 0; round < 20; ++round) {
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    const double step = (normal_cdf(x) - share) / density;
    x -= step / (1 + x * step / 2);
    if (std::abs(step) < 1e-12) break;
  }
  return x;
}

}  // namespace

NormalTable::NormalTable() : quantiles_(kPoints) {
  double squares = 0;
  double x = 0;
  // The upper half from the middle out; the lower half is its mirror image.
  for (int i = kPoints / 2; i < kPoints; ++i) {
    x = quantile_near(x, (i + 0.5) / kPoints);
    squares += 2 * x * x;
    quantiles_[std::size_t(i)] = float(x);
  }
  const auto scale = float(1 / std::sqrt(squares / kPoints));
  for (std::size_t i = kPoints / 2; i < kPoints; ++i) {
    quantiles_[i] *= scale;
    quantiles_[kPoints - 1 - i] = -quantiles_[i];
  }
}

void NormalTable::fill(std::span<float> values, std::uint64_t key, std::uint64_t step) const {
  const float* quantiles = quantiles_.data();
  for (std::size_t at = 0; at < values.size(); at += kPerBlock) {
    const PhiloxBlock block = philox(key, at / kPerBlock, step);
    const std::size_t count = std::min(kPerBlock, values.size() - at);
    for (std::size_t i = 0; i < count; ++i) {
      values[at + i] = quantiles[(block[i / 2] >> (16 * (i % 2))) & 0xffff];
    }
  }
}

}  // namespace paceline
