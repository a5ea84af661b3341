#include "kernels/cuda/cuda_timer.h"

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
  for (CudaCalls::Event* const event : spare_) calls_.destroy_event(event);
}

}  // namespace paceline
