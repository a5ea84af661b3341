#include "kernels/cuda/cuda_timer.h"

#include <chrono>

namespace paceline {

// An error of the driver stays, so the caller's next call reports it.
CudaCalls::Event* CudaTimer::record() {
  CudaCalls::Event* event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.pop_back();
  } else if (calls_.make_event(&event, CudaCalls::kTiming) != 0) {
    return nullptr;
  }
  calls_.record_event(event, stream_);
  return event;
}

void CudaTimer::count_done() {
  while (!under_way_.empty()) {
    const Span& span = under_way_.front();
    float ms = 0;
    const bool made = span.begin != nullptr && span.end != nullptr;
    const CudaCalls::Status status = made ? calls_.elapsed(&ms, span.begin, span.end) : 0;
    if (status == CudaCalls::kNotReady) return;
    if (status == 0) total_ += Duration(std::int64_t(double(ms) * 1e6));
    for (CudaCalls::Event* const event : {span.begin, span.end}) {
      if (event != nullptr) spare_.push_back(event);
    }
    under_way_.pop_front();
  }
}

// The event happens between two looks at the host's clock: the try with the shortest time between
// them counts.
void CudaTimer::compare_clocks() {
  constexpr int kTries = 4;
  Duration shortest = Duration::max();
  for (int i = 0; i < kTries; ++i) {
    const TimePoint before = std::chrono::steady_clock::now();
    CudaCalls::Event* const event = record();
    if (event == nullptr) return;
    calls_.wait_for_event(event);
    const Duration between = std::chrono::steady_clock::now() - before;
    if (between >= shortest) {
      spare_.push_back(event);
      continue;
    }
    if (base_ != nullptr) spare_.push_back(base_);
    base_ = event;
    base_time_ = before + between / 2;
    shortest = between;
  }
}

std::int64_t CudaTimer::mark() {
  if (base_ == nullptr) compare_clocks();
  if (CudaCalls::Event* const event = record()) marks_.emplace(++last_mark_, event);
  return last_mark_;
}

std::optional<TimePoint> CudaTimer::take(std::int64_t mark) {
  const auto found = marks_.find(mark);
  float ms = 0;
  if (found == marks_.end() || calls_.elapsed(&ms, base_, found->second) != 0) return {};
  spare_.push_back(found->second);
  marks_.erase(found);
  return base_time_ + Duration(std::int64_t(double(ms) * 1e6));
}

Duration CudaTimer::total() {
  count_done();
  return total_;
}

CudaTimer::~CudaTimer() {
  for (const Span& span : under_way_) {
    for (CudaCalls::Event* const event : {span.begin, span.end}) {
      if (event != nullptr) spare_.push_back(event);
    }
  }
  for (const auto& [mark, event] : marks_) spare_.push_back(event);
  if (base_ != nullptr) spare_.push_back(base_);
  for (CudaCalls::Event* const event : spare_) calls_.destroy_event(event);
}

}  // namespace paceline
