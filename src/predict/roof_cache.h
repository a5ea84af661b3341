// The best roofs of this machine that earlier runs have measured.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "paceline/tensor.h"
#include "predict/cache_file.h"
#include "predict/roof.h"

namespace paceline {

/// Roofs by the type of the products and the number of threads.
class RoofCache {
 public:
  using Measure = std::function<Roof(DType precision, int threads)>;
  /// Nothing is kept when the path is empty.
  explicit RoofCache(std::string path, Measure measure = measure_roof)
      : file_(std::move(path), "roofs"), measure_(std::move(measure)) {}

  std::optional<Roof> find(DType precision, int threads) const;
  /// Measures the roof and keeps it. Of rates that were kept before, the higher ones stay: whatever
  /// ran beside a measurement made it lower, and never higher. Throws as measure_roof.
  Roof measure(DType precision, int threads) const;
  /// Finds it, or measures it. One that was measured beside other programs is measured again.
  Roof roof(DType precision, int threads) const;

 private:
  const CacheFile file_;
  const Measure measure_;
};

}  // namespace paceline
