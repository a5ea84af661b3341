#include "net/inproc/inproc_connection.h"

#include <cstring>

#include "base/check.h"
#include "net/connection_end.h"
#include "net/inproc/inproc_dispatcher.h"
#include "net/received_frame.h"

namespace paceline {
namespace {

void give_back(const QueuedFrame& frame, InprocPair::End& sender) {
  sender.meter.end_copy(frame.payload.size());
  frame.give_back();
}

void give_back_all(Ring<QueuedFrame>& frames, InprocPair::End& sender) {
  while (!frames.empty()) give_back(frames.pop(), sender);
}

}  // namespace

InprocConnection::InprocConnection(std::shared_ptr<InprocPair> pair, int side,
                                   std::shared_ptr<InprocDispatcher> dispatcher, Receiver* receiver,
                                   Acceptor acceptor)
    : pair_(std::move(pair)),
      side_(side),
      dispatcher_(std::move(dispatcher)),
      receiver_(receiver),
      acceptor_(std::move(acceptor)) {}

/// The earliest verdict of each end stays.
void InprocConnection::set_verdicts(const Error& here) {
  if (!near().verdict) near().verdict = here;
  if (!far().verdict)
    far().verdict = Error(ErrorCode::kUnavailable, far().peer + " closed the connection");
  for (InprocPair::Lent& lent : pair_->lent) lent.over = true;
}

void InprocConnection::send(const FrameHeader& header, std::span<const std::byte> payload,
                            void (*sent)(void* context), void* context) {
  PACELINE_CHECK(payload.size() <= kMaxPayloadBytes);
  QueuedFrame frame{header, payload, sent, context};
  frame.header.payload_bytes = std::uint32_t(payload.size());
  queue(std::move(frame));
}

void InprocConnection::share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) {
  queue({.header = {.id = id}, .payload = {}, .shared = std::move(memory)});
}

void InprocConnection::queue(QueuedFrame frame) {
  std::unique_lock lock(pair_->mutex);
  if (near().closing || near().verdict) {
    lock.unlock();
    return frame.give_back();
  }
  near().meter.begin_copy(frame.payload.size());
  if (!frame.shared) near().meter.count_sent(frame.bytes());
  far().inbox.push(std::move(frame));
  wake(far(), std::move(lock));
}

/// The end of a sender is told when nobody reads its memory, or calls its `sent`, any more: a turn
/// looks for a verdict and then here, this the other way round.
void InprocConnection::note_given_back(int side, std::size_t frames) {
  lent(side).frames -= frames;
  if (!lent(side).over) return;
  lent(side).frames.notify_all();
  wake(pair_->ends[std::size_t(side)], std::unique_lock(pair_->mutex));
}

void InprocConnection::close(Deadline deadline) {
  {
    std::lock_guard lock(pair_->mutex);
    if (near().closing || near().verdict) return;
    near().closing = true;
    if (far().inbox.empty() && !far().in_delivery) set_verdicts(error_of_closing_here(peer()));
  }
  dispatcher_->give_up_at(deadline, weak_from_this());
  ask_for_turn();
  wake(far(), std::unique_lock(pair_->mutex));
}

void InprocConnection::give_up() {
  {
    std::lock_guard lock(pair_->mutex);
    if (near().verdict && near().inbox.empty() && far().inbox.empty()) return;
  }
  fail(error_of_closing_late(peer()));
}

bool InprocConnection::idle() const {
  std::lock_guard lock(pair_->mutex);
  return far().inbox.empty() && !far().in_delivery;
}

void InprocConnection::fail(const Error& error) {
  Ring<QueuedFrame> unsent, unread;
  {
    std::lock_guard lock(pair_->mutex);
    set_verdicts(error);
    std::swap(unsent, far().inbox);
    std::swap(unread, near().inbox);
    lent(side_).frames += unsent.size();
    lent(far_side()).frames += unread.size();
  }
  const std::size_t here = unsent.size(), there = unread.size();
  give_back_all(unsent, near());
  give_back_all(unread, far());
  note_given_back(side_, here);
  note_given_back(far_side(), there);
  ask_for_turn();
  wake(far(), std::unique_lock(pair_->mutex));
}

void InprocConnection::finish(const Error& error) {
  fail(error);
  if (reported_) return;
  while (const std::size_t frames = lent(side_).frames) lent(side_).frames.wait(frames);
  report_end(*near().verdict);
}

void InprocConnection::ask_for_turn() { wake(near(), std::unique_lock(pair_->mutex)); }

/// With the lock of its pair.
void InprocConnection::wake(InprocPair::End& end, std::unique_lock<std::mutex> lock) {
  if (end.has_turn) return;
  const std::shared_ptr<InprocConnection> owner = end.connection.lock();
  if (!owner) return;
  end.has_turn = true;
  lock.unlock();
  owner->dispatcher_->schedule(owner);
}

void InprocConnection::take_turn() {
  if (receiver_ == nullptr) guarded([&] { receiver_ = acceptor_(shared_from_this()); });
  std::unique_lock lock(pair_->mutex);
  if (!near().inbox.empty()) {
    const QueuedFrame frame = near().inbox.pop();
    near().in_delivery = true;
    ++lent(far_side()).frames;
    lock.unlock();
    deliver(frame);
    lock.lock();
  }
  if (far().closing && near().inbox.empty()) agree_on_end(lock);
  const bool more = !near().inbox.empty();
  const bool unsent = !far().inbox.empty() || lent(side_).frames > 0;
  const bool ended = !more && !unsent && near().verdict;
  near().has_turn = more || ended;
  lock.unlock();
  if (more) dispatcher_->schedule(shared_from_this());
  if (ended) report_end(*near().verdict);
}

/// The far end closes, and its last frame has been taken.
void InprocConnection::agree_on_end(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<InprocConnection> peer = far().connection.lock();
  if (!peer || near().verdict) return;
  peer->set_verdicts(error_of_closing_here(peer->peer()));
  lock.unlock();
  peer->ask_for_turn();
  lock.lock();
}

/// An exception of the receiver ends the connection.
template <typename Call>
bool InprocConnection::guarded(Call call) {
  try {
    call();
    return true;
  } catch (const std::exception&) {
    fail(error_of_current_exception(peer()));
  }
  return false;
}

void InprocConnection::deliver(const QueuedFrame& frame) {
  std::optional<std::span<std::byte>> place;  // none: the receiver threw
  if (!frame.shared) guarded([&] { place = take_payload(frame); });
  const FrameHeader header = frame.header;
  {
    std::lock_guard lock(pair_->mutex);
    near().in_delivery = false;
  }
  give_back(frame, far());
  note_given_back(far_side(), 1);
  if (place) guarded([&] { receiver_->on_frame(header, *place); });
  if (frame.shared) guarded([&] { receiver_->on_shared(header.id, frame.shared); });
}

/// Where the receiver wants the payload, which is there then.
std::span<std::byte> InprocConnection::take_payload(const QueuedFrame& frame) {
  const std::span<std::byte> place = checked_place(*receiver_, frame.header);
  near().meter.begin_copy(place.size());
  if (!place.empty()) std::memcpy(place.data(), frame.payload.data(), place.size());
  near().meter.count_received(frame.bytes());
  near().meter.end_copy(place.size());
  return place;
}

void InprocConnection::report_end(const Error& verdict) {
  const std::shared_ptr<InprocConnection> self = shared_from_this();
  dispatcher_->forget(self);
  reported_ = true;
  acceptor_ = nullptr;
  if (receiver_ != nullptr) receiver_->on_closed(verdict);
}

}  // namespace paceline
