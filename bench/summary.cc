#include "bench/summary.h"

#include <algorithm>
#include <cmath>

#include "paceline/error.h"

namespace paceline::bench {
namespace {

double quantile(std::span<const double> ordered, double share) {
  const double at = share * double(ordered.size() - 1);
  const auto below = std::size_t(at);
  const std::size_t above = std::min(below + 1, ordered.size() - 1);
  return std::lerp(ordered[below], ordered[above], at - double(below));
}

}  // namespace

Summary summarize(std::span<const double> values) {
  if (values.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "[bench] nothing was measured");
  }
  std::vector<double> ordered(values.begin(), values.end());
  std::ranges::sort(ordered);
  return {.median = quantile(ordered, 0.5),
          .low = quantile(ordered, 0.25),
          .high = quantile(ordered, 0.75),
          .count = ordered.size()};
}

std::vector<double> paired_ratios(std::span<const double> values, std::span<const double> others) {
  if (values.size() != others.size()) {
    throw Error(ErrorCode::kInvalidArgument, "[bench] pairs need as many values on either side");
  }
  std::vector<double> ratios(values.size());
  std::ranges::transform(values, others, ratios.begin(), [](double a, double b) { return a / b; });
  return ratios;
}

}  // namespace paceline::bench
