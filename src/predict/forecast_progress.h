// How far the comparison of ways has come.
#pragma once

#include <cstddef>

#include "base/real_clock.h"
#include "predict/forecast.h"

namespace paceline {

/// Tells it on standard error, once a second at most. It is called before each way.
class ForecastProgress {
 public:
  explicit ForecastProgress(std::size_t all) : all_(all) {}
  void operator()(const Way& way);

 private:
  const std::size_t all_;
  RealClock clock_;
  std::size_t begun_ = 0;
  TimePoint told_ = clock_.now();
};

}  // namespace paceline
