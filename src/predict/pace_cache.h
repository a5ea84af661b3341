// How long the kernels of steps took on this machine, by step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exec/plan.h"
#include "paceline/dtype.h"

namespace paceline {

/// A text that two steps share only if they compute the same.
std::string pace_key(const Plan& plan, DType precision);

/// The time that the kernels of a step took on so many threads.
struct Pace {
  int threads = 0;
  double seconds = 0;
  bool operator==(const Pace&) const = default;
};

/// Paces in a file of JSON. A file that cannot be read or is of another processor counts as empty,
/// and one that cannot be written stays as it is.
class PaceCache {
 public:
  /// Nothing is kept when the name of the file is empty.
  explicit PaceCache(std::string file) : file_(std::move(file)) {}

  /// Returns the pace of the step on as many threads, else that on the fewest.
  std::optional<Pace> find(const std::string& key, int threads) const;
  void keep(const std::string& key, const Pace& pace) const;

 private:
  const std::string file_;
};

}  // namespace paceline
