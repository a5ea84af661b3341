// How long the kernels of steps took on this machine, by step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exec/plan.h"
#include "paceline/tensor.h"
#include "predict/cache_file.h"

namespace paceline {

/// A text that two steps share only if they compute the same.
std::string pace_key(const Plan& plan, DType precision);

/// The time that the kernels of a step took on so many threads.
struct Pace {
  int threads = 0;
  double seconds = 0;
  double others_share = 0;  // of that time, in which other programs had the cores
  double busy_cores = 0;    // that other code kept busy in it; 0: kernels kept all threads busy
  bool operator==(const Pace&) const = default;
};

/// Returns that on as many threads, else that on the next number of them in proportion; nothing of
/// none.
std::optional<Pace> nearest_pace(std::span<const Pace> paces, int threads);

/// One that was measured beside other programs never takes the place of one that was not.
class PaceCache {
 public:
  /// Nothing is kept when the path is empty.
  explicit PaceCache(std::string path) : file_(std::move(path), "paces") {}

  /// Returns the paces of the step, one for each number of threads.
  std::vector<Pace> find(const std::string& key) const;
  void keep(const std::string& key, const Pace& pace) const;

 private:
  const CacheFile file_;
};

}  // namespace paceline
