#include "data/thread_tuner.h"

#include <algorithm>
#include <cmath>

namespace paceline {
namespace {

constexpr double kToSpare = 1.25;

}  // namespace

int ThreadTuner::update(double work, double own) {
  const double needed = own > 0 ? std::ceil(kToSpare * work / own) : most_;
  const int wanted = int(std::clamp(needed, 1.0, double(most_)));
  threads_ = std::max(wanted, threads_ - 1);
  return threads_;
}

}  // namespace paceline
