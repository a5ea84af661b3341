#include "summary/histogram.h"

#include <algorithm>
#include <cmath>

namespace paceline {
namespace {

void add_moments(Histogram& histogram, std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const bool first = histogram.count++ == 0;
    histogram.min = first ? value : std::min<double>(histogram.min, value);
    histogram.max = first ? value : std::max<double>(histogram.max, value);
    histogram.sum += value;
    histogram.sum_squares += double(value) * value;
  }
}

}  // namespace

Histogram Histogram::of(std::span<const float> values) {
  Histogram histogram;
  add_moments(histogram, values);
  if (histogram.count == 0) return histogram;
  if (histogram.min == histogram.max) {
    histogram.limits = {histogram.max};
    histogram.counts = {histogram.count};
    return histogram;
  }
  const double width = (histogram.max - histogram.min) / kBuckets;
  for (int i = 1; i < kBuckets; ++i) histogram.limits.push_back(histogram.min + i * width);
  histogram.limits.push_back(histogram.max);
  histogram.counts.resize(kBuckets);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const int bucket = int((value - histogram.min) / width);
    ++histogram.counts[std::size_t(std::min(bucket, kBuckets - 1))];
  }
  return histogram;
}

}  // namespace paceline
