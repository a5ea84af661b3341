// Measures for how long some of the work in a stream keeps the GPU busy.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kernels/cuda/cuda_calls.h"

namespace paceline {

/// Not thread-safe. The device's context must be current in each call. Where the driver cannot
/// time, no time is counted.
class CudaTimer {
 public:
  /// `calls` and the stream must outlive the timer.
  CudaTimer(const CudaCalls& calls, CudaCalls::Stream* stream) : calls_(calls), stream_(stream) {}
  ~CudaTimer();
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;

  /// Calls `ask`, which gives the stream some work whose time counts once it is done.
  template <typename F>
  void time(F&& ask) {
    if (calls_.elapsed == nullptr) return ask();
    under_way_.push_back({record(), nullptr});
    ask();
    under_way_.back().end = record();
    count_done();
  }
  /// Returns the time of the work that is done.
  Duration total();

 private:
  struct Span {
    CudaCalls::Event *begin, *end;
  };
  CudaCalls::Event* record();
  void count_done();

  const CudaCalls& calls_;
  CudaCalls::Stream* const stream_;
  std::deque<Span> under_way_;
  std::vector<CudaCalls::Event*> spare_;
  Duration total_{0};
};

}  // namespace paceline
