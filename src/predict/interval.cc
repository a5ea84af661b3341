#include "predict/interval.h"

namespace paceline {

// The 10th and the 90th percentile of measured ÷ predicted, of the rows of bench/foresight.csv.
SpeedInterval interval_of(LimitKind limit) {
  switch (limit) {
    case LimitKind::kAlone:
      return {0.97, 1.02};
    case LimitKind::kDevices:
    case LimitKind::kStraggler:
    case LimitKind::kInput:
      return {0.90, 1.00};
    case LimitKind::kLink:
    case LimitKind::kTransport:
      return {0.90, 1.01};
    case LimitKind::kAnswers:
    case LimitKind::kOthers:
    case LimitKind::kExchanges:
      return {0.92, 1.12};
    case LimitKind::kRules:
    case LimitKind::kMemory:
    case LimitKind::kCores:
    case LimitKind::kKernels:
      return {0.85, 1.12};
  }
  return {};
}

}  // namespace paceline
