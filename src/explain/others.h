// A number of each task, seen from one of them.
#pragma once

#include <algorithm>
#include <vector>

namespace paceline {

/// Sorts them once, so that a job of thousands of tasks is explained at once. `own` is one of the
/// numbers; where there is no other, it is what is returned.
class Others {
 public:
  explicit Others(std::vector<double> all) : all_(std::move(all)) { std::ranges::sort(all_); }

  double least(double own) const { return beside(own, 0); }
  double most(double own) const { return beside(own, all_.size() < 2 ? 0 : all_.size() - 2); }
  double median(double own) const { return beside(own, all_.empty() ? 0 : (all_.size() - 1) / 2); }

 private:
  // The number at this index once `own` is taken out.
  double beside(double own, std::size_t index) const {
    if (all_.size() < 2) return own;
    return own <= all_[index] ? all_[index + 1] : all_[index];
  }

  std::vector<double> all_;
};

}  // namespace paceline
