// Keeps oneDNN on the calling thread.
#pragma once

#include <omp.h>

namespace paceline {

/// oneDNN asks OpenMP how many threads it may use, and OpenMP keeps that number per thread. This
/// sets the number around each call and restores it, so that it holds on every thread and changes
/// nothing for other code.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace paceline
