#include "net/queued_connection.h"

#include <utility>

#include "base/check.h"

namespace paceline {
namespace {

// A frame up to this long is written under the queue's lock if nothing else waits to be written.
// Letting other threads queue frames meanwhile would take longer.
constexpr std::size_t kAtOnceBytes = 16 << 10;
// A call of send writes at most this much on the caller's thread; another thread writes the rest.
constexpr std::size_t kDirectBytes = 256 << 10;
// A thread that continues to write turns to other connections after this many bytes.
constexpr std::size_t kFlushBytes = 8 << 20;

}  // namespace

QueuedConnection::QueuedConnection(std::string peer, std::shared_ptr<Poller> poller,
                                   std::size_t framing_bytes)
    : peer_(std::move(peer)),
      poller_(std::move(poller)),
      framing_bytes_(framing_bytes),
      end_(peer_) {}

void QueuedConnection::send(const FrameHeader& header, std::span<const std::byte> payload,
                            void (*sent)(void* context), void* context) {
  queue({header, payload, sent, context});
}

void QueuedConnection::send_copy(const FrameHeader& header, std::span<const std::byte> payload) {
  QueuedFrame frame{header, payload};
  frame.lent_by_call = true;
  queue(std::move(frame));
}

void QueuedConnection::queue(QueuedFrame frame) {
  PACELINE_CHECK(frame.payload.size() <= kMaxPayloadBytes);
  frame.header.payload_bytes = std::uint32_t(frame.payload.size());
  std::unique_lock lock(queue_mutex_);
  const bool at_rest = !flushing_ && queue_.empty();
  if (closing_ || ended_ || (at_rest && write_short(frame))) {
    lock.unlock();
    return frame.give_back();
  }
  if (!at_rest && frame.lent_by_call) frame.keep_payload();
  if (queue_.empty()) meter_.begin();
  queue_.push(std::move(frame));
  if (flushing_) return;
  flushing_ = true;
  flush(std::move(lock), kDirectBytes);
  if (waiting_) leave_rest();
}

/// Writes a short frame. The caller holds the lock, and the connection is at rest. Returns true if
/// the whole frame was written. If only its first bytes were written, the rest is written later.
bool QueuedConnection::write_short(const QueuedFrame& frame) {
  const std::size_t bytes = frame.bytes(framing_bytes_);
  if (bytes > kAtOnceBytes || frame.shared) return false;
  const std::size_t written = write_at_once(frame);
  meter_.count_sent(written);
  if (written == bytes) return true;
  front_done_ = written;
  return false;
}

bool QueuedConnection::go_on() {
  std::unique_lock lock(queue_mutex_);
  if (!waiting_.exchange(false)) return false;
  flush(std::move(lock), kFlushBytes);
  return true;
}

/// The caller has set flushing_, so no other thread is in this function.
void QueuedConnection::flush(std::unique_lock<std::mutex> lock, std::size_t most_bytes) {
  std::size_t total = 0;
  while (!ended_ && !queue_.empty()) {
    const Written written = total < most_bytes
                                ? write(queue_, front_done_, most_bytes - total, lock)
                                : Written{.room = Room::kNone};
    if (ended_ || written.room == Room::kFailed) return;
    take_written(written.bytes, lock);
    if (ended_) return;
    if (written.room == Room::kNone) {
      if (!queue_.empty() && queue_.front().lent_by_call) queue_.front().keep_payload();
      waiting_ = true;
      return;
    }
    total += written.bytes;
  }
  flushing_ = false;
  const bool close_now = closing_ && !ended_;
  lock.unlock();
  if (close_now) end_writing();
}

/// Counts `bytes` more as written. Releases the lock while it gives back frames that are now
/// written whole.
void QueuedConnection::take_written(std::size_t bytes, std::unique_lock<std::mutex>& lock) {
  front_done_ += bytes;
  if (!queue_.front().shared) meter_.count_sent(bytes);
  while (!ended_ && !queue_.empty() && front_done_ >= queue_.front().bytes(framing_bytes_)) {
    front_done_ -= queue_.front().bytes(framing_bytes_);
    const QueuedFrame done = queue_.pop();
    if (queue_.empty()) meter_.end();
    lock.unlock();
    done.give_back();
    lock.lock();
  }
}

bool QueuedConnection::idle() const {
  const std::lock_guard lock(queue_mutex_);
  return queue_.empty();
}

void QueuedConnection::close(Deadline deadline) {
  std::unique_lock lock(queue_mutex_);
  if (closing_ || ended_) return;
  closing_ = true;
  const bool at_rest = !flushing_;
  lock.unlock();
  if (at_rest) end_writing();
  poller_->call_at(deadline.time(), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->fail(error_of_closing_late(self->peer_));
  });
}

void QueuedConnection::end_writing() {
  end_.note(error_of_closing_here(peer_));
  shut_writing();
}

void QueuedConnection::fail(const Error& error) {
  end_.note(error);
  cut();
}

void QueuedConnection::drop_queue() {
  Ring<QueuedFrame> unsent;
  {
    const std::lock_guard lock(queue_mutex_);
    ended_ = true;
    std::swap(unsent, queue_);
  }
  if (!unsent.empty()) meter_.end();
  give_back_all(unsent);
}

}  // namespace paceline
