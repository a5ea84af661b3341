#include "predict/interval.h"

namespace paceline {
namespace {

// About the 10th and the 90th percentile of measured ÷ predicted, of the rows of
// bench/predictions.csv. Few rows have a straggler, the transport of another system or local steps:
// they are taken to be like those that wait for the same.
SpeedInterval usual_interval(Limit limit) {
  switch (limit) {
    case Limit::kAlone:
      return {0.97, 1.02};
    case Limit::kDevices:
    case Limit::kStraggler:
    case Limit::kInput:
      return {0.97, 1.025};
    case Limit::kLink:
    case Limit::kTransport:
      return {0.94, 1.06};
    case Limit::kAnswers:
    case Limit::kOthers:
    case Limit::kExchanges:
      return {0.93, 1.06};
    case Limit::kRules:
    case Limit::kMemory:
      return {0.92, 1.08};
    case Limit::kCores:
      return {0.91, 1.10};
    default:  // kernels on the cores of hosts
      return {0.86, 1.09};
  }
}

}  // namespace

SpeedInterval interval_of(Limit limit, KernelsFrom kernels) {
  const SpeedInterval usual = usual_interval(limit);
  const bool of_kernels =
      limit == Limit::kAlone || limit == Limit::kCores || limit == Limit::kKernels;
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
