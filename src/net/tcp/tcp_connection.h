// One end of a connection over two sockets: one carries frames, the other heartbeats.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "net/liveness_timer.h"
#include "net/poll/poller.h"
#include "net/queued_connection.h"
#include "net/stream/byte_stream.h"
#include "net/tcp/frame_reader.h"
#include "net/tcp/frame_writer.h"
#include "net/tcp/incoming_shares.h"
#include "net/tcp/tcp_connections.h"

namespace paceline {

/// The control socket of a connection. From time to time it carries a byte that says that the
/// process runs, because a stopped process looks alive to TCP. Not thread-safe.
class Heartbeat {
 public:
  enum class Pulse { kAlive, kSilent };

  explicit Heartbeat(StreamSocket control) : control_(std::move(control)) {}
  /// Sends a heartbeat if one is due, reads the peer's, and says whether the peer is dead
  /// (LivenessTimer::tick). `heard` says that data arrived, which counts as a heartbeat. Throws if
  /// the peer sends anything but heartbeats, or the stream fails.
  Pulse tick(bool heard);
  /// False if bytes wait for an acknowledgement and none has arrived within `lately`: the other
  /// host cannot be reached. True otherwise, even if the peer's process is stopped.
  bool is_acknowledged(Duration lately) const;

 private:
  /// Reads what has arrived. Returns true if it was heartbeats.
  bool listen();

  StreamSocket control_;
  LivenessTimer silence_;
};

/// Only a thread that holds the reading mutex calls the receiver: a thread of the poller, or one
/// inside Link::help or Link::wait. The poller sends what the socket does not take at once. Cutting
/// the connection shuts the socket down, which the reader sees.
class TcpConnection final : public QueuedConnection, public Watcher {
 public:
  enum class Made { kByPeer, kHere };
  TcpConnection(std::shared_ptr<TcpConnections> connections, StreamSocket data,
                StreamSocket control, std::string peer, Made made);

  std::string_view kind() const override { return "tcp"; }
  bool encrypted() const override { return stream_->encrypts(); }
  std::optional<Duration> round_trip() const override;
  /// From now on `receiver` gets the frames that arrive.
  void start(Receiver& receiver);
  /// Ends the connection without a receiver.
  void refuse();
  /// Always true: only the system knows, and `help` asks it.
  bool has_come() const { return true; }
  /// Reads what has arrived, unless another thread is reading, and sends what there is room for.
  /// Returns false if it has done neither.
  bool help();
  /// Lends the socket to the caller, which must call `help` whenever `fd` becomes readable. The
  /// poller's threads do not listen until take_back(). Returns false if another thread reads, or
  /// nothing more will arrive.
  bool lend();
  void take_back();
  /// The data socket; -1 if the connection has ended.
  int fd() const;
  /// True in the middle of a message.
  bool in_message();
  /// Sends heartbeats and checks for the peer's. Also measures the round trip: if it proves short,
  /// another congestion control may be better. The timer calls it LivenessTimer::kTicksOfDeath
  /// times per dead_after.
  void tick();
  bool made_by_peer() const { return made_ == Made::kByPeer; }
  /// The incoming stream, as of the last tick. Only the ticking thread may call this function and
  /// bound_incoming.
  IncomingStream& incoming() { return incoming_; }
  /// Bounds the bytes under way to this end, if the round trip is short; 0: no bound.
  void bound_incoming(std::size_t bytes);
  /// Ends the connection because its link is being destroyed. No poller may run any more.
  void end(const Error& error);

 private:
  void on_readable() override;
  void on_writable() override;

  bool read_turn();
  FrameReader::Outcome guarded_turn();
  void wait_readable();
  void stop_waiting();
  void finish();
  void help_soon();
  void look_at_way();
  std::optional<Duration> measured_round_trip() const;

  std::size_t write_at_once(const QueuedFrame& frame) override;
  Written write(const Ring<QueuedFrame>& frames, std::size_t done, std::size_t most_bytes,
                std::unique_lock<std::mutex>& lock) override;
  std::ptrdiff_t write(FrameBatch& batch, ChecksumSoFar& checksum);
  void leave_rest() override;
  bool has_room();
  void shut_writing() override;
  void cut() override;

  std::shared_ptr<TcpConnection> self() {
    return std::static_pointer_cast<TcpConnection>(shared_from_this());
  }

  const std::shared_ptr<TcpConnections> connections_;
  const Made made_;

  // Lock order of the mutexes: reading, the queue's, writing, socket.
  std::recursive_mutex reading_mutex_;
  bool in_turn_ = false;
  bool read_waits_ = false;  // the poller waits for data_ to be readable
  bool lent_ = false;
  bool finished_ = false;
  Receiver* receiver_ = nullptr;
  FrameReader reader_;
  std::atomic<bool> heard_{false};  // data arrived since the last tick

  /// The checksum so far of the first queued frame. Only the writing thread uses it.
  ChecksumSoFar first_checksum_;
  std::mutex writing_mutex_;  // held while writing, so that the descriptor stays open

  mutable std::mutex socket_mutex_;
  const std::unique_ptr<ByteStream> stream_;  // reads and writes data_
  std::optional<Watch> data_;                 // empty once finished
  std::optional<Duration> round_trip_;        // when the connection finished
  bool way_is_short_ = false;                 // as far as is known
  IncomingStream incoming_;                   // only the ticking thread uses it
  bool bounded_ = false;                      // only the ticking thread uses it
  bool writable_asked_ = false;
  Heartbeat heartbeat_;
};

}  // namespace paceline
