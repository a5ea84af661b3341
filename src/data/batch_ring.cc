#include "data/batch_ring.h"

#include <algorithm>
#include <utility>

namespace paceline {
void BatchInWork::fail(std::int64_t slot, std::exception_ptr why) {
  if (error && error_slot < slot) return;
  error = std::move(why);
  error_slot = slot;
}

BatchRing::BatchRing(const Pipeline& pipeline) : batch_(pipeline.plan()->batch) {
  const Shape shape = pipeline.shape(), slots{batch_};
  for (int i = 0; i <= pipeline.plan()->prefetch; ++i) {
    all_.push_back(std::make_unique<BatchInWork>());
    all_.back()->batch = {.values = Tensor(DType::kFloat32, shape),
                          .labels = Tensor(DType::kInt32, slots),
                          .weights = Tensor(DType::kFloat32, slots)};
    free_.push_back(all_.back().get());
  }
}

std::int64_t BatchRing::free_slots() const {
  const bool open = !in_work_.empty() && !in_work_.back()->closed;
  return std::int64_t(free_.size()) * batch_ + (open ? batch_ - in_work_.back()->claimed : 0);
}

BatchInWork* BatchRing::with_free_slot() {
  if (!in_work_.empty() && !in_work_.back()->closed) return in_work_.back();
  if (free_.empty()) return nullptr;
  BatchInWork* const next = free_.front();
  free_.pop_front();
  next->ordinals.clear();
  next->claimed = next->done = 0;
  next->closed = false;
  next->error = nullptr;
  next->batch.records = 0;
  in_work_.push_back(next);
  return next;
}

std::int64_t BatchRing::claim(BatchInWork& in_work, std::int64_t ordinal) {
  in_work.ordinals.push_back(ordinal);
  const std::int64_t slot = in_work.claimed++;
  in_work.closed = in_work.claimed == batch_;
  return slot;
}

void BatchRing::close() {
  closed_ = true;
  if (in_work_.empty() || in_work_.back()->closed) return;
  in_work_.back()->closed = true;
  if (in_work_.back()->claimed > 0) return;
  free_.push_back(in_work_.back());
  in_work_.pop_back();
}

std::int64_t BatchRing::ready_batches() const {
  return std::ranges::count_if(in_work_, [](const BatchInWork* each) { return each->ready(); });
}

BatchInWork& BatchRing::take() {
  taken_ = in_work_.front();
  in_work_.pop_front();
  return *taken_;
}

void BatchRing::give_back() {
  if (taken_ != nullptr) free_.push_back(std::exchange(taken_, nullptr));
}

}  // namespace paceline
