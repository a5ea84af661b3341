#include "predict/interval.h"

namespace paceline {

// The 10th and the 90th percentile of measured ÷ predicted, of the rows of bench/foresight.csv.
SpeedInterval interval_of(const Way& way) {
  if (way.ps == 0 && way.workers == 1) return {0.97, 1.02};
  if (way.strategy == "async" || way.strategy == "ssp") return {0.75, 1.06};
  return {0.88, 1.08};  // workers wait for each other
}

}  // namespace paceline
