// How long the kernels of steps took on this machine, by step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exec/plan.h"
#include "paceline/dtype.h"

namespace paceline {

/// A number that two steps share only if they compute the same, on as many threads.
std::string pace_key(const Plan& plan, DType precision, int threads);

/// Times in a file of JSON. A file that cannot be read or is of another processor counts as empty,
/// and one that cannot be written stays as it is.
class PaceCache {
 public:
  /// Nothing is kept when the name of the file is empty.
  explicit PaceCache(std::string file) : file_(std::move(file)) {}

  /// Seconds of a step's kernels.
  std::optional<double> find(const std::string& key) const;
  void keep(const std::string& key, double seconds) const;

 private:
  const std::string file_;
};

}  // namespace paceline
