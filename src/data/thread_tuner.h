// How many threads make batches.
#pragma once

namespace paceline {

/// Follows the measured times of batches. At first all threads work.
class ThreadTuner {
 public:
  explicit ThreadTuner(int most) : most_(most), threads_(most) {}
  /// A batch took `work` seconds of all threads together, and whoever uses it `own` seconds,
  /// without waiting for it. So many threads that batches are ready when they are wanted, with a
  /// quarter to spare; more at once, fewer one by one.
  int update(double work, double own);
  int threads() const { return threads_; }

 private:
  int most_, threads_;
};

}  // namespace paceline
