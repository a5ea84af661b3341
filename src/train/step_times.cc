#include "train/step_times.h"

#include <algorithm>
#include <cmath>

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
  const auto rank = std::int64_t(std::ceil(share * double(count_)));
  std::int64_t seen = 0;
  int bucket = 0;
  while (bucket < kBuckets - 1 &&
         (seen += counts_[std::size_t(bucket)]) < std::max<std::int64_t>(rank, 1)) {
    ++bucket;
  }
  // The result is the middle of the bucket.
  return kFirstMs * std::pow(kGrowth, bucket + 0.5);
}

}  // namespace paceline
