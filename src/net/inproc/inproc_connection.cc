#include "net/inproc/inproc_connection.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/copy_bytes.h"
#include "net/connection_end.h"
#include "net/inproc/inproc_dispatcher.h"
#include "net/received_frame.h"

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

/// Returns true if the payload stays borrowed. The caller holds `sending_`.
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

/// Returns true if the ring has a slot for the most recently counted frame.
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

/// The caller holds `taking_`.
std::optional<QueuedFrame> InprocQueue::take_oldest(ShortPayload& room) {
  // This is read before the ring: if it is true, the ring shows all frames that were pushed
  // earlier.
  const bool has_rest = has_rest_;
  std::optional<QueuedFrame> frame;
  if (ring_has_come()) {
    frame = read(room);
  } else if (has_rest) {
    frame = take_rest();
  }
  if (frame) taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return frame;
}

/// Reads the next frame of the ring. The caller holds `taking_`.
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

InprocConnection::InprocConnection(std::shared_ptr<InprocPair> pair, int side, Receiver* receiver,
                                   Acceptor acceptor)
    : pair_(std::move(pair)), side_(side), receiver_(receiver), acceptor_(std::move(acceptor)) {}

void InprocConnection::send(const FrameHeader& header, std::span<const std::byte> payload,
                            void (*sent)(void* context), void* context) {
  PACELINE_CHECK(payload.size() <= kMaxPayloadBytes);
  QueuedFrame frame{header, payload, sent, context};
  frame.header.payload_bytes = std::uint32_t(payload.size());
  queue(frame);
}

void InprocConnection::share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) {
  PACELINE_CHECK(memory != nullptr);
  queue({.header = {.id = id}, .payload = {}, .shared = std::move(memory)});
}

void InprocConnection::queue(const QueuedFrame& frame) {
  if (outbox().push(frame)) far().dispatcher->wake();
}

void InprocConnection::ask_for_turn(int side) {
  InprocPair::End& end = pair_->ends[std::size_t(side)];
  end.asked = true;
  end.dispatcher->wake();
}

bool InprocConnection::help() {
  if (in_turn_.exchange(true)) return false;
  if (near().asked) near().asked = false;
  if (acceptor_) accept();
  InprocQueue::ShortPayload room;
  if (const std::optional<QueuedFrame> frame = inbox().take(room)) deliver(*frame);
  if (agree_on_end()) {
    report_end();
    return true;
  }
  in_turn_ = false;
  if (has_come()) near().dispatcher->wake();
  return true;
}

/// Asks the acceptor for a receiver; only once, even if the acceptor refuses.
void InprocConnection::accept() {
  const Acceptor acceptor = std::exchange(acceptor_, nullptr);
  guarded([&] { receiver_ = acceptor(shared_from_this()); });
}

/// Makes the call. If it throws, the connection ends.
template <typename Call>
void InprocConnection::guarded(Call call) {
  try {
    call();
  } catch (const std::exception&) {
    fail(error_of_current_exception(peer()));
  }
}

void InprocConnection::deliver(const QueuedFrame& frame) {
  std::optional<std::span<std::byte>> place;  // stays empty if the receiver throws
  if (!frame.shared) guarded([&] { place = take_payload(frame); });
  inbox().give_back(frame);
  if (inbox().is_shut()) ask_for_turn(far_side());  // the far end may wait until the queue is idle
  if (place) guarded([&] { receiver_->on_frame(frame.header, *place); });
  if (frame.shared) guarded([&] { receiver_->on_shared(frame.header.id, frame.shared); });
}

/// Copies the payload to where the receiver wants it, and returns that place.
std::span<std::byte> InprocConnection::take_payload(const QueuedFrame& frame) {
  const std::span<std::byte> place = checked_place(*receiver_, frame.header);
  near().meter.begin_copy(place.size());
  copy_bytes(place.data(), frame.payload.data(), place.size());
  near().meter.count_received(frame.bytes(kFrameHeaderBytes));
  near().meter.end_copy(place.size());
  return place;
}

void InprocConnection::close(Deadline deadline) {
  {
    std::lock_guard lock(pair_->mutex);
    if (near().closing || near().reason) return;
    near().closing = true;
    outbox().shut();
    if (outbox().is_idle()) set_reasons(side_, error_of_closing_here(peer()));
  }
  near().dispatcher->give_up_at(deadline, weak_from_this());
  ask_for_turn(side_);
  ask_for_turn(far_side());
}

/// If the other end has closed, and everything that it queued before is delivered, gives both ends
/// a reason. Returns true if only the end remains to be reported here.
bool InprocConnection::agree_on_end() {
  if (!inbox().is_shut()) return false;
  std::unique_lock lock(pair_->mutex);
  const bool agreed = far().closing && !near().reason && inbox().is_idle();
  if (agreed) set_reasons(far_side(), error_of_closing_here(far().peer));
  const bool ended = near().reason && inbox().is_idle() && outbox().is_idle();
  lock.unlock();
  if (agreed) ask_for_turn(far_side());
  return ended;
}

/// Gives `side` the error as its reason, and gives the other side the reason that `side` is gone. A
/// side keeps a reason that it already has.
void InprocConnection::set_reasons(int side, const Error& error) {
  InprocPair::End& here = pair_->ends[std::size_t(side)];
  InprocPair::End& there = pair_->ends[std::size_t(1 - side)];
  if (!here.reason) here.reason = error;
  if (!there.reason)
    there.reason = Error(ErrorCode::kUnavailable, there.peer + " closed the connection");
  for (InprocQueue& inbox : pair_->inboxes) inbox.shut();
}

void InprocConnection::give_up() {
  {
    std::lock_guard lock(pair_->mutex);
    if (near().reason && inbox().is_idle() && outbox().is_idle()) return;
  }
  fail(error_of_closing_late(peer()));
}

/// Ends both sides at once. This side's receiver gets `error`, and the other learns that this end
/// is gone.
void InprocConnection::fail(const Error& error) {
  {
    std::lock_guard lock(pair_->mutex);
    set_reasons(side_, error);
  }
  for (InprocQueue& inbox : pair_->inboxes) inbox.drain();
  for (const int side : {side_, far_side()}) ask_for_turn(side);
}

void InprocConnection::finish(const Error& error) {
  fail(error);
  if (reported_) return;
  outbox().wait_until_idle();
  report_end();
}

void InprocConnection::report_end() {
  const std::shared_ptr<InprocConnection> self = shared_from_this();
  near().dispatcher->forget(this);
  reported_ = true;
  acceptor_ = nullptr;
  if (receiver_ != nullptr) receiver_->on_closed(*near().reason);
}

}  // namespace paceline
