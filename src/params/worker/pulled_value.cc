#include "params/worker/pulled_value.h"

#include "base/check.h"

namespace paceline {

void PulledValue::allocate() {
  if (held_) return;
  memories_.front() = Tensor(spec_.dtype, spec_.shape);
  held_ = true;
}

void PulledValue::ask_next() {
  Tensor& back = memories_[std::size_t(1 - front_)];
  if (!back.defined()) back = Tensor(spec_.dtype, spec_.shape);
  next_ = Next::kAsked;
}

void PulledValue::take_next() {
  PACELINE_CHECK(next_came());
  front_ = 1 - front_;
  next_ = Next::kUnasked;
}

std::span<std::byte> PulledValue::place_of_next() const {
  if (!next_asked()) return {};
  const Tensor& back = memories_[std::size_t(1 - front_)];
  return {static_cast<std::byte*>(back.raw()), back.bytes()};
}

void PulledValue::next_arrived() {
  Next asked = Next::kAsked;
  next_.compare_exchange_strong(asked, Next::kCame);
}

}  // namespace paceline
