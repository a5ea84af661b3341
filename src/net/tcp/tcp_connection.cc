#include "net/tcp/tcp_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "base/check.h"
#include "net/tcp/frame_writer.h"
#include "net/tcp/tcp_socket.h"

namespace paceline {
namespace {

// What send copies into the socket on the caller's thread; the rest is the poller's.
constexpr std::size_t kDirectBytes = 256 << 10;
// A poller's thread turns to other connections after this much.
constexpr std::size_t kFlushBytes = 8 << 20;

}  // namespace

TcpConnection::TcpConnection(std::shared_ptr<TcpConnections> connections, FileDescriptor data,
                             FileDescriptor control, std::string peer)
    : connections_(std::move(connections)),
      peer_(std::move(peer)),
      reader_(meter_),
      end_(peer_),
      data_(std::in_place, connections_->poller(), std::move(data)),
      heartbeat_(std::move(control)) {}

void TcpConnection::start(Receiver& receiver) {
  std::lock_guard reading(reading_mutex_);
  receiver_ = &receiver;
  if (!connections_->add(shared_from_this()))
    throw Error(ErrorCode::kCancelled, "the link is being destroyed");
  set_spinning(connections_->spinning());
}

void TcpConnection::refuse() {
  std::lock_guard reading(reading_mutex_);
  fail({ErrorCode::kCancelled, "refused"});
  finish();
}

// Reading.

void TcpConnection::on_readable() {
  std::lock_guard reading(reading_mutex_);
  read_waits_ = false;
  read_turn();
  if (!connections_->spinning()) wait_readable();
}

bool TcpConnection::help() {
  bool done = false;
  {
    std::unique_lock reading(reading_mutex_, std::try_to_lock);
    done = reading.owns_lock() && read_turn();
  }
  return (waiting_ && has_room() && write_turn()) || done;
}

void TcpConnection::set_spinning(bool spinning) {
  std::lock_guard reading(reading_mutex_);
  if (spinning) return pause();
  wait_readable();
  if (waiting_) ask_poller_to_write();
}

/// With the reading mutex.
void TcpConnection::wait_readable() {
  if (finished_ || read_waits_) return;
  read_waits_ = true;
  std::lock_guard lock(socket_mutex_);
  data_->wait_readable(shared_from_this());
}

/// With the reading mutex. A pending wait for writing keeps the poller's threads listening.
void TcpConnection::pause() {
  std::lock_guard lock(socket_mutex_);
  if (!data_ || writable_asked_) return;
  data_->pause();
  read_waits_ = false;
}

bool TcpConnection::read_turn() {
  if (finished_ || in_turn_) return false;  // in_turn_: a receiver has called help
  in_turn_ = true;
  const FrameReader::Outcome outcome = guarded_turn();
  in_turn_ = false;
  if (outcome == FrameReader::Outcome::kClosed) finish();
  if (outcome == FrameReader::Outcome::kNothing) return false;
  heard_.store(true, std::memory_order_relaxed);
  return true;
}

FrameReader::Outcome TcpConnection::guarded_turn() {
  try {
    return reader_.turn(data_->fd(), *receiver_);
  } catch (const FrameReader::SocketFailure& failure) {
    fail(error_of_socket(peer_, failure.error_number));
  } catch (const std::exception&) {
    fail(end_.of_current_exception());
  }
  return FrameReader::Outcome::kClosed;
}

void TcpConnection::finish() {
  finished_ = true;
  const Error error = end_.verdict(reader_.position());
  {
    std::scoped_lock lock(writing_mutex_, socket_mutex_);
    data_.reset();
  }
  Ring<QueuedFrame> unsent;
  {
    std::lock_guard lock(queue_mutex_);
    ended_ = true;
    std::swap(unsent, queue_);
  }
  if (!unsent.empty()) meter_.end();
  give_back_all(unsent);
  connections_->forget(this);
  if (receiver_ != nullptr) receiver_->on_closed(error);
}

void TcpConnection::end(const Error& error) {
  std::lock_guard reading(reading_mutex_);
  if (finished_) return;
  fail(error);
  finish();
}

// Writing.

void TcpConnection::send(const FrameHeader& header, std::span<const std::byte> payload,
                         void (*sent)(void* context), void* context) {
  PACELINE_CHECK(payload.size() <= kMaxPayloadBytes);
  QueuedFrame frame{header, payload, sent, context};
  frame.header.payload_bytes = std::uint32_t(payload.size());
  std::unique_lock lock(queue_mutex_);
  if (closing_ || ended_) {
    lock.unlock();
    return frame.give_back();
  }
  if (queue_.empty()) meter_.begin();
  queue_.push(frame);
  if (flushing_) return;
  flushing_ = true;
  flush(lock, kDirectBytes);
}

void TcpConnection::on_writable() {
  {
    std::lock_guard lock(socket_mutex_);
    writable_asked_ = false;
  }
  write_turn();
  if (connections_->spinning()) set_spinning(true);
}

/// Goes on with what found no room, unless another thread does.
bool TcpConnection::write_turn() {
  std::unique_lock lock(queue_mutex_);
  if (!waiting_.exchange(false)) return false;
  flush(lock, kFlushBytes);
  return true;
}

/// Room that is worth a call, as the system sees it: more than a few bytes.
bool TcpConnection::has_room() {
  std::lock_guard lock(writing_mutex_);
  pollfd room{data_ ? data_->fd() : -1, POLLOUT, 0};
  return ::poll(&room, 1, 0) > 0;
}

/// The caller has set flushing_, and is the only one here. Returns with or without the lock.
void TcpConnection::flush(std::unique_lock<std::mutex>& lock, std::size_t most_bytes) {
  std::size_t total = 0;
  while (!ended_ && !queue_.empty()) {
    if (total >= most_bytes) return wait_writable();
    FrameBatch batch(queue_, front_done_, most_bytes - total);
    lock.unlock();
    const std::ptrdiff_t written = write(batch);
    if (written < 0 && errno != EAGAIN && errno != EINTR)
      return fail(error_of_socket(peer_, errno));
    lock.lock();
    if (ended_) return;
    if (written > 0) take_sent(std::size_t(written), lock);
    if (ended_) return;
    if (written < std::ptrdiff_t(batch.bytes())) return wait_writable();
    total += batch.bytes();
  }
  flushing_ = false;
  const bool close_now = closing_ && !ended_;
  lock.unlock();
  if (close_now) shut_writing();
}

std::ptrdiff_t TcpConnection::write(FrameBatch& batch) {
  std::lock_guard lock(writing_mutex_);
  errno = EPIPE;
  return data_ ? batch.send(data_->fd()) : -1;
}

void TcpConnection::take_sent(std::size_t bytes, std::unique_lock<std::mutex>& lock) {
  std::array<QueuedFrame, FrameBatch::kMostFrames> done;
  std::size_t count = 0;
  front_done_ += bytes;
  while (!queue_.empty() && front_done_ >= queue_.front().bytes()) {
    front_done_ -= queue_.front().bytes();
    done[count++] = queue_.pop();
  }
  meter_.count_sent(bytes);
  if (count > 0 && queue_.empty()) meter_.end();
  lock.unlock();
  for (std::size_t i = 0; i < count; ++i) done[i].give_back();
  lock.lock();
}

void TcpConnection::wait_writable() {
  waiting_ = true;
  if (!connections_->spinning()) ask_poller_to_write();
}

void TcpConnection::ask_poller_to_write() {
  std::lock_guard lock(socket_mutex_);
  if (!data_ || std::exchange(writable_asked_, true)) return;
  data_->wait_writable(shared_from_this());
}

bool TcpConnection::idle() const {
  std::lock_guard lock(queue_mutex_);
  return queue_.empty();
}

// Ending.

void TcpConnection::close(Deadline deadline) {
  std::unique_lock lock(queue_mutex_);
  if (closing_ || ended_) return;
  closing_ = true;
  const bool at_rest = !flushing_;
  lock.unlock();
  if (at_rest) shut_writing();
  connections_->poller()->call_at(deadline.time(), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->fail(self->end_.not_taken_in_time());
  });
}

/// The peer reads to the end, and closes; that is what ends this side.
void TcpConnection::shut_writing() {
  end_.note_closed_here();
  std::lock_guard lock(socket_mutex_);
  if (data_) ::shutdown(data_->fd(), SHUT_WR);
}

void TcpConnection::fail(const Error& error) {
  end_.note(error);
  std::lock_guard lock(socket_mutex_);
  if (data_) ::shutdown(data_->fd(), SHUT_RDWR);
}

void TcpConnection::tick() {
  const bool heard = heard_.exchange(false, std::memory_order_relaxed);
  Heartbeat::Pulse pulse;
  {
    std::lock_guard lock(socket_mutex_);
    pulse = heartbeat_.tick(heard);
  }
  if (pulse == Heartbeat::Pulse::kSilent)
    fail({ErrorCode::kUnavailable, text_of_silence(peer_, connections_->dead_after())});
  if (pulse == Heartbeat::Pulse::kGarbage)
    fail({ErrorCode::kDataLoss, peer_ + " sent garbage instead of heartbeats"});
  // While somebody is said to spin no thread waits for the end. Receivers take their time, so this
  // is no thread to call them.
  if (end_.noted())
    connections_->poller()->call_at(std::chrono::steady_clock::now(), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->help();
    });
}

}  // namespace paceline
