// How long the kernels of steps took on this machine, by step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exec/plan.h"
#include "paceline/dtype.h"
#include "predict/cache_file.h"

namespace paceline {

/// A text that two steps share only if they compute the same.
std::string pace_key(const Plan& plan, DType precision);

/// The time that the kernels of a step took on so many threads.
struct Pace {
  int threads = 0;
  double seconds = 0;
  bool operator==(const Pace&) const = default;
};

class PaceCache {
 public:
  /// Nothing is kept when the path is empty.
  explicit PaceCache(std::string path) : file_(std::move(path), "paces") {}

  /// Returns the pace of the step on as many threads, else that on the fewest.
  std::optional<Pace> find(const std::string& key, int threads) const;
  void keep(const std::string& key, const Pace& pace) const;

 private:
  const CacheFile file_;
};

}  // namespace paceline
