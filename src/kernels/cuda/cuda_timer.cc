#include "kernels/cuda/cuda_timer.h"

#include <chrono>

#include "kernels/device.h"

namespace paceline {

// Returns null if the driver fails. Its error stays, and the caller's next call reports it.
CudaCalls::Event* CudaTimer::record() {
  CudaCalls::Event* event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.pop_back();
  } else if (calls_.make_event(&event, CudaCalls::kTiming) == 0) {
    made_.push_back(event);
  } else {
    return nullptr;
  }
  if (calls_.record_event(event, stream_) == 0) return event;
  spare_.push_back(event);
  return nullptr;
}

CudaCalls::Event* CudaTimer::begin() {
  const std::lock_guard lock(mutex_);
  return calls_.elapsed != nullptr ? record() : nullptr;
}

void CudaTimer::end(CudaCalls::Event* begin) {
  const std::lock_guard lock(mutex_);
  if (CudaCalls::Event* const end = record()) under_way_.push_back({begin, end});
  count_done();
}

void CudaTimer::count_done() {
  while (!under_way_.empty()) {
    const Span span = under_way_.front();
    float ms = 0;
    const CudaCalls::Status status = calls_.elapsed(&ms, span.begin, span.end);
    if (status == CudaCalls::kNotReady) return;
    if (status == 0) total_ += Duration(std::int64_t(double(ms) * 1e6));
    spare_.insert(spare_.end(), {span.begin, span.end});
    under_way_.pop_front();
  }
}

Duration CudaTimer::total() {
  const std::lock_guard lock(mutex_);
  count_done();
  return total_;
}

// The event happens between two looks at the host's clock: the try with the shortest time between
// them counts.
void CudaTimer::compare_clocks() {
  constexpr int kTries = 4;
  Duration shortest = Duration::max();
  for (int i = 0; i < kTries; ++i) {
    const TimePoint before = std::chrono::steady_clock::now();
    CudaCalls::Event* const event = record();
    if (event == nullptr || calls_.wait_for_event(event) != 0) return;
    const Duration between = std::chrono::steady_clock::now() - before;
    if (between < shortest) {
      base_ = event;
      base_time_ = before + between / 2;
      shortest = between;
    }
  }
}

std::int64_t CudaTimer::mark() {
  const std::lock_guard lock(mutex_);
  if (base_ == nullptr) compare_clocks();
  CudaCalls::Event* const event = base_ != nullptr ? record() : nullptr;
  if (event == nullptr) return QueueClock::kLost;
  marks_.emplace(++last_mark_, event);
  return last_mark_;
}

std::optional<TimePoint> CudaTimer::take(std::int64_t mark) {
  const std::lock_guard lock(mutex_);
  const auto found = marks_.find(mark);
  if (found == marks_.end()) return QueueClock::kNever;
  float ms = 0;
  const CudaCalls::Status status = calls_.elapsed(&ms, base_, found->second);
  if (status == CudaCalls::kNotReady) return {};
  spare_.push_back(found->second);
  marks_.erase(found);
  if (status != 0) return QueueClock::kNever;
  return base_time_ + Duration(std::int64_t(double(ms) * 1e6));
}

CudaTimer::~CudaTimer() {
  for (CudaCalls::Event* const event : made_) calls_.destroy_event(event);
}

}  // namespace paceline
