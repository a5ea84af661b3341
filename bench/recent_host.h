// This machine as it usually is: its memory may have fast and slow moments.
#pragma once

#include <deque>

#include "predict/forecast.h"

namespace paceline::bench {

/// The median of each rate over the last few measurements. A rate of one moment says little about
/// the next seconds: on virtual machines the memory was seen to be twice as fast in a fourth of
/// all.
class RecentHost {
 public:
  static constexpr std::size_t kMost = 9;

  void add(const ForecastHost& measured);
  std::size_t size() const { return hosts_.size(); }
  /// At least one was added.
  ForecastHost usual() const;

 private:
  std::deque<ForecastHost> hosts_;
};

}  // namespace paceline::bench
