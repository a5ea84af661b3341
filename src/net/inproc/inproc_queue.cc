#include "net/inproc/inproc_queue.h"

#include <algorithm>
#include <bit>

namespace paceline {

bool InprocQueue::push(const QueuedFrame& frame) {
  sender_.begin_copy(frame.payload.size());
  bool refused = false, lent = false;
  {
    std::lock_guard lock(sending_);
    refused = shut_;
    lent = !refused && enqueue(frame);
  }
  if (!lent) end_loan(frame);
  return !refused;
}

/// Returns true when the payload stays borrowed. Called with the lock of senders.
bool InprocQueue::enqueue(const QueuedFrame& frame) {
  if (!frame.shared) sender_.count_sent(frame.bytes(kFrameHeaderBytes));
  pushed_.store(pushed_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (frame.shared || !ring_has_room()) {
    rest_.push(frame);
    has_rest_ = true;
    return true;
  }
  write(frame);
  return !is_short(frame.header);
}

/// Returns true when the ring has a slot for the frame that was counted last.
bool InprocQueue::ring_has_room() {
  const std::uint64_t pushed = pushed_.load(std::memory_order_relaxed);
  if (pushed - seen_taken_ <= kSlots) return true;
  seen_taken_ = taken_.load(std::memory_order_acquire);
  return pushed - seen_taken_ <= kSlots;
}

void InprocQueue::write(const QueuedFrame& frame) {
  const std::uint64_t number = pushed_.load(std::memory_order_relaxed);
  Slot& slot = slots_[number % kSlots];
  slot.header = frame.header;
  if (is_short(frame.header)) {
    std::ranges::copy(frame.payload, slot.payload.begin());
  } else {
    slot.payload =
        std::bit_cast<ShortPayload>(Loan{frame.payload.data(), frame.sent, frame.context});
  }
  slot.number = number;
}

void InprocQueue::shut() {
  std::lock_guard lock(sending_);
  shut_ = true;
}

std::optional<QueuedFrame> InprocQueue::take(ShortPayload& room) {
  std::lock_guard lock(taking_);
  if (drained_) return std::nullopt;
  return take_oldest(room);
}

/// Called with the lock of receivers.
std::optional<QueuedFrame> InprocQueue::take_oldest(ShortPayload& room) {
  const bool has_rest = has_rest_;  // frames older than the rest can be seen in the ring now
  std::optional<QueuedFrame> frame;
  if (ring_has_come()) {
    frame = read(room);
  } else if (has_rest) {
    frame = take_rest();
  }
  if (frame) taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return frame;
}

/// Reads the next frame of the ring. Called with the lock of receivers.
QueuedFrame InprocQueue::read(ShortPayload& room) const {
  const Slot& slot = slots_[(taken_.load(std::memory_order_relaxed) + 1) % kSlots];
  const std::size_t bytes = slot.header.payload_bytes;
  if (is_short(slot.header)) {
    room = slot.payload;
    return {.header = slot.header, .payload = std::span(room).first(bytes)};
  }
  const Loan loan = std::bit_cast<Loan>(slot.payload);
  return {slot.header, {loan.payload, bytes}, loan.sent, loan.context};
}

QueuedFrame InprocQueue::take_rest() {
  std::lock_guard lock(sending_);
  QueuedFrame frame = rest_.pop();
  has_rest_ = !rest_.empty();
  return frame;
}

void InprocQueue::give_back(const QueuedFrame& frame) {
  end_loan(frame);
  ++done_;
  if (shut_) done_.notify_all();
}

void InprocQueue::end_loan(const QueuedFrame& frame) {
  sender_.end_copy(frame.payload.size());
  frame.give_back();
}

void InprocQueue::drain() {
  while (true) {
    ShortPayload room;
    std::unique_lock lock(taking_);
    drained_ = true;
    const std::optional<QueuedFrame> frame = take_oldest(room);
    lock.unlock();
    if (!frame) return;
    give_back(*frame);
  }
}

void InprocQueue::wait_until_idle() const {
  for (std::uint64_t done = done_; done != pushed_; done = done_) done_.wait(done);
}

}  // namespace paceline
