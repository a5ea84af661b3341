#include "net/tcp/tcp_connection.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "net/tcp/tcp_socket.h"
#include "net/tls/link_streams.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr char kBeat = 'H';

}  // namespace

Heartbeat::Pulse Heartbeat::tick(bool heard) {
  // If the socket is full, the peer does not read, and its own silence will show that.
  if (silence_.beat_is_due()) {
    char beat = kBeat;
    const iovec part{&beat, 1};
    control_.stream->write({&part, 1});
  }
  const bool beats = listen();
  const bool dead = silence_.tick(heard || beats);
  return dead ? Pulse::kSilent : Pulse::kAlive;
}

// The other host's system acknowledges heartbeats even when the peer's process is stopped. If this
// system does not know, the other host counts as reachable.
bool Heartbeat::is_acknowledged(Duration lately) const {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(control_.fd.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return true;
  int waiting = 0;  // bytes; perhaps not even sent, if a cable is out
  if (::ioctl(control_.fd.get(), SIOCOUTQ, &waiting) != 0) return true;
  return waiting == 0 || std::chrono::milliseconds(info.tcpi_last_ack_recv) < lately;
}

bool Heartbeat::listen() {
  std::array<char, 256> bytes;
  bool beats = false;
  while (true) {
    // A control socket that is closed gives no reason; the data socket will.
    const iovec part{bytes.data(), bytes.size()};
    const std::ptrdiff_t got = control_.stream->read({&part, 1});
    if (got <= 0) return beats;
    beats = true;
    const std::span<const char> come = std::span(bytes).first(std::size_t(got));
    if (std::any_of(come.begin(), come.end(), [](char b) { return b != kBeat; })) {
      // A listener that refuses a caller says so on each of its sockets.
      check_may_be_plain(std::as_bytes(come));
      throw Error(ErrorCode::kDataLoss, "sent garbage instead of heartbeats");
    }
    if (come.size() < bytes.size() && !control_.stream->holds_unread()) return beats;
  }
}

namespace {

/// Writes this many bytes at a time. The checksum of these bytes is taken just before, so they
/// still lie in a cache.
constexpr std::size_t kPieceBytes = 256 << 10;

}  // namespace

TcpConnection::TcpConnection(std::shared_ptr<TcpConnections> connections, StreamSocket data,
                             StreamSocket control, std::string peer, Made made)
    : QueuedConnection(std::move(peer), connections->poller(), kTcpFramingBytes),
      connections_(std::move(connections)),
      made_(made),
      reader_(meter()),
      stream_(std::move(data.stream)),
      data_(std::in_place, connections_->poller(), std::move(data.fd)),
      heartbeat_(std::move(control)) {}

void TcpConnection::start(Receiver& receiver) {
  {
    std::lock_guard reading(reading_mutex_);
    receiver_ = &receiver;
    if (!connections_->add(self()))
      throw Error(ErrorCode::kCancelled, "the link is being destroyed");
    wait_readable();
    leave_rest();
  }
  // The first frames may have arrived together with bytes that were read earlier. The socket no
  // longer announces them, so a thread of the poller looks for them.
  if (stream_->holds_unread()) help_soon();
}

void TcpConnection::refuse() {
  std::lock_guard reading(reading_mutex_);
  fail({ErrorCode::kCancelled, "refused"});
  finish();
}

// Functions that read.

void TcpConnection::on_readable() {
  std::lock_guard reading(reading_mutex_);
  read_waits_ = false;
  read_turn();
  wait_readable();
}

bool TcpConnection::help() {
  bool done = false;
  {
    std::unique_lock reading(reading_mutex_, std::try_to_lock);
    done = reading.owns_lock() && read_turn();
  }
  const bool wrote = waits_for_room() && has_room() && go_on();
  if (wrote) leave_rest();
  return wrote || done;
}

bool TcpConnection::lend() {
  const std::unique_lock reading(reading_mutex_, std::try_to_lock);
  if (!reading || in_turn_ || finished_) return false;
  lent_ = true;
  stop_waiting();
  return true;
}

void TcpConnection::take_back() {
  std::lock_guard reading(reading_mutex_);
  lent_ = false;
  wait_readable();
}

int TcpConnection::fd() const {
  std::lock_guard lock(socket_mutex_);
  return data_ ? data_->fd() : -1;
}

std::optional<Duration> TcpConnection::round_trip() const {
  std::lock_guard lock(socket_mutex_);
  return data_ ? measured_round_trip() : round_trip_;
}

/// The caller holds the socket mutex while there is a socket.
std::optional<Duration> TcpConnection::measured_round_trip() const {
  const std::optional<TcpWay> way = way_of(data_->fd());
  return way ? std::optional(way->round_trip) : std::nullopt;
}

bool TcpConnection::in_message() {
  std::lock_guard reading(reading_mutex_);
  return reader_.in_message();
}

/// The caller holds the reading mutex. Does nothing if the poller already waits, or if the socket
/// is lent.
void TcpConnection::wait_readable() {
  if (finished_ || read_waits_ || lent_) return;
  read_waits_ = true;
  std::lock_guard lock(socket_mutex_);
  data_->wait_readable(self());
}

/// The caller holds the reading mutex.
void TcpConnection::stop_waiting() {
  if (!std::exchange(read_waits_, false)) return;
  std::lock_guard lock(socket_mutex_);
  if (data_) data_->cancel_readable();
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
    return reader_.turn(*stream_, *receiver_);
  } catch (const FrameReader::SocketFailure& failure) {
    fail(error_of_socket(peer(), failure.error_number));
  } catch (const std::exception&) {
    fail(error_of_current_exception(peer()));
  }
  return FrameReader::Outcome::kClosed;
}

void TcpConnection::finish() {
  finished_ = true;
  const Error error = end_cause().reason(reader_.position());
  {
    std::scoped_lock lock(writing_mutex_, socket_mutex_);
    round_trip_ = measured_round_trip();
    data_.reset();
  }
  drop_queue();
  connections_->forget(this);
  if (receiver_ != nullptr) receiver_->on_closed(error);
}

void TcpConnection::end(const Error& error) {
  std::lock_guard reading(reading_mutex_);
  if (finished_) return;
  fail(error);
  finish();
}

// Functions that write.

void TcpConnection::on_writable() {
  {
    std::lock_guard lock(socket_mutex_);
    writable_asked_ = false;
  }
  go_on();
  leave_rest();
}

std::size_t TcpConnection::write_at_once(const QueuedFrame& frame) {
  FrameBatch batch(frame);
  ChecksumSoFar checksum;
  return std::size_t(std::max<std::ptrdiff_t>(write(batch, checksum), 0));
}

QueuedConnection::Written TcpConnection::write(const Ring<QueuedFrame>& frames, std::size_t done,
                                               std::size_t most_bytes,
                                               std::unique_lock<std::mutex>& lock) {
  FrameBatch batch(frames, done, std::min(most_bytes, kPieceBytes));
  const std::size_t first_bytes = frames.front().bytes(kTcpFramingBytes);
  lock.unlock();
  const std::ptrdiff_t sent = write(batch, first_checksum_);
  lock.lock();  // the connection may have ended meanwhile, and its frames were then given back
  if (sent < 0) return {.room = Room::kFailed};
  if (done + std::size_t(sent) >= first_bytes) first_checksum_ = {};
  const bool all = sent >= std::ptrdiff_t(batch.bytes());
  return {std::size_t(sent), all ? Room::kMore : Room::kNone};
}

/// Returns how many bytes found room; −1: the connection has failed. Reads the payloads only while
/// it holds the mutex, since payloads are given back once the socket is gone.
std::ptrdiff_t TcpConnection::write(FrameBatch& batch, ChecksumSoFar& checksum) {
  std::ptrdiff_t sent = -1;
  int why = EPIPE;
  try {
    const std::lock_guard lock(writing_mutex_);
    if (data_) {
      if (!stream_->encrypts()) batch.take_checksums(checksum);
      sent = batch.send(*stream_);
      why = errno;
    }
  } catch (const Error&) {
    fail(error_of_current_exception(peer()));
    return -1;
  }
  if (sent >= 0) return sent;
  if (why == EAGAIN || why == EINTR) return 0;
  fail(error_of_socket(peer(), why));
  return -1;
}

/// True if the system has room for more than a few bytes, so that a call is worthwhile.
bool TcpConnection::has_room() {
  const std::lock_guard lock(writing_mutex_);
  pollfd room{data_ ? data_->fd() : -1, POLLOUT, 0};
  return ::poll(&room, 1, 0) > 0;
}

void TcpConnection::leave_rest() {
  if (!waits_for_room()) return;
  const std::lock_guard lock(socket_mutex_);
  if (!data_ || std::exchange(writable_asked_, true)) return;
  data_->wait_writable(self());
}

// Functions that end the connection.

void TcpConnection::shut_writing() {
  const std::lock_guard lock(socket_mutex_);
  if (data_) stream_->shut_writing();
}

void TcpConnection::cut() {
  const std::lock_guard lock(socket_mutex_);
  if (data_) ::shutdown(data_->fd(), SHUT_RDWR);
}

void TcpConnection::tick() {
  const bool heard = heard_.exchange(false, std::memory_order_relaxed);
  const Duration dead_after = connections_->dead_after();
  bool reachable = true;
  try {
    const std::lock_guard lock(socket_mutex_);
    look_at_way();
    if (heartbeat_.tick(heard) == Heartbeat::Pulse::kAlive) return;
    reachable = heartbeat_.is_acknowledged(dead_after / 2);
  } catch (const Error&) {
    return fail(error_of_current_exception(peer()));
  }
  fail(reachable ? Error(ErrorCode::kUnavailable, text_of_silence(peer(), dead_after))
                 : error_of_socket(peer(), ETIMEDOUT));
}

/// The caller holds the socket mutex.
void TcpConnection::look_at_way() {
  const std::optional<TcpWay> way = data_ ? way_of(data_->fd()) : std::nullopt;
  if (!way) return;
  incoming_.way = *way;
  incoming_.within_host = stays_on_host(data_->fd());
  if (way->is_short() && !std::exchange(way_is_short_, true))
    take_better_congestion_control(data_->fd());
}

// The system forgets the bound when it gives the socket more memory, so each call sets the bound
// even if it has not changed.
void TcpConnection::bound_incoming(std::size_t bytes) {
  const bool bounds = bytes > 0 && way_is_short_;
  if (!std::exchange(bounded_, bounds) && !bounds) return;
  const std::lock_guard lock(socket_mutex_);
  if (data_) bound_under_way(data_->fd(), bounds ? bytes : 0);
}

/// Makes a thread of the poller call help().
void TcpConnection::help_soon() {
  connections_->poller()->call_at(std::chrono::steady_clock::now(), [weak = std::weak_ptr(self())] {
    if (const auto connection = weak.lock()) connection->help();
  });
}

}  // namespace paceline
