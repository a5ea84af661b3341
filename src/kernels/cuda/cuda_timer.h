// Measures when a GPU does the work of a stream, and for how long.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "kernels/cuda/cuda_calls.h"

namespace paceline {

/// For any thread, in which the device's context must be current. Where the driver cannot time, no
/// time is counted, and mark() must not be called.
class CudaTimer {
 public:
  /// `calls` and the stream must outlive the timer.
  CudaTimer(const CudaCalls& calls, CudaCalls::Stream* stream) : calls_(calls), stream_(stream) {}
  ~CudaTimer();
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;

  /// Calls `ask`, which gives the stream some work. The work's time counts once it is done.
  template <typename F>
  void time(F&& ask) {
    CudaCalls::Event* const begin = this->begin();
    ask();
    if (begin != nullptr) end(begin);
  }
  /// Returns the time of the work that is done.
  Duration total();
  /// As QueueClock. The first mark waits for the stream, to compare the clocks. From then on times
  /// are right within some microseconds, and after 100 s within some ten, since the driver tells
  /// them as float32.
  std::int64_t mark();
  std::optional<TimePoint> take(std::int64_t mark);

 private:
  struct Span {
    CudaCalls::Event *begin, *end;
  };
  CudaCalls::Event* begin();
  void end(CudaCalls::Event* begin);
  CudaCalls::Event* record();
  void count_done();
  void compare_clocks();

  const CudaCalls& calls_;
  CudaCalls::Stream* const stream_;
  std::mutex mutex_;  // guards the members below
  std::vector<CudaCalls::Event*> made_, spare_;
  std::deque<Span> under_way_;
  Duration total_{0};
  std::map<std::int64_t, CudaCalls::Event*> marks_;
  std::int64_t last_mark_ = 0;
  CudaCalls::Event* base_ = nullptr;  // happened at base_time_
  TimePoint base_time_{};
};

}  // namespace paceline
