// Keeps oneDNN on the calling thread.
#pragma once

#include <omp.h>

namespace paceline {

/// Limits a call of oneDNN to the calling thread. oneDNN asks OpenMP how many threads it may use,
/// and OpenMP keeps this number for each thread. The constructor sets the number to 1, and the
/// destructor gives it back its former value, so that other code on the thread keeps its threads.
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
