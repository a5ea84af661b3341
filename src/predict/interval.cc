#include "predict/interval.h"

namespace paceline {
namespace {

// About the 10th and the 90th percentile of measured ÷ predicted, of the rows of
// bench/foresight.csv. Few rows have a straggler, the transport of another system or local steps:
// they are taken to be like those that wait for the same.
SpeedInterval usual_interval(LimitKind limit) {
  switch (limit) {
    case LimitKind::kAlone:
      return {0.97, 1.02};
    case LimitKind::kDevices:
    case LimitKind::kStraggler:
    case LimitKind::kInput:
      return {0.97, 1.025};
    case LimitKind::kLink:
    case LimitKind::kTransport:
      return {0.94, 1.06};
    case LimitKind::kAnswers:
    case LimitKind::kOthers:
    case LimitKind::kExchanges:
      return {0.93, 1.06};
    case LimitKind::kRules:
    case LimitKind::kMemory:
      return {0.92, 1.08};
    case LimitKind::kCores:
      return {0.91, 1.10};
    case LimitKind::kKernels:
      return {0.86, 1.09};
  }
  return {};
}

}  // namespace

SpeedInterval interval_of(LimitKind limit, KernelsFrom kernels) {
  const SpeedInterval usual = usual_interval(limit);
  const bool of_kernels =
      limit == LimitKind::kAlone || limit == LimitKind::kCores || limit == LimitKind::kKernels;
  switch (kernels) {
    case KernelsFrom::kSteps:
      return usual;
    case KernelsFrom::kBesideOthers:
      return of_kernels ? SpeedInterval{0.85, 1.5} : usual;
    case KernelsFrom::kCosts:
      // Steps of `mlp`, `mlp --hidden 512 --batch 64`, `ptb`, `cifar10` and `resnet --depth 20` on
      // one thread and on two of an Intel Xeon made 0.83 to 1.62 of it, and other models 1/16.
      return {1.0 / 16, of_kernels ? 1.62 : usual.high};
  }
  return usual;
}

}  // namespace paceline
