// The roof of this machine, measured repeatedly.
#pragma once

#include <vector>

#include "bench/recorder.h"
#include "predict/memory_passes.h"
#include "predict/roof.h"
#include "predict/rule_passes.h"

namespace paceline::bench {

/// Measures the roof repeatedly, beside the figures that are compared with it.
class RoofMeter {
 public:
  /// `precision` is the type of the products. Throws kUnavailable, as PlainProduct does.
  RoofMeter(DType precision, int threads, double link_bytes_per_s);
  /// Takes about 2.5 s: three times 0.25 s each for products, for passes over memory and for rules,
  /// and the time to find out how many of them fit into 0.25 s.
  Roof measure();

 private:
  Products products_;
  MemoryPasses memory_;
  RulePasses rules_;
  double link_bytes_per_s_;
};

/// Returns the numbers of threads to measure: all up to eight, then powers of two and all cores.
std::vector<int> thread_counts(int cores);

/// The case `roof`.
void measure_roof(Recorder& recorder);

}  // namespace paceline::bench
