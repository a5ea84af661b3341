#include "net/inproc/inproc_connection.h"

#include "base/check.h"
#include "base/copy_bytes.h"
#include "net/connection_end.h"
#include "net/inproc/inproc_dispatcher.h"
#include "net/received_frame.h"

namespace paceline {

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

/// Asks the acceptor once, even if it refuses.
void InprocConnection::accept() {
  const Acceptor acceptor = std::exchange(acceptor_, nullptr);
  guarded([&] { receiver_ = acceptor(shared_from_this()); });
}

/// An exception of the receiver ends the connection.
template <typename Call>
void InprocConnection::guarded(Call call) {
  try {
    call();
  } catch (const std::exception&) {
    fail(error_of_current_exception(peer()));
  }
}

void InprocConnection::deliver(const QueuedFrame& frame) {
  std::optional<std::span<std::byte>> place;  // stays empty when the receiver throws
  if (!frame.shared) guarded([&] { place = take_payload(frame); });
  inbox().give_back(frame);
  if (inbox().is_shut()) ask_for_turn(far_side());  // the far end may wait for it to be idle
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

/// Returns true when nothing is left to do here but to report the end. What one end has queued
/// before it closes is delivered first; then both have a reason.
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

/// Gives `side` the error as its reason, and tells the other side that this one is gone. A reason
/// that an end already has stays.
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

/// Ends both sides at once. The receiver here is told `error`, the other that this end is gone.
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
