// The time that the kernels of each step took on this machine.
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

/// Returns a key of the step's kernels: a hash of their ops, FLOPs and bytes in order, and the
/// precision. Steps with equal keys are taken to last equally long.
std::string pace_key(const Plan& plan, DType precision);

/// The time of a step's kernels on this many threads.
struct Pace {
  int threads = 0;
  double seconds = 0;
  double others_share = 0;  // the share of that time in which other programs had the cores
  double busy_cores = 0;    // cores that other code kept busy; 0: kernels used all threads
  int copies = 1;           // how many such steps ran at once, each on threads of its own
  bool operator==(const Pace&) const = default;
};

/// Returns the pace on the number of threads that is nearest to `threads` by ratio; of those the
/// one whose number of copies is nearest; of two that are equally near, the one on more threads.
/// Returns nullopt if there are no paces.
std::optional<Pace> nearest_pace(std::span<const Pace> paces, int threads, int copies = 1);

/// Keeps paces. A pace that was measured beside other programs never replaces an undisturbed one.
class PaceCache {
 public:
  /// Keeps nothing if the path is empty.
  explicit PaceCache(std::string path) : file_(std::move(path), "paces") {}

  /// Returns the paces of the step, one for each number of threads and copies.
  std::vector<Pace> find(const std::string& key) const;
  void keep(const std::string& key, const Pace& pace) const;

 private:
  const CacheFile file_;
};

}  // namespace paceline
