#include "train/step_times.h"

#include <algorithm>
#include <cmath>

#include "base/quantile.h"

namespace paceline {
namespace {

constexpr double kGrowth = 1.005;
constexpr double kFirstMs = 1e-3;

}  // namespace

void StepTimes::add(Duration step) {
  const double ms = double(step.count()) * 1e-6;
  const double bucket = ms > kFirstMs ? std::log(ms / kFirstMs) / std::log(kGrowth) : 0;
  ++counts_[std::size_t(std::min(bucket, double(kBuckets - 1)))];
  ++count_;
}

std::optional<double> StepTimes::quantile_ms(double share) const {
  if (count_ == 0) return std::nullopt;
  // The result is the middle of the bucket.
  return kFirstMs * std::pow(kGrowth, double(bucket_of_quantile(counts_, count_, share)) + 0.5);
}

}  // namespace paceline
