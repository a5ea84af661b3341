// The roofs of this machine that earlier runs have measured.
#pragma once

#include <optional>
#include <string>

#include "paceline/dtype.h"
#include "predict/roof.h"

namespace paceline {

/// Roofs by the type of the products and the number of threads, in a file of JSON. A file that
/// cannot be read, is damaged or is of another processor counts as empty, and one that cannot be
/// written stays as it is: roofs are then measured again.
class RoofCache {
 public:
  /// Nothing is kept when the name of the file is empty. Its folder is made when it is first
  /// written.
  explicit RoofCache(std::string file) : file_(std::move(file)) {}

  std::optional<Roof> find(DType precision, int threads) const;
  /// Measures the roof and keeps it. Of rates that were kept before, the higher ones stay: whatever
  /// ran beside a measurement made it lower, and never higher. Throws as measure_roof.
  Roof measure(DType precision, int threads) const;
  /// Finds it, or measures it.
  Roof roof(DType precision, int threads) const;

 private:
  const std::string file_;
};

}  // namespace paceline
