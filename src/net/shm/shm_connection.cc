#include "net/shm/shm_connection.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace paceline {
namespace {

// Publishes each piece of this size once it is written, so that the peer reads while this side
// writes on.
constexpr std::size_t kWritePiece = 64 << 10;

std::array<std::byte, kFrameHeaderBytes> record_of(const QueuedFrame& frame) {
  auto bytes = encode(frame.header);
  if (frame.shared) std::memcpy(bytes.data(), &kSharedMagic, sizeof kSharedMagic);
  return bytes;
}

}  // namespace

void ShmFrameWriter::publish() {
  ring_.publish();
  sleep_.wake_peer(ShmSleep::kData);
}

bool ShmFrameWriter::write_whole(const QueuedFrame& frame) {
  if (frame.shared) return false;
  if (write_short(frame)) return true;
  const std::size_t bytes = frame.bytes(kFrameHeaderBytes);
  if (ring_.room(bytes) < bytes) return false;
  ring_.write(encode(frame.header));
  ring_.write(frame.payload);
  publish();
  return true;
}

bool ShmFrameWriter::write_short(const QueuedFrame& frame) {
  const std::span<std::byte> place = ring_.short_place(frame.bytes(kFrameHeaderBytes));
  if (place.empty()) return false;
  encode(frame.header, place.first<kFrameHeaderBytes>());
  std::ranges::copy(frame.payload, place.begin() + kFrameHeaderBytes);
  ring_.publish_short(place.size());
  sleep_.wake_peer(ShmSleep::kData);
  return true;
}

std::size_t ShmFrameWriter::write_some(const QueuedFrame& frame, std::size_t done,
                                       std::size_t most_bytes) {
  const std::size_t begin = done;
  if (frame.shared && done == 0) {
    // Passes a memory only when there is room for its header, so that the memory is passed only
    // once: the peer would take a second passing for the next memory.
    if (ring_.room(kFrameHeaderBytes) < kFrameHeaderBytes) return wait_for_room();
    if (!pass(frame)) return 0;
  }
  const auto header = record_of(frame);
  const std::size_t end =
      std::min(frame.bytes(kFrameHeaderBytes), done + std::max(most_bytes, kFrameHeaderBytes));
  while (done < end) {
    const auto rest = done < header.size() ? std::span(header).subspan(done)
                                           : frame.payload.subspan(done - header.size());
    const std::size_t written = write_piece(rest.first(std::min(rest.size(), end - done)));
    if (written == 0) break;
    done += written;
    if (done > kFrameHeaderBytes || done == end) publish();
  }
  if (done == kFrameHeaderBytes) publish();  // there may be no room for more
  return done == begin ? wait_for_room() : done - begin;
}

/// A writer that sleeps is woken only when half of the ring is free, so that it is woken less
/// often. A writer that polls goes on once there is room for a piece.
std::size_t ShmFrameWriter::wait_for_room() {
  goal_ = ring_.head() - kShmRingBytes + kWritePiece;
  return 0;
}

std::size_t ShmFrameWriter::write_piece(std::span<const std::byte> bytes) {
  const std::size_t wanted = std::min(bytes.size(), kWritePiece);
  const std::size_t piece = std::min(wanted, ring_.room(wanted));
  if (piece < std::min(wanted, kFrameHeaderBytes)) return 0;  // a header is never split
  ring_.write(bytes.first(piece));
  return piece;
}

/// Sends the descriptor over the socket before its header is in the ring. The peer takes the
/// descriptor when it reads the header. Returns false if kMostSharedWaiting descriptors already
/// wait to be taken.
bool ShmFrameWriter::pass(const QueuedFrame& frame) {
  while (!passed_.empty() && ring_.is_read(passed_.front())) passed_.pop();
  if (passed_.size() == kMostSharedWaiting) {
    goal_ = passed_.front();
    return false;
  }
  socket_.pass(*frame.shared);
  passed_.push(ring_.head() + kFrameHeaderBytes);
  return true;
}

namespace {

void relax() { __builtin_ia32_pause(); }

}  // namespace

ShmConnection::ShmConnection(std::shared_ptr<ShmConnections> connections, FileDescriptor socket,
                             std::shared_ptr<SharedMemory> own,
                             std::shared_ptr<const SharedMemory> peers, std::string peer)
    : QueuedConnection(std::move(peer), connections->poller(), kFrameHeaderBytes),
      connections_(std::move(connections)),
      pair_(std::move(own), std::move(peers)),
      sleep_(pair_),
      socket_(connections_->poller(), std::move(socket)),
      reader_(pair_, sleep_, meter()),
      writer_(pair_, reader_.ring(), sleep_, socket_) {}

ShmConnection::~ShmConnection() {
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // the thread held the last reference, and is about to end
  } else {
    thread_.join();
  }
}

void ShmConnection::start(Receiver& receiver) {
  std::lock_guard reading(reading_mutex_);
  receiver_ = &receiver;
  if (!connections_->add(self())) throw Error(ErrorCode::kCancelled, "the link is being destroyed");
  take_in();
  try {
    thread_ = std::thread([connection = self()] { connection->run(); });
  } catch (const std::system_error&) {
    refuse();
    throw Error(ErrorCode::kUnavailable, "no thread left for the connection to " + peer());
  }
}

void ShmConnection::refuse() {
  std::lock_guard reading(reading_mutex_);
  if (finished_) return;
  receiver_ = nullptr;
  fail({ErrorCode::kCancelled, "refused"});
  finish();
}

void ShmConnection::run() {
  while (!finished_) {
    const std::uint32_t wakes = sleep_.wakes();
    if (!own_turn() && !spin_in_message() && !finished_) sleep(wakes);
  }
  ran_ = true;
}

bool ShmConnection::own_turn() {
  bool done = false;
  {
    std::lock_guard reading(reading_mutex_);
    done = read_turn();
  }
  return write_turn() || done;
}

/// Polls for a moment in the middle of a message, since the peer is about to write or read its
/// rest.
bool ShmConnection::spin_in_message() const {
  if (!waits_for_room() && !reader_.in_message()) return false;
  const TimePoint until = std::chrono::steady_clock::now() + connections_->spin();
  while (!finished_ && std::chrono::steady_clock::now() < until) {
    if (has_come()) return true;
    relax();
  }
  return false;
}

void ShmConnection::sleep(std::uint32_t wakes) {
  sleep_.announce(ShmSleep::kData | (waits_for_room() ? ShmSleep::kRoom : ShmSleep::kNothing));
  if (!has_come()) sleep_.sleep(wakes);
  sleep_.awake();
}

void ShmConnection::on_readable() { take_in(); }

void ShmConnection::take_in() {
  try {
    if (socket_.take_in(self())) return;
    gone_ = true;
    sleep_.wake_here();
  } catch (const Error&) {
    fail(error_of_current_exception(peer()));
  }
}

bool ShmConnection::help() {
  bool done = false;
  {
    std::unique_lock reading(reading_mutex_, std::try_to_lock);
    done = reading.owns_lock() && read_turn();
  }
  const bool wrote = write_turn();
  if (wrote) leave_rest();
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
  // This is read before the turn, since the turn may still find data.
  const bool nothing_follows = gone_ || is_closed_by_peer();
  try {
    if (reader_.turn(*receiver_, socket_)) return Outcome::kSome;
    return nothing_follows ? Outcome::kEnd : Outcome::kNothing;
  } catch (const std::exception&) {
    fail(error_of_current_exception(peer()));
  }
  return Outcome::kEnd;
}

void ShmConnection::finish() {
  const std::shared_ptr<ShmConnection> kept = self();
  {
    std::lock_guard lock(writing_mutex_);
    finished_ = true;
  }
  const Error error = end_cause().reason(reader_.position());
  socket_.close();
  drop_queue();
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

void ShmConnection::share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) {
  PACELINE_CHECK(memory != nullptr);
  queue({.header = {.id = id}, .payload = {}, .shared = std::move(memory)});
}

/// Wakes this connection's own thread. That thread may be asleep without waiting for room, and then
/// a peer that makes room would not wake it.
void ShmConnection::leave_rest() {
  if (waits_for_room()) sleep_.wake_here();
}

std::size_t ShmConnection::write_at_once(const QueuedFrame& frame) {
  try {
    return writer_.write_whole(frame) ? frame.bytes(kFrameHeaderBytes) : 0;
  } catch (const Error&) {
    return 0;
  }
}

QueuedConnection::Written ShmConnection::write(const Ring<QueuedFrame>& frames, std::size_t done,
                                               std::size_t most_bytes,
                                               std::unique_lock<std::mutex>& lock) {
  // This is a copy, because another thread may queue a frame while the lock is released.
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const QueuedFrame frame = frames.front();
  lock.unlock();
  const Written written = guarded_write(frame, done, most_bytes);
  lock.lock();
  return written;
}

/// Writes nothing once the connection is finished, since the payload may be given back then.
QueuedConnection::Written ShmConnection::guarded_write(const QueuedFrame& frame, std::size_t done,
                                                       std::size_t most_bytes) {
  std::unique_lock lock(writing_mutex_);
  if (finished_) return {.room = Room::kNone};
  try {
    const std::size_t bytes = writer_.write_some(frame, done, most_bytes);
    return {bytes, bytes > 0 ? Room::kMore : Room::kNone};
  } catch (const Error&) {
    lock.unlock();
    fail(error_of_current_exception(peer()));
    return {.room = Room::kFailed};
  }
}

void ShmConnection::shut_writing() {
  pair_.mine().closed.store(1);
  sleep_.wake_peer(ShmSleep::kData);
}

void ShmConnection::cut() {
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
    fail({ErrorCode::kUnavailable, text_of_silence(peer(), connections_->dead_after())});
}

}  // namespace paceline
