// How many threads make batches.
#pragma once

namespace paceline {

/// Chooses the number of threads by the measured times of batches. At first all threads work.
class ThreadTuner {
 public:
  explicit ThreadTuner(int most) : most_(most), threads_(most) {}
  /// Notes that a batch took `work` seconds of all threads together, and that its user took `own`
  /// seconds without waiting for it. Returns the number of threads with which batches are ready in
  /// time, with a quarter to spare. The number rises at once, and falls by one at a time.
  int update(double work, double own);
  int threads() const { return threads_; }

 private:
  int most_, threads_;
};

}  // namespace paceline
