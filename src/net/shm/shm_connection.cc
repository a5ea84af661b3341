#include "net/shm/shm_connection.h"

#include <utility>

#include "base/check.h"

namespace paceline {
namespace {

// Written under the queue's lock, without entering the queue.
constexpr std::size_t kAtOnceBytes = 16 << 10;
// What send copies into the ring on the caller's thread; the rest is the own thread's.
constexpr std::size_t kShmDirectBytes = 256 << 10;
constexpr std::size_t kShmFlushBytes = 8 << 20;

void relax() { __builtin_ia32_pause(); }

}  // namespace

ShmConnection::ShmConnection(std::shared_ptr<ShmConnections> connections, FileDescriptor socket,
                             std::shared_ptr<SharedMemory> own,
                             std::shared_ptr<const SharedMemory> peers, std::string peer)
    : connections_(std::move(connections)),
      peer_(std::move(peer)),
      pair_(std::move(own), std::move(peers)),
      sleep_(pair_),
      socket_(connections_->poller(), std::move(socket)),
      reader_(pair_, sleep_, meter_),
      end_(peer_),
      writer_(pair_, sleep_, socket_) {}

ShmConnection::~ShmConnection() {
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // it held the connection last, and is about to end
  } else {
    thread_.join();
  }
}

void ShmConnection::start(Receiver& receiver) {
  std::lock_guard reading(reading_mutex_);
  receiver_ = &receiver;
  if (!connections_->add(shared_from_this()))
    throw Error(ErrorCode::kCancelled, "the link is being destroyed");
  take_in();
  thread_ = std::thread([self = shared_from_this()] { self->run(); });
}

void ShmConnection::refuse() {
  std::lock_guard reading(reading_mutex_);
  fail({ErrorCode::kCancelled, "refused"});
  finish();
}

// The own thread.

void ShmConnection::run() {
  while (!finished_) {
    const std::uint32_t wakes = sleep_.wakes();
    if (!own_turn() && !spin_in_message() && !finished_) sleep(wakes);
  }
  ran_ = true;
}

/// While others spin they do it all, but for the end.
bool ShmConnection::own_turn() {
  if (connections_->spinning() && !is_ending()) return false;
  bool done = false;
  {
    std::lock_guard reading(reading_mutex_);
    done = read_turn();
  }
  return flush_turn() || done;
}

bool ShmConnection::must_not_sleep() const {
  return is_ending() || (!connections_->spinning() && has_come());
}

/// In the middle of a message the peer is about to write, or to read, more.
bool ShmConnection::spin_in_message() const {
  if (connections_->spinning() || !(waiting_ || reader_.in_message())) return false;
  const TimePoint until = std::chrono::steady_clock::now() + connections_->spin();
  while (!finished_ && std::chrono::steady_clock::now() < until) {
    if (must_not_sleep()) return true;
    relax();
  }
  return false;
}

void ShmConnection::sleep(std::uint32_t wakes) {
  const unsigned reasons = ShmSleep::kData | (waiting_ ? ShmSleep::kRoom : ShmSleep::kNothing);
  sleep_.announce(connections_->spinning() ? ShmSleep::kNothing : reasons);
  if (!must_not_sleep()) sleep_.sleep(wakes);
  sleep_.awake();
}

// Reading.

void ShmConnection::on_readable() { take_in(); }

void ShmConnection::take_in() {
  try {
    if (socket_.take_in(shared_from_this())) return;
    gone_ = true;
    sleep_.wake_here();
  } catch (const Error&) {
    fail(end_.of_current_exception());
  }
}

bool ShmConnection::help() {
  bool done = false;
  {
    std::unique_lock reading(reading_mutex_, std::try_to_lock);
    done = reading.owns_lock() && read_turn();
  }
  const bool wrote = flush_turn();
  if (wrote) leave_to_own_thread();
  return wrote || done;
}

bool ShmConnection::read_turn() {
  if (finished_ || in_turn_) return false;  // in_turn_: a receiver has called help
  in_turn_ = true;
  const Outcome outcome = guarded_turn();
  in_turn_ = false;
  if (outcome == Outcome::kEnd) finish();
  return outcome == Outcome::kSome;
}

ShmConnection::Outcome ShmConnection::guarded_turn() {
  if (failed_) return Outcome::kEnd;
  const bool nothing_follows = gone_ || is_closed_by_peer();  // known before it is looked
  try {
    if (reader_.turn(*receiver_, socket_)) return Outcome::kSome;
    return nothing_follows ? Outcome::kEnd : Outcome::kNothing;
  } catch (const std::exception&) {
    fail(end_.of_current_exception());
  }
  return Outcome::kEnd;
}

void ShmConnection::finish() {
  const std::shared_ptr<ShmConnection> self = shared_from_this();
  {
    std::lock_guard lock(writing_mutex_);
    finished_ = true;
  }
  const Error error = end_.verdict(reader_.position());
  socket_.close();
  Ring<QueuedFrame> unsent;
  {
    std::lock_guard lock(queue_mutex_);
    ended_ = true;
    std::swap(unsent, queue_);
  }
  if (!unsent.empty()) meter_.end();
  give_back_all(unsent);
  sleep_.wake_here();
  if (receiver_ != nullptr) receiver_->on_closed(error);
  connections_->forget(this);
}

void ShmConnection::end(const Error& error) {
  {
    std::lock_guard reading(reading_mutex_);
    if (!finished_) {
      fail(error);
      finish();
    }
  }
  if (!thread_.joinable()) return;
  while (!ran_) sleep_.wake_here();
  thread_.join();
}

// Writing.

void ShmConnection::send(const FrameHeader& header, std::span<const std::byte> payload,
                         void (*sent)(void* context), void* context) {
  PACELINE_CHECK(payload.size() <= kMaxPayloadBytes);
  QueuedFrame frame{header, payload, sent, context};
  frame.header.payload_bytes = std::uint32_t(payload.size());
  queue(std::move(frame));
}

void ShmConnection::share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) {
  PACELINE_CHECK(memory != nullptr);
  queue({.header = {.id = id}, .payload = {}, .shared = std::move(memory)});
}

void ShmConnection::queue(QueuedFrame frame) {
  std::unique_lock lock(queue_mutex_);
  const bool at_rest = !flushing_ && queue_.empty();
  if (closing_ || ended_ || (at_rest && write_at_once(frame))) {
    lock.unlock();
    return frame.give_back();
  }
  if (queue_.empty()) meter_.begin();
  queue_.push(std::move(frame));
  if (flushing_) return;
  flushing_ = true;
  flush(lock, kShmDirectBytes);
  leave_to_own_thread();
}

/// It may sleep, and not for room: then it would not be woken by a peer that makes some.
void ShmConnection::leave_to_own_thread() {
  if (waiting_ && !connections_->spinning()) sleep_.wake_here();
}

bool ShmConnection::write_at_once(const QueuedFrame& frame) {
  if (frame.bytes() > kAtOnceBytes || frame.shared) return false;
  try {
    if (!writer_.write_whole(frame)) return false;
  } catch (const Error&) {
    return false;  // the same is found when it is written from the queue
  }
  meter_.count_sent(frame.bytes());
  return true;
}

/// Goes on with what found no room, unless another thread does.
bool ShmConnection::flush_turn() {
  if (!may_write()) return false;
  std::unique_lock lock(queue_mutex_);
  if (!waiting_.exchange(false)) return false;
  flush(lock, kShmFlushBytes);
  return true;
}

/// The caller has set flushing_, and is the only one here. Returns with or without the lock.
void ShmConnection::flush(std::unique_lock<std::mutex>& lock, std::size_t most_bytes) {
  std::size_t total = 0;
  while (!ended_ && !queue_.empty()) {
    std::size_t written = 0;
    if (total < most_bytes) {
      const QueuedFrame frame = queue_.front();
      lock.unlock();
      written = guarded_write(frame, front_done_, most_bytes - total);
      lock.lock();
    }
    if (ended_) return;
    if (written == 0) {
      waiting_ = true;
      return;
    }
    total += written;
    take_written(written, lock);
  }
  flushing_ = false;
  const bool close_now = closing_ && !ended_;
  lock.unlock();
  if (close_now) shut_writing();
}

/// The payload may be given back as soon as the connection is finished.
std::size_t ShmConnection::guarded_write(const QueuedFrame& frame, std::size_t done,
                                         std::size_t most_bytes) {
  std::unique_lock lock(writing_mutex_);
  if (finished_) return 0;
  try {
    return writer_.write_some(frame, done, most_bytes);
  } catch (const Error&) {
    lock.unlock();
    fail(end_.of_current_exception());
    return 0;
  }
}

void ShmConnection::take_written(std::size_t bytes, std::unique_lock<std::mutex>& lock) {
  front_done_ += bytes;
  if (!queue_.front().shared) meter_.count_sent(bytes);
  if (front_done_ < queue_.front().bytes()) return;
  front_done_ = 0;
  const QueuedFrame done = queue_.pop();
  if (queue_.empty()) meter_.end();
  lock.unlock();
  done.give_back();
  lock.lock();
}

bool ShmConnection::idle() const {
  std::lock_guard lock(queue_mutex_);
  return queue_.empty();
}

// Ending.

void ShmConnection::close(Deadline deadline) {
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
void ShmConnection::shut_writing() {
  end_.note_closed_here();
  pair_.mine().closed.store(1);
  sleep_.wake_peer(ShmSleep::kData);
}

void ShmConnection::fail(const Error& error) {
  end_.note(error);
  failed_ = true;
  socket_.shut_down();
  sleep_.wake_here();
}

void ShmConnection::tick() {
  if (is_ending()) sleep_.wake_here();
  ++pair_.mine().beats;
  const ShmBlock& theirs = pair_.theirs();
  const Signs signs{theirs.beats.load(), theirs.head.load(), theirs.tail.load()};
  if (silence_.tick(std::exchange(signs_, signs) != signs))
    fail({ErrorCode::kUnavailable, text_of_silence(peer_, connections_->dead_after())});
}

}  // namespace paceline
